/**
 * Merges a public model registry into the known facts. The registry has the format of models.dev's `api.json`
 * (https://models.dev: providers by id, each with its models by upstream name, limits in tokens, prices in USD per
 * million tokens). Pure.
 *
 * Values that the registry states replace known ones; others stay. A vendor's own models are added under its author, a
 * router's under their names there. A model of another host is added only if its name identifies a known model;
 * otherwise it is reached by its name.
 */
import type { ProviderKind } from '../../providers/index.ts';
import type { ModelFacts, Offer } from '../facts.ts';
import { type Entry, isRecord, readEntry } from './registry-entry.ts';

/** The part of a provider kind that the registry needs. */
type RegistryKind = Pick<ProviderKind, 'id' | 'author' | 'service'>;

export interface Merge {
  models: ModelFacts[];
  /** Models taken from the registry. */
  taken: number;
  added: string[];
  /** `id at provider: old -> new`, for prompt tokens. */
  repriced: string[];
  /** Invalid rows of the registry. */
  refused: number;
}

interface MergeOptions {
  known: readonly ModelFacts[];
  registry: unknown;
  /** Only those with a `registryId` are read. */
  kinds: readonly RegistryKind[];
  source: string;
  /** `YYYY-MM-DD` */
  date: string;
  /** Whether a row matches the schema. */
  isValid(row: unknown): boolean;
}

/** @throws RangeError if the registry has an unknown format */
export function mergeRegistry(options: MergeOptions): Merge {
  const state = new MergeState(options);
  const { registry } = options;
  if (!isRecord(registry)) throw new RangeError('the registry is not an object of providers');
  for (const kind of inOrder(options.kinds)) {
    const id = kind.service?.registryId;
    const provider = id ? registry[id] : undefined;
    if (provider === undefined) continue;
    if (!isRecord(provider) || !isRecord(provider['models'])) throw new RangeError(`${id} has no models object`);
    for (const [name, entry] of Object.entries(provider['models'])) state.take(kind, name, entry);
  }
  return state.result();
}

/** Routers first, so that new models get their names there; then by id. */
function inOrder(kinds: readonly RegistryKind[]): RegistryKind[] {
  const isRouter = ({ service }: RegistryKind) => service?.role === 'router';
  return kinds.toSorted((a, b) => Number(isRouter(b)) - Number(isRouter(a)) || (a.id < b.id ? -1 : 1));
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

  take(kind: RegistryKind, upstreamId: string, entry: unknown): void {
    const read = readEntry(entry, upstreamId);
    if (read === undefined) {
      this.#merge.refused += 1;
      return;
    }
    const id = this.#offered.get(`${kind.id}:${upstreamId}`) ?? this.#idFor(kind, upstreamId);
    if (id === undefined || (read.retired && !this.#rows.has(id))) return;
    const row = this.#rows.get(id) ?? this.#newRow(id, read);
    const own = kind.author === id.slice(0, id.indexOf('/'));
    const next = this.#withOffer(own ? this.#withFacts(row, read) : row, kind.id, upstreamId, read);
    if (!this.#options.isValid(next)) {
      this.#merge.refused += 1;
      return;
    }
    if (!this.#rows.has(id)) this.#merge.added.push(id);
    this.#rows.set(id, next);
    if (!id.includes(':')) this.#bySlug.set(simple(id), id);
    this.#offered.set(`${kind.id}:${upstreamId}`, id);
    this.#merge.taken += 1;
  }

  result(): Merge {
    return { ...this.#merge, models: newestFirst([...this.#rows.values()]) };
  }

  #idFor({ id, author = id, service }: RegistryKind, upstreamId: string): string | undefined {
    if (service?.role === 'router')
      return upstreamId.includes('/') && !upstreamId.startsWith('~') ? upstreamId : undefined;
    const known = this.#bySlug.get(simple(upstreamId));
    if (service?.role !== 'vendor') return known;
    if (known?.startsWith(`${author}/`)) return known;
    return upstreamId.includes('/') ? undefined : `${author}/${upstreamId}`;
  }

  #newRow(id: string, read: Entry): ModelFacts {
    const author = id.slice(0, id.indexOf('/'));
    return {
      id,
      canonical_slug: id,
      name: read.name,
      // Only known families: others group models by different rules than generations.
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
    // A second name for the same model at one provider (dated, or `latest`) does not change the first.
    if (before !== undefined && before.upstream_id !== upstreamId) return row;
    const stated = read.pricing === 'free' && !row.id.endsWith(':free') ? undefined : read.pricing;
    const pricing = stated === undefined || stated === 'free' ? stated : { ...imagePrices(before?.pricing), ...stated };
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

/** The registry does not state image prices, so known ones are kept. */
function imagePrices(before: Offer['pricing'] | undefined): object {
  const kept = Object.entries(before ?? {}).filter(([name]) => name === 'image_output' || name === 'output_images');
  return Object.fromEntries(kept);
}

function joined(before: readonly string[] | null, now: readonly string[]): string[] {
  return [...new Set([...(before ?? []), ...now])].toSorted();
}

/** Normalizes spelling: `accounts/fireworks/models/glm-5p3`, `zai-org/GLM-5.3` and `glm-5-3` are equal. */
function simple(name: string): string {
  return name
    .slice(name.lastIndexOf('/') + 1)
    .toLowerCase()
    .replace(/(\d)p(?=\d)/g, '$1.')
    .replace(/[._]/g, '-');
}

/** Groups rows by family, newest first. A row without a date keeps its position before its successor. */
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
