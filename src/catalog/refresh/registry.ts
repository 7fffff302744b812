/**
 * A public registry of models in the form of models.dev's `api.json` (https://models.dev: providers by id, each with its
 * models by their upstream names, limits in tokens, prices in USD a million tokens), merged into the facts at hand. Pure.
 *
 * What the registry states replaces what was known; what it does not state stays. A provider's own models come in under
 * its author, those of a router under the names that they have there; a model of another host comes in where its name
 * tells which known model it is, and is reached by its name otherwise.
 */
import type { ModelFacts, Offer } from '../facts.ts';
import { type Entry, isRecord, readEntry } from './registry-entry.ts';

/** The registry's ids of providers, and the kinds of providers that they are. */
const REGISTRY_PROVIDERS: Readonly<Record<string, string>> = {
  // First: what is new gets the name that it has there.
  openrouter: 'openrouter',
  alibaba: 'alibaba',
  anthropic: 'anthropic',
  cerebras: 'cerebras',
  cohere: 'cohere',
  deepinfra: 'deepinfra',
  deepseek: 'deepseek',
  'fireworks-ai': 'fireworks',
  google: 'google',
  groq: 'groq',
  huggingface: 'huggingface',
  mistral: 'mistral',
  moonshotai: 'moonshot',
  openai: 'openai',
  perplexity: 'perplexity',
  togetherai: 'together',
  xai: 'xai',
  zai: 'zai',
};

/** Whose names have an author in front that is the model's own. */
const ROUTERS = new Set(['openrouter']);
/** Kinds whose models are their author's own; the others host models of many. */
const VENDORS = new Set([
  'alibaba',
  'anthropic',
  'cohere',
  'deepseek',
  'google',
  'mistral',
  'moonshot',
  'openai',
  'perplexity',
  'xai',
  'zai',
]);

export interface Merge {
  models: ModelFacts[];
  /** Models of the registry that were taken. */
  taken: number;
  added: string[];
  /** `id at provider: old -> new`, of prompt tokens. */
  repriced: string[];
  /** Rows of the registry that are not as they should be. */
  refused: number;
}

export interface MergeOptions {
  known: readonly ModelFacts[];
  registry: unknown;
  /** Author of the models of a kind of provider. */
  authorOf(kind: string): string | undefined;
  source: string;
  /** `YYYY-MM-DD` */
  date: string;
  /** Whether a row is as the schema wants it. */
  isValid(row: unknown): boolean;
}

/** @throws RangeError when the registry has another form altogether */
export function mergeRegistry(options: MergeOptions): Merge {
  const state = new MergeState(options);
  const { registry } = options;
  if (!isRecord(registry)) throw new RangeError('the registry is no object of providers');
  for (const [id, kind] of Object.entries(REGISTRY_PROVIDERS)) {
    const provider = registry[id];
    if (provider === undefined) continue;
    if (!isRecord(provider) || !isRecord(provider['models'])) throw new RangeError(`${id} has no object of models`);
    for (const [name, entry] of Object.entries(provider['models'])) state.take(kind, name, entry);
  }
  return state.result();
}

class MergeState {
  readonly #options: MergeOptions;
  readonly #rows = new Map<string, ModelFacts>();
  readonly #offered = new Map<string, string>();
  readonly #bySlug = new Map<string, string>();
  readonly #families = new Set<string>();
  readonly #merge: Omit<Merge, 'models'> = { taken: 0, added: [], repriced: [], refused: 0 };

  constructor(options: MergeOptions) {
    this.#options = options;
    for (const row of options.known) {
      this.#rows.set(row.id, row);
      const author = row.id.slice(0, row.id.indexOf('/'));
      for (const offer of row.offers) this.#offered.set(`${offer.provider}:${offer.upstream_id}`, row.id);
      for (const name of [row.id, ...row.aliases, ...row.dated]) {
        this.#bySlug.set(simple(name), row.id);
      }
      if (row.family !== null) this.#families.add(`${author}/${row.family}`);
    }
  }

