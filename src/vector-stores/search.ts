/** Searches in vector stores: by vectors where a store has an embedding model, and by keywords. */
import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { wireFileId } from '../files/index.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Database } from '../storage/database.ts';
import * as chunks from './chunks.sql.ts';
import type { Attributes, Filter } from './filters.ts';
import { type StoreKey, storeKeyOf } from './sealed.ts';
import { isExpired, storedStoreId } from './shape.ts';
import * as store from './store.ts';
import { termsOf } from './terms.ts';
import { VectorMemory } from './vector-memory.ts';
import { cosines, unitOf } from './vectors.ts';

/** Vectors of texts from a model. Rejects with GatewayError. */
type Embed = (model: string, texts: readonly string[]) => Promise<readonly Float32Array[]>;

interface StoreSearch {
  workspaceId: string;
  /** As on the wire. */
  storeIds: readonly string[];
  queries: readonly string[];
  filter: Filter | undefined;
  maxResults: number;
  /** The least score, from 0 to 1. */
  threshold: number;
  /** Of vectors and keywords in the score, where a store has both. */
  weights: Weights;
  embed: Embed;
}

export interface Weights {
  embedding: number;
  text: number;
}

export const DEFAULT_WEIGHTS: Weights = { embedding: 0.7, text: 0.3 };

export interface FoundChunk {
  /** Short, the same in every search. */
  label: string;
  /** As on the wire. */
  fileId: string;
  filename: string;
  attributes: Attributes;
  /** From 0 to 1. */
  score: number;
  text: string;
}

/** The best chunks of each ranking that are considered. */
const CANDIDATES = 200;
const MOST_TERMS = 64;
/** How often the last use of a store is noted. */
const NOTED_MS = 60_000;
const LABEL_LENGTH = 8;

interface Scored {
  entry: chunks.SearchedEntry;
  position: number;
  score: number;
}

export class VectorSearch {
  readonly #database: Database;
  readonly #sealing: Sealing;
  readonly #clock: Clock;
  readonly #vectors = new VectorMemory();

  constructor({ database, sealing, clock }: { database: Database; sealing: Sealing; clock: Clock }) {
    this.#database = database;
    this.#sealing = sealing;
    this.#clock = clock;
  }

