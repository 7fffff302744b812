/** Checks and stores the items of a new batch while they arrive, whatever API they come through. */
import type { Caller } from '../../access/index.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import {
  type AcceptedRequest,
  type LeastPrice,
  type PromptTerms,
  promptTerms,
  WholeSink,
} from '../../inference/index.ts';
import { namesPreset } from '../../presets/index.ts';
import { WINDOW_MS } from '../batch.ts';
import { acceptItem, type ItemTarget, modelOf } from '../item.ts';
import { insertItems, itemsFrom, type NewItem, positionsOf } from '../items.sql.ts';
import type { RunParts } from '../running/run.ts';
import { type PromptSum, refuseUnaffordable } from './affordable.ts';
import type { ItemForm, SubmittedItem } from './submitted-item.ts';

/** Written to the database together. */
const WRITTEN_ITEMS = 256;
const WRITTEN_BYTES = 1024 * 1024;
/** Different ones that the items of a batch may name: each is routed once before the batch is accepted. */
const MOST_MODELS = 100;

const NOTHING: LeastPrice = { credit: 0n, any: 0n };

export interface IntakeParts extends Pick<RunParts, 'database' | 'clock' | 'inference'> {
  /** Of one item. */
  itemBytes: number;
}

/** Items with the same model. */
interface ModelItems {
  /** Null: that of the batch. */
  readonly model: string | null;
  /** Of the first. */
  readonly position: number;
  /** Together, and of the longest. */
  bytes: number;
  longest: number;
}

export class ItemIntake {
  readonly #parts: IntakeParts;
  readonly #batchId: string;
  readonly #caller: Caller;
  readonly #form: ItemForm;
  readonly #models = new Map<string, ModelItems>();
  #total = 0;
  readonly #ofBatch: ModelItems = { model: null, position: 0, bytes: 0, longest: 0 };
  #waiting: NewItem[] = [];
  #waitingBytes = 0;

  constructor(parts: IntakeParts, batchId: string, caller: Caller, form: ItemForm) {
    this.#parts = parts;
    this.#batchId = batchId;
    this.#caller = caller;
    this.#form = form;
  }

  get total(): number {
    return this.#total;
  }