  take(kind: string, upstreamId: string, entry: unknown): void {
    const read = readEntry(entry, upstreamId);
    if (read === undefined) {
      this.#merge.refused += 1;
      return;
    }
    const id = this.#offered.get(`${kind}:${upstreamId}`) ?? this.#idFor(kind, upstreamId);
    if (id === undefined || (read.retired && !this.#rows.has(id))) return;
    const row = this.#rows.get(id) ?? this.#newRow(id, read);
    const own = this.#options.authorOf(kind) === id.slice(0, id.indexOf('/'));
    const next = this.#withOffer(own ? this.#withFacts(row, read) : row, kind, upstreamId, read);
    if (!this.#options.isValid(next)) {
      this.#merge.refused += 1;
      return;
    }
    if (!this.#rows.has(id)) this.#merge.added.push(id);
    this.#rows.set(id, next);
    if (!id.includes(':')) this.#bySlug.set(simple(id), id);
    this.#offered.set(`${kind}:${upstreamId}`, id);
    this.#merge.taken += 1;
  }

  result(): Merge {
    return { ...this.#merge, models: newestFirst([...this.#rows.values()]) };
  }

  #idFor(kind: string, upstreamId: string): string | undefined {
    if (ROUTERS.has(kind)) return upstreamId.includes('/') && !upstreamId.startsWith('~') ? upstreamId : undefined;
    const known = this.#bySlug.get(simple(upstreamId));
    if (!VENDORS.has(kind)) return known;
    const author = this.#options.authorOf(kind) ?? kind;
    if (known?.startsWith(`${author}/`)) return known;
    return upstreamId.includes('/') ? undefined : `${author}/${upstreamId}`;
  }

  #newRow(id: string, read: Entry): ModelFacts {
    const author = id.slice(0, id.indexOf('/'));
    return {
      id,
      canonical_slug: id,
      name: read.name,
      // Only a family that is there already: others group models by other rules than their generation.
      family: this.#families.has(`${author}/${read.family}`) ? read.family : null,
      created: read.created,
      knowledge_cutoff: read.knowledge,
      hugging_face_id: null,
      context_length: read.context,
      max_completion_tokens: read.output,
      input_modalities: read.input,
      output_modalities: read.written,
      supported_parameters: read.parameters,
      tokenizer: null,
      reasoning: read.reasoning,
      aliases: [],
      dated: [],
      offers: [],
      source: this.#options.source,
      date: this.#options.date,
    };
  }

  #withFacts({ inputs_partial, ...row }: ModelFacts, read: Entry): ModelFacts {
    return {
      ...row,
      ...(inputs_partial && read.input === null && { inputs_partial }),
      created: row.created ?? read.created,
      knowledge_cutoff: read.knowledge ?? row.knowledge_cutoff,
      context_length: read.context ?? row.context_length,
      max_completion_tokens: read.output ?? row.max_completion_tokens,
      input_modalities: read.input ?? row.input_modalities,
      output_modalities: read.written ?? row.output_modalities,
      supported_parameters: joined(row.supported_parameters, read.parameters),
      reasoning: row.reasoning ?? read.reasoning,
      source: this.#options.source,
      date: this.#options.date,
    };
  }

  #withOffer(row: ModelFacts, kind: string, upstreamId: string, read: Entry): ModelFacts {
    const before = row.offers.find(({ provider }) => provider === kind);
    // A second name of the same model at one provider (a dated one, a `latest`) changes nothing of the first.
    if (before !== undefined && before.upstream_id !== upstreamId) return row;
    const stated = read.pricing === 'free' && !row.id.endsWith(':free') ? undefined : read.pricing;
    const pricing =
      stated === undefined || stated === 'free' ? stated : { ...picturePrices(before?.pricing), ...stated };
    const offer: Offer = {
      provider: kind,
      upstream_id: upstreamId,
      pricing: (pricing === 'free' ? { prompt: '0', completion: '0' } : pricing) ?? before?.pricing ?? null,
      ...(read.context !== null && { context_length: read.context }),
      ...(read.output !== null && { max_completion_tokens: read.output }),
      source: this.#options.source,
      date: this.#options.date,
    };
    if (before?.pricing && offer.pricing && before.pricing.prompt !== offer.pricing.prompt) {
      this.#merge.repriced.push(`${row.id} at ${kind}: ${before.pricing.prompt} -> ${offer.pricing.prompt}`);
    }
    const offers = before ? row.offers.map((one) => (one === before ? offer : one)) : [...row.offers, offer];
    return { ...row, offers };
  }
}

/** The registry has no words for the prices of pictures: what is known of them stays. */
function picturePrices(before: Offer['pricing'] | undefined): object {
  const kept = Object.entries(before ?? {}).filter(([name]) => name === 'image_output' || name === 'output_images');
  return Object.fromEntries(kept);
}

function joined(before: readonly string[] | null, now: readonly string[]): string[] {
  return [...new Set([...(before ?? []), ...now])].toSorted();
}

/** `accounts/fireworks/models/glm-5p3`, `zai-org/GLM-5.3` and `glm-5-3` are spelled alike. */
function simple(name: string): string {
  return name
    .slice(name.lastIndexOf('/') + 1)
    .toLowerCase()
    .replace(/(\d)p(?=\d)/g, '$1.')
    .replace(/[._]/g, '-');
}

/** Families together, by day; a row without a day keeps its place before the row that it stood before. */
function newestFirst(rows: ModelFacts[]): ModelFacts[] {
  const families = Map.groupBy(rows, ({ id, family }) =>
    family === null ? id : `${id.slice(0, id.indexOf('/'))}/${family}`,
  );
  return [...families.values()].flatMap((family) => {
    let day = 0;
    const days = new Map<ModelFacts, number>();
    for (const row of family.toReversed()) {
      day = row.created ?? day;
      days.set(row, day);
    }
    return family.toSorted((a, b) => days.get(b)! - days.get(a)!);
  });
}
