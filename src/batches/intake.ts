/** Takes a batch in: checks and stores its items while the body arrives. */
import type { Caller } from '../access/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import { BATCH_ENDPOINTS, type BatchEndpoint, type BatchPreferences } from './batch.ts';
import { checkItem, type ItemTarget, readItem } from './item.ts';
import { insertItems, itemsFrom, type NewItem, positionOf } from './items.sql.ts';
import { RequestsReader } from './requests-reader.ts';
import type { RunParts } from './run.ts';

const MEMBER_BYTES = 64 * 1024;
/** Written to the database together. */
const WRITTEN_ITEMS = 256;
const WRITTEN_BYTES = 1024 * 1024;
const MODEL_LENGTH = 256;

export interface IntakeParts extends Pick<RunParts, 'database' | 'clock' | 'inference'> {
  itemBytes: number;
}

export interface Taken {
  target: ItemTarget;
  total: number;
}

interface Header {
  endpoint?: BatchEndpoint;
  model?: string;
  provider?: BatchPreferences | null;
}

export class Intake {
  readonly #parts: IntakeParts;
  readonly #batchId: string;
  readonly #caller: Caller;
  readonly #region: string;
  readonly #header: Header = {};
  /** What the items so far were checked with; undefined if some are unchecked. */
  #checkedWith: ItemTarget | undefined;
  #total = 0;
  #hasRequests = false;
  #waiting: NewItem[] = [];
  #waitingBytes = 0;

  constructor(parts: IntakeParts, batchId: string, caller: Caller, region: string) {
    this.#parts = parts;
    this.#batchId = batchId;
    this.#caller = caller;
    this.#region = region;
  }

  /** @throws GatewayError for the first thing that is wrong */
  async take(body: AsyncIterable<Buffer>): Promise<Taken> {
    const reader = new RequestsReader({ itemBytes: this.#parts.itemBytes, memberBytes: MEMBER_BYTES });
    for await (const chunk of body) {
      for (const piece of reader.read(chunk)) {
        if (piece.kind === 'member') this.#member(piece.key, piece.bytes);
        else {
          this.#item(piece.index, piece.bytes);
          if (this.#waiting.length >= WRITTEN_ITEMS || this.#waitingBytes >= WRITTEN_BYTES) await this.#store();
        }
      }
    }
    reader.end();
    await this.#store();
    const target = this.#target();
    if (target === undefined)
      throw invalidField(this.#header.endpoint === undefined ? 'endpoint' : 'model', 'is missing');
    if (this.#total === 0) throw invalidField('requests', 'must have at least one request');
    // Members that came after the items apply to them all the same.
    if (this.#checkedWith === undefined || this.#checkedWith.provider !== target.provider)
      await this.#checkStored(target);
    return { target, total: this.#total };
  }

  #member(key: string, bytes: Buffer): void {
    const value = read(key, bytes);
    switch (key) {
      case 'endpoint':
        if (!BATCH_ENDPOINTS.includes(value as BatchEndpoint)) {
          throw invalidField('endpoint', `must be one of ${BATCH_ENDPOINTS.join(', ')}`);
        }
        this.#header.endpoint = value as BatchEndpoint;
        break;
      case 'model':
        if (typeof value !== 'string' || value === '' || value.length > MODEL_LENGTH) {
          throw invalidField('model', `must be a text of 1 to ${MODEL_LENGTH} characters`);
        }
        if (this.#parts.inference.catalog().find(value) === undefined) {
          throw new GatewayError('not_found', `model: there is no model ${JSON.stringify(value)}`, { path: 'model' });
        }
        this.#header.model = value;
        break;
      case 'provider':
        this.#header.provider = preferencesOf(value);
        break;
      case 'completion_window':
        if (value !== '24h') throw invalidField('completion_window', 'must be 24h');
        break;
      default:
        throw invalidField(
          key.slice(0, 100),
          'is not a member of a batch; accepted: endpoint, model, requests, completion_window, provider',
        );
    }
  }

  #target(): ItemTarget | undefined {
    const { endpoint, model, provider = null } = this.#header;
    return endpoint === undefined || model === undefined
      ? undefined
      : { endpoint, model, provider, region: this.#region };
  }

  #item(position: number, bytes: Buffer): void {
    if (!this.#hasRequests) {
      this.#hasRequests = true;
      this.#checkedWith = this.#target();
    }
    const { customId, body } = readItem(bytes, position);
    if (this.#checkedWith)
      checkItem({ customId, body }, position, this.#checkedWith, this.#caller, this.#parts.clock.now());
    this.#total += 1;
    this.#waiting.push({ position, customId, body });
    this.#waitingBytes += body.length;
  }

  async #store(): Promise<void> {
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
      `requests[${position}].custom_id`,
      `${JSON.stringify(customId)} is also that of requests[${first}]`,
    );
  }

  async #checkStored(target: ItemTarget): Promise<void> {
    const { database, clock } = this.#parts;
    for (let from = 0; from < this.#total; ) {
      const items = await itemsFrom(database, this.#batchId, from, { count: WRITTEN_ITEMS, bytes: WRITTEN_BYTES });
      for (const item of items) checkItem(item, item.position, target, this.#caller, clock.now());
      from = items.at(-1)!.position + 1;
    }
  }
}

function read(key: string, bytes: Buffer): unknown {
  try {
    return parseJson(bytes.toString('utf8'));
  } catch {
    throw invalidField(key.slice(0, 100), 'is not valid JSON');
  }
}

function preferencesOf(value: unknown): BatchPreferences | null {
  if (value === null) return null;
  if (typeof value !== 'object' || Array.isArray(value)) throw invalidField('provider', 'must be an object or null');
  for (const [key, member] of Object.entries(value)) {
    if (key === 'only') {
      const isList = Array.isArray(member) && member.every((name) => typeof name === 'string');
      if (member !== null && !isList) throw invalidField('provider.only', 'must be a list of providers or null');
    } else if (key === 'allow_fallbacks') {
      if (member !== null && typeof member !== 'boolean') {
        throw invalidField('provider.allow_fallbacks', 'must be true, false or null');
      }
    } else {
      throw invalidField(
        `provider.${key.slice(0, 100)}`,
        'is not supported in a batch; accepted: only, allow_fallbacks',
      );
    }
  }
  return value as BatchPreferences;
}