  /** Those that the items name, if the batch has none itself. */
  get models(): string[] {
    return [...this.#models.keys()];
  }

  /** @param target undefined: the item is checked later, by `checkStored` @throws GatewayError that names the item */
  async add(bytes: Buffer, target: ItemTarget | undefined): Promise<void> {
    const position = this.#total;
    this.#total += 1;
    const item = this.#form.read(bytes, position);
    const model = target === undefined ? null : this.#check(item, position, target);
    this.#waiting.push({ position, ...item, model });
    this.#waitingBytes += item.body.length;
    if (this.#waiting.length >= WRITTEN_ITEMS || this.#waitingBytes >= WRITTEN_BYTES) await this.store();
  }

  /** Writes what is still in memory. @throws GatewayError 400 for a custom_id that occurred before */
  async store(): Promise<void> {
    const { database, clock } = this.#parts;
    const items = this.#waiting;
    if (items.length === 0) return;
    this.#waiting = [];
    this.#waitingBytes = 0;
    const stored = await insertItems(database, this.#batchId, items, new Date(clock.now()));
    const missing = items.filter(({ position }) => !stored.has(position));
    if (missing.length === 0) return;
    const ids = missing.map(({ customId }) => customId);
    const firsts = await positionsOf(database, this.#batchId, ids);
    for (const { position, customId } of missing) {
      const first = firsts.get(customId);
      if (first === undefined) throw new IntakeEnded();
      // An item that was stored before, by an earlier reading of the same input, has the same position.
      if (first !== position) throw this.#repeated(position, customId, first);
    }
  }

  #repeated(position: number, customId: string, first: number): GatewayError {
    const { name, repeated } = this.#form;
    if (repeated) return repeated(position, customId, first);
    return invalidField(`${name(position)}.custom_id`, `${JSON.stringify(customId)} is also that of ${name(first)}`);
  }

  /** Checks all items with a target that became known after them. @throws GatewayError that names the item */
  async checkStored(target: ItemTarget): Promise<void> {
    // They may have been checked with another target before.
    this.#models.clear();
    Object.assign(this.#ofBatch, { bytes: 0, longest: 0 });
    for await (const item of this.#stored(0)) this.#check(item, item.position, target);
  }

  async *#stored(from: number): AsyncGenerator<NewItem> {
    for (let next = from; next < this.#total; ) {
      const limits = { count: WRITTEN_ITEMS, bytes: WRITTEN_BYTES };
      const items = await itemsFrom(this.#parts.database, this.#batchId, next, limits);
      if (items.length === 0) throw new IntakeEnded();
      yield* items;
      next = items.at(-1)!.position + 1;
    }
  }

  /**
   * Checks the rules that are the same for all items of a model, and whether all items can be paid for. @throws
   * GatewayError of routing, or 402
   */
  async checkTogether(target: ItemTarget): Promise<void> {
    const { inference, clock } = this.#parts;
    const all = target.model === null ? [...this.#models.values()] : [this.#ofBatch];
    const prompts: PromptSum[] = [];
    for (const items of all) prompts.push(await this.#promptSum(items, target));
    await refuseUnaffordable(prompts, this.#caller, inference, clock.now() + WINDOW_MS);
  }

  /** Of those that fit the context of an endpoint. Each other one fails alone when it runs, and costs nothing. */
  async #promptSum({ model, position, bytes, longest }: ModelItems, target: ItemTarget): Promise<PromptSum> {
    const sum: PromptSum = { bytes, price: NOTHING };
    let mostBytes = 0;
    for await (const item of this.#stored(position)) {
      if (item.model !== model || item.body.length <= mostBytes) continue;
      const terms = await this.#termsOf(item, target);
      if (terms === undefined) sum.bytes -= item.body.length;
      else if (mostBytes === 0) {
        sum.price = terms;
        mostBytes = terms.mostBytes;
        if (longest <= mostBytes) break;
      }
    }
    return sum;
  }

  /** Undefined if the item is too long for every endpoint. @throws GatewayError of routing */
  async #termsOf(item: NewItem, target: ItemTarget): Promise<PromptTerms | undefined> {
    const { clock, inference } = this.#parts;
    try {
      const request = acceptItem(item.body, target, this.#caller, clock.now());
      return await promptTerms(request, new WholeSink(), inference);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status >= 500) throw error;
      if (error.type === 'context_length_exceeded') return undefined;
      // With one model for all, what is wrong with the routing of the first item holds for all of them, except with its body.
      const isOfItem = target.model === null || error.status === 400;
      throw isOfItem ? this.#form.explain(error, item.position, item.customId) : asForbidden(error);
    }
  }

  /** Returns the item's own model; null if the batch has one. */
  #check({ customId, body }: SubmittedItem, position: number, target: ItemTarget): string | null {
    try {
      const request = acceptItem(body, target, this.#caller, this.#parts.clock.now());
      const bytes = sizeOf(request, body);
      addBytes(this.#ofBatch, bytes);
      if (target.model !== null) return null;
      const model = modelOf(request.document.member('model'));
      addBytes(this.#models.get(model) ?? this.#addModel(model, position), bytes);
      return model;
    } catch (error) {
      throw error instanceof GatewayError ? this.#form.explain(error, position, customId) : error;
    }
  }

  #addModel(model: string, position: number): ModelItems {
    knownModel(model, this.#parts);
    if (this.#models.size === MOST_MODELS) {
      throw invalidField('model', `is one too many: the requests of a batch may name at most ${MOST_MODELS} models`);
    }
    const items = { model, position, bytes: 0, longest: 0 };
    this.#models.set(model, items);
    return items;
  }
}

/** What a preset adds to a request counts as if the client had sent it. */
function sizeOf({ presetId, document }: AcceptedRequest, body: Buffer): number {
  return presetId === undefined ? body.length : document.bytes.length;
}

function addBytes(items: ModelItems, bytes: number): void {
  items.bytes += bytes;
  items.longest = Math.max(items.longest, bytes);
}

/** Providers that the batch does not allow are 403 here, as those are that a guardrail forbids. */
function asForbidden(error: GatewayError): GatewayError {
  const { path } = error.details;
  const isList = path === 'provider.only' || path === 'provider.ignore';
  return isList && error.type === 'not_found'
    ? new GatewayError('permission_denied', error.message, error.details)
    : error;
}

/** The items are not needed any more: they were removed while they arrived, or another process has read them all. */
export class IntakeEnded extends GatewayError {
  constructor() {
    super('invalid_request', 'the body took longer than a day');
  }
}

/** @throws GatewayError 404 */
export function knownModel(name: string, { inference }: Pick<IntakeParts, 'inference'>): void {
  // Each item is checked with the preset.
  if (namesPreset(name) || inference.catalog().find(name) !== undefined) return;
  throw new GatewayError('not_found', `model: there is no model ${JSON.stringify(name)}`, { path: 'model' });
}
