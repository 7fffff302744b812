/** Reads the body of `POST /batches`: members in any order, items while they arrive. */
import { invalidField } from '../../base/errors.ts';
import { parseJson } from '../../base/json.ts';
import { BATCH_ENDPOINTS, type BatchEndpoint, type BatchPreferences } from '../batch.ts';
import { type ItemTarget, modelOf } from '../item.ts';
import { type IntakeParts, type ItemIntake, knownModel } from './item-intake.ts';
import { RequestsReader } from './requests-reader.ts';
import type { Origin } from './submit.ts';
import { svcItems } from './submitted-item.ts';

const MEMBER_BYTES = 64 * 1024;

interface Header {
  endpoint?: BatchEndpoint;
  model?: string;
  provider?: BatchPreferences | null;
  callbackUrl?: string;
}

interface BodyParts extends IntakeParts {
  /** Checks a `callback_url`. @throws GatewayError 400 */
  callbackUrl(value: unknown): string;
}

export class BodyIntake {
  readonly #parts: BodyParts;
  readonly #items: ItemIntake;
  readonly #origin: Origin;
  readonly #header: Header = {};
  /** The target that the items so far were checked against; undefined if some are unchecked. */
  #checkedWith: ItemTarget | undefined;
  #hasRequests = false;

  constructor(parts: BodyParts, items: ItemIntake, origin: Origin) {
    this.#parts = parts;
    this.#items = items;
    this.#origin = origin;
  }

  /** Once the body has been read. */
  get callbackUrl(): string | undefined {
    return this.#header.callbackUrl;
  }

  /** @throws GatewayError for the first thing that is wrong */
  async read(body: AsyncIterable<Buffer>): Promise<ItemTarget> {
    const reader = new RequestsReader({
      itemBytes: this.#parts.itemBytes,
      memberBytes: MEMBER_BYTES,
      nameItem: svcItems.name,
    });
    for await (const chunk of body) {
      for (const piece of reader.read(chunk)) {
        if (piece.kind === 'member') this.#member(piece.key, piece.bytes);
        else await this.#item(piece.bytes);
      }
    }
    reader.end();
    await this.#items.store();
    const target = this.#target();
    if (target === undefined)
      throw invalidField(this.#header.endpoint === undefined ? 'endpoint' : 'model', 'is missing');
    if (this.#items.total === 0) throw invalidField('requests', 'must have at least one request');
    // Members that came after the items apply to them all the same.
    if (this.#checkedWith === undefined || this.#checkedWith.provider !== target.provider)
      await this.#items.checkStored(target);
    return target;
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
        this.#header.model = modelOf(value);
        knownModel(this.#header.model, this.#parts);
        break;
      case 'provider':
        this.#header.provider = preferencesOf(value);
        break;
      case 'completion_window':
        if (value !== '24h') throw invalidField('completion_window', 'must be 24h');
        break;
      case 'callback_url':
        if (value === null) break;
        this.#header.callbackUrl = this.#parts.callbackUrl(value);
        break;
      default:
        throw invalidField(
          key.slice(0, 100),
          'is not a member of a batch; accepted: endpoint, model, requests, completion_window, provider, callback_url',
        );
    }
  }

  #target(): ItemTarget | undefined {
    const { endpoint, model, provider = null } = this.#header;
    return endpoint === undefined || model === undefined ? undefined : { endpoint, model, provider, ...this.#origin };
  }

  async #item(bytes: Buffer): Promise<void> {
    if (!this.#hasRequests) {
      this.#hasRequests = true;
      this.#checkedWith = this.#target();
    }
    await this.#items.add(bytes, this.#checkedWith);
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
