/** Deployments as providers with models: which id each of LiteLLM's model names gets, and which deployments share a provider. */
import type { ModelFacts } from '../../catalog/index.ts';
import { KINDS } from '../../providers/index.ts';
import type { Deployment, ProviderDraft } from './deployments.ts';
import type { Findings } from './findings.ts';
import { type Json, literal, type Members } from './values.ts';

interface ImportedModels {
  providers: Members[];
  /** Ids in the gateway by LiteLLM's model names, without wildcards. */
  ids: ReadonlyMap<string, string>;
}

const ID = /^[A-Za-z0-9~._:@+-]{1,128}\/[A-Za-z0-9~._:@+/-]{1,200}$/;

export function modelsOf(deployments: readonly Deployment[], findings: Findings): ImportedModels {
  const providers = new Providers();
  for (const deployment of deployments.filter(isWildcard)) open(deployment, providers, findings);
  const named = deployments.filter((one) => !isWildcard(one));
  const ids = idsOf(named);
  for (const { name, provider, upstream, model, facts } of named) {
    const id = ids.get(name)!;
    providers.list(provider, {
      id,
      upstream_id: literal(upstream),
      ...(name !== id && { aliases: [literal(name)] }),
      ...known(facts, id, provider.kind),
      ...model,
    });
  }
  return { providers: providers.all(), ids };
}

function isWildcard({ name, upstream }: Deployment): boolean {
  return name.includes('*') || upstream.includes('*');
}

/** A provider without a list of models has all of its author. */
function open({ at, name, provider, upstream }: Deployment, providers: Providers, findings: Findings): void {
  const kind = KINDS.find(({ id }) => id === provider.kind);
  const every = upstream === '*' && (name === '*' || name.endsWith('/*'));
  if (!every || kind?.author === undefined) {
    const reason = every ? 'this kind of provider needs a list of its models' : 'it names some models by a pattern';
    findings.lacks([...at, 'model_name'], `is a wildcard, and ${reason}; the entry is not imported`);
    return;
  }
  providers.open(provider);
  const asked = `${kind.author}/*`;
  if (name !== asked) {
    const bare = kind.bareModels === undefined ? '' : ", or the vendor's own names";
    findings.differs([...at, 'model_name'], `is a wildcard: clients ask for ${asked}${bare}`);
  }
}

/** Names with an author first, because only they can be ids unchanged. If two names give the same id, the first gets it. */
function idsOf(named: readonly Deployment[]): Map<string, string> {
  const ids = new Map<string, string>();
  const taken = new Set<string>();
  const firsts = [...new Map(named.toReversed().map((one) => [one.name, one])).values()].toReversed();
  const inOrder = [...firsts.filter(({ name }) => ID.test(name)), ...firsts.filter(({ name }) => !ID.test(name))];
  for (const deployment of inOrder) {
    const wanted = wantedId(deployment);
    let id = wanted;
    for (let number = 2; taken.has(id); number++) id = `${wanted}-${number}`;
    taken.add(id);
    ids.set(deployment.name, id);
  }
  return ids;
}

/** The id of the known model if clients ask for that model by its own name; it then has the facts of the catalog. */
function wantedId({ name, author, facts }: Deployment): string {
  if (ID.test(name)) return name;
  const slug =
    name
      .replace(/[^A-Za-z0-9~._:@+-]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 190) || 'model';
  return facts !== undefined && namesOf(facts).has(name) ? facts.id : `${author}/${slug}`;
}

function namesOf({ id, canonical_slug, aliases, dated }: ModelFacts): Set<string> {
  const slug = (text: string) => text.slice(text.indexOf('/') + 1);
  return new Set([slug(id), slug(canonical_slug), ...aliases, ...dated]);
}

/** Facts of a known model under another id, which the catalog cannot find by that id. */
function known(facts: ModelFacts | undefined, id: string, kind: string): Members {
  if (facts === undefined || facts.id === id) return {};
  const offer = facts.offers.find(({ provider }) => provider === kind);
  const context = offer?.context_length ?? facts.context_length;
  const completion = offer?.max_completion_tokens ?? facts.max_completion_tokens;
  return {
    ...(context !== null && { context_length: context }),
    ...(completion !== null && { max_completion_tokens: completion }),
    ...(offer?.pricing && { pricing: offer.pricing as unknown as Members }),
  };
}

/** Providers in the order of their first deployment; equal ones are merged, unless a model would be listed twice. */
class Providers {
  readonly #made: { key: string; kind: string; draft: ProviderDraft; models: Members[] | undefined }[] = [];

  open(draft: ProviderDraft): void {
    const key = JSON.stringify(draft);
    if (!this.#made.some((one) => one.key === key && one.models === undefined)) {
      this.#made.push({ key, kind: draft.kind, draft, models: undefined });
    }
  }

  list(draft: ProviderDraft, model: Members): void {
    const key = JSON.stringify(draft);
    const fits = this.#made.find(
      (one) => one.key === key && one.models !== undefined && !one.models.some(({ id }) => id === model['id']),
    );
    if (fits === undefined) this.#made.push({ key, kind: draft.kind, draft, models: [model] });
    else fits.models!.push(model);
  }

  all(): Members[] {
    const counts = new Map<string, number>();
    return this.#made.map(({ kind, draft, models }) => {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      const listed: Members = models === undefined ? {} : { models: models as Json };
      return { id: count === 1 ? kind : `${kind}-${count}`, ...draft, ...listed };
    });
  }
}