  /**
   * The best chunks of all stores, best first. A chunk counts with the query that it matches best.
   * Rejects with GatewayError: 404 for a store that does not exist in the workspace, 400 for an expired one.
   */
  async search(wanted: StoreSearch): Promise<FoundChunk[]> {
    const now = new Date(this.#clock.now());
    const stores = await this.#stores(wanted, now);
    const ids = stores.map(({ id }) => id);
    await store.touchStores(this.#database, ids, now, new Date(now.getTime() - NOTED_MS));
    const units = await unitsOf(stores, wanted);
    const found = await Promise.all(stores.map((each) => this.#inStore(each, wanted, units.get(each.embeddingModel))));
    return found
      .flat()
      .sort((one, other) => other.score - one.score)
      .slice(0, wanted.maxResults);
  }

  /** Rejects as `search` does, with the path of a store that cannot be searched. @param path of the list */
  async check({ workspaceId, storeIds }: Pick<StoreSearch, 'workspaceId' | 'storeIds'>, path: string): Promise<void> {
    await this.#stores({ workspaceId, storeIds }, new Date(this.#clock.now()), path);
  }

  /** @param listPath of the ids in a request */
  async #stores(
    { workspaceId, storeIds }: Pick<StoreSearch, 'workspaceId' | 'storeIds'>,
    now: Date,
    listPath?: string,
  ): Promise<store.VectorStore[]> {
    const ids = storeIds.map((id) => storedStoreId(id));
    const found = await store.findStores(
      this.#database,
      workspaceId,
      ids.flatMap((id) => id ?? []),
    );
    return storeIds.map((wire, index) => {
      const each = found.find(({ id }) => id === ids[index]);
      if (each !== undefined && !isExpired(each, now)) return each;
      const path = listPath && `${listPath}[${index}]`;
      const [type, problem] =
        each === undefined
          ? (['not_found', `the workspace has no vector store with the id ${wire}`] as const)
          : (['invalid_request', `the vector store ${wire} has expired`] as const);
      throw path === undefined
        ? new GatewayError(type, problem)
        : new GatewayError(type, `${path}: ${problem}`, { path });
    });
  }

  async #inStore(
    { id, dataKey }: store.VectorStore,
    wanted: StoreSearch,
    units: readonly Float32Array[] | undefined,
  ): Promise<FoundChunk[]> {
    const { filter, maxResults, threshold } = wanted;
    const all = await chunks.searchedEntries(this.#database, id, new Date(this.#clock.now()));
    const entries = filter === undefined ? all : all.filter(({ attributes }) => filter(attributes));
    if (entries.length === 0) return [];
    const key = await storeKeyOf(this.#sealing, { id, dataKey });
    const total = all.reduce((sum, entry) => sum + entry.chunks, 0);
    const best = new Map<string, Scored>();
    for (const [index, query] of wanted.queries.entries()) {
      const keywords = await this.#byKeywords(query, entries, { key, total });
      const vectors = units && (await this.#byVectors(units[index]!, entries, key));
      for (const scored of combined(keywords, vectors, wanted.weights)) {
        const place = placeOf(scored);
        if (scored.score >= threshold && scored.score > (best.get(place)?.score ?? 0)) best.set(place, scored);
      }
    }
    const top = [...best.values()].sort((one, other) => other.score - one.score).slice(0, maxResults);
    return this.#withTexts(top, key);
  }

  /** Scores from 0 to 1: the share of the query's words, weighted by their rarity, and by how often the chunk has them. */
  async #byKeywords(
    query: string,
    entries: readonly chunks.SearchedEntry[],
    { key, total }: { key: StoreKey; total: number },
  ): Promise<Scored[]> {
    const terms = [...new Set(termsOf(query))].slice(0, MOST_TERMS).map((word) => key.term(word));
    if (terms.length === 0) return [];
    const holders = await chunks.countHolders(this.#database, terms);
    const rarity = (term: string) => {
      const count = holders.get(term) ?? 0;
      return Math.log(1 + (total - count + 0.5) / (count + 0.5));
    };
    const whole = terms.reduce((sum, term) => sum + rarity(term), 0);
    const byId = new Map(entries.map((entry) => [entry.id, entry]));
    const matches = await chunks.keywordMatches(this.#database, [...byId.keys()], terms, CANDIDATES);
    return matches.map(({ entryId, position, counts }) => {
      const sum = Object.entries(counts).reduce((part, [term, count]) => part + rarity(term) * saturated(count), 0);
      return { entry: byId.get(entryId)!, position, score: sum / whole };
    });
  }

  async #byVectors(unit: Float32Array, entries: readonly chunks.SearchedEntry[], key: StoreKey): Promise<Scored[]> {
    const load = async (ids: readonly string[]) => {
      const sealed = await chunks.vectorsOf(this.#database, ids);
      return new Map([...sealed].map(([id, record]) => [id, key.open(id, 'vectors', record)]));
    };
    let best: Scored[] = [];
    let least = Number.NEGATIVE_INFINITY;
    const byId = new Map(entries.map((entry) => [entry.id, entry]));
    for await (const [id, packed] of this.#vectors.each([...byId.keys()], load)) {
      const before = best.length;
      cosines(packed, unit).forEach((score, position) => {
        if (score > least) best.push({ entry: byId.get(id)!, position, score: Math.min(1, Math.max(0, score)) });
      });
      if (best.length <= CANDIDATES || best.length === before) continue;
      best = best.sort((one, other) => other.score - one.score).slice(0, CANDIDATES);
      least = best.at(-1)!.score;
    }
    return best.sort((one, other) => other.score - one.score);
  }

  async #withTexts(top: readonly Scored[], key: StoreKey): Promise<FoundChunk[]> {
    const places = top.map(({ entry, position }) => ({ entryId: entry.id, position }));
    const rows = await chunks.textsOf(this.#database, places);
    const sealed = new Map(rows.map((row) => [`${row.entryId} ${row.position}`, row.sealed]));
    // A file that was removed meanwhile is left out.
    return top.flatMap((scored) => {
      const { entry, position, score } = scored;
      const record = sealed.get(placeOf(scored));
      if (record === undefined) return [];
      return {
        label: createHash('sha256').update(placeOf(scored)).digest('hex').slice(0, LABEL_LENGTH),
        fileId: wireFileId(entry.fileId),
        filename: entry.filename,
        attributes: entry.attributes,
        score: Number(score.toFixed(4)),
        text: key.open(entry.id, `chunk ${position}`, record).toString(),
      };
    });
  }
}

/** The queries as unit vectors of each model; undefined for stores without one. */
async function unitsOf(stores: readonly store.VectorStore[], { queries, embed }: StoreSearch) {
  const models = new Set(stores.flatMap(({ embeddingModel }) => embeddingModel ?? []));
  const units = new Map<string | null, readonly Float32Array[]>();
  for (const model of models) units.set(model, (await embed(model, queries)).map(unitOf));
  return units;
}

/** Repetitions count less and less. */
function saturated(count: number): number {
  return count / (count + 0.5);
}

/** The weighted mean of both scores, or the one there is. */
function combined(keywords: readonly Scored[], vectors: readonly Scored[] | undefined, weights: Weights): Scored[] {
  if (vectors === undefined) return [...keywords];
  const sum = weights.embedding + weights.text;
  const all = new Map<string, Scored>();
  const add = (scored: Scored, weight: number) => {
    const place = placeOf(scored);
    const before = all.get(place)?.score ?? 0;
    all.set(place, { ...scored, score: before + (scored.score * weight) / sum });
  };
  for (const scored of vectors) add(scored, weights.embedding);
  for (const scored of keywords) add(scored, weights.text);
  return [...all.values()];
}

function placeOf({ entry, position }: Scored): string {
  return `${entry.id} ${position}`;
}
