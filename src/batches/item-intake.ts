/** Checks and stores the items of a new batch while they arrive, whatever API they come through. */
import type { Caller } from '../access/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { acceptItem, type ItemTarget, modelOf } from './item.ts';
import { insertItems, itemsFrom, type NewItem, positionOf } from './items.sql.ts';
import type { RunParts } from './run.ts';
import type { ItemForm, SubmittedItem } from './submitted-item.ts';

/** Written to the database together. */
const WRITTEN_ITEMS = 256;
const WRITTEN_BYTES = 1024 * 1024;
/** Different ones that the items of a batch may name: each is routed once before the batch is accepted. */
const MOST_MODELS = 100;

export interface IntakeParts extends Pick<RunParts, 'database' | 'clock' | 'inference'> {
  /** Of one item. */
  itemBytes: number;
}

export class ItemIntake {
  readonly #parts: IntakeParts;
  readonly #batchId: string;
  readonly #caller: Caller;
  readonly #form: ItemForm;
  readonly #models = new Map<string, number>();
  #total = 0;
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

  /** Of items that together name every model of the batch. */
  get examples(): number[] {
    return this.#models.size === 0 ? [0] : [...this.#models.values()];
  }

  /** @param target undefined: the item is checked later, by `checkStored` @throws GatewayError that names the item */
  async add(bytes: Buffer, target: ItemTarget | undefined): Promise<void> {
    const position = this.#total;
    const item = this.#form.read(bytes, position);
    const model = target === undefined ? null : this.#check(item, position, target);
    this.#total += 1;
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
    const repeated = items.find(({ position }) => !stored.has(position));
    if (repeated === undefined) return;
    const { position, customId } = repeated;
    const first = await positionOf(database, this.#batchId, customId);
    throw invalidField(
      `${this.#form.name(position)}.custom_id`,
      `${JSON.stringify(customId)} is also that of ${this.#form.name(first!)}`,
    );
  }

  /** Checks all items with a target that became known after them. @throws GatewayError that names the item */
  async checkStored(target: ItemTarget): Promise<void> {
    for (let from = 0; from < this.#total; ) {
      const limits = { count: WRITTEN_ITEMS, bytes: WRITTEN_BYTES };
      const items = await itemsFrom(this.#parts.database, this.#batchId, from, limits);
      for (const item of items) this.#check(item, item.position, target);
      from = items.at(-1)!.position + 1;
    }
  }

  /** Returns the item's own model; null if the batch has one. */
  #check({ customId, body }: SubmittedItem, position: number, target: ItemTarget): string | null {
    try {
      const { document } = acceptItem(body, target, this.#caller, this.#parts.clock.now());
      if (target.model !== null) return null;
      const model = modelOf(document.member('model'));
      if (!this.#models.has(model)) this.#addModel(model, position);
      return model;
    } catch (error) {
      throw error instanceof GatewayError ? this.#form.explain(error, position, customId) : error;
    }
  }

  #addModel(model: string, position: number): void {
    knownModel(model, this.#parts);
    if (this.#models.size === MOST_MODELS) {
      throw invalidField('model', `is one too many: the requests of a batch may name at most ${MOST_MODELS} models`);
    }
    this.#models.set(model, position);
  }
}

/** @throws GatewayError 404 */
export function knownModel(name: string, { inference }: Pick<IntakeParts, 'inference'>): void {
  if (inference.catalog().find(name) !== undefined) return;
  throw new GatewayError('not_found', `model: there is no model ${JSON.stringify(name)}`, { path: 'model' });
}
