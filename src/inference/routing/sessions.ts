/**
 * Remembers the endpoint that served a session last, so that its next request finds the provider's prompt cache warm. A
 * session stays at its endpoint until that fails. Kept per process and bounded in number; a named session that this
 * process does not know still gets the same endpoint in every process, see `order.ts`.
 */
import type { Clock } from '../../base/clock.ts';

const MAX_SESSIONS = 20_000;
/** No provider keeps an unused prompt cache for longer. */
const IDLE_MS = 60 * 60_000;
/** Prompts that providers cache are longer than this, and conversations that share one begin with the same bytes. */
const PREFIX_BYTES = 2_048;

interface Entry {
  endpointId: string;
  usedAt: number;
}

/** Identifies a session. `named`: by an id from the client; otherwise by the beginning of the prompt. */
export interface SessionKey {
  hash: number;
  named: boolean;
}

export class Sessions {
  readonly #clock: Clock;
  /** In order of use, the least recent first. */
  readonly #entries = new Map<number, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The endpoint of the session; undefined if there is none or it has expired. */
  endpointOf({ hash }: SessionKey): string | undefined {
    const entry = this.#entries.get(hash);
    if (entry === undefined) return undefined;
    if (this.#clock.monotonic() - entry.usedAt <= IDLE_MS) return entry.endpointId;
    this.#entries.delete(hash);
    return undefined;
  }

  keep({ hash }: SessionKey, endpointId: string): void {
    this.#entries.delete(hash);
    if (this.#entries.size >= MAX_SESSIONS) this.#entries.delete(this.#entries.keys().next().value!);
    this.#entries.set(hash, { endpointId, usedAt: this.#clock.monotonic() });
  }

  /** The endpoint failed a request of the session. */
  release({ hash }: SessionKey, endpointId: string): void {
    if (this.#entries.get(hash)?.endpointId === endpointId) this.#entries.delete(hash);
  }

  get size(): number {
    return this.#entries.size;
  }
}

interface SessionHints {
  /** Sessions of different keys are distinct. */
  keyId: string;
  model: string;
  sessionId: string | null;
  cacheKey: string | undefined;
  /** The request's body. */
  body: Uint8Array;
}

/** Undefined for a request that names no session and is too short to be cached. */
export function sessionKey({ keyId, model, sessionId, cacheKey, body }: SessionHints): SessionKey | undefined {
  const about = `${keyId}\n${model}\n`;
  if (sessionId !== null && sessionId !== '') return { hash: hashText(`${about}session ${sessionId}`), named: true };
  if (cacheKey !== undefined) return { hash: hashText(`${about}cache ${cacheKey}`), named: true };
  if (body.length < PREFIX_BYTES) return undefined;
  return { hash: hashBytes(body, PREFIX_BYTES, hashText(about)), named: false };
}

const SEED = 0x811c9dc5;
const SECOND = 0x01000193;

/** A 52-bit hash for distribution; not a cryptographic one. */
function hashText(text: string, seed = SEED): number {
  let low = seed | 0;
  let high = Math.imul(seed, SECOND) | 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    low = Math.imul(low ^ code, 0x85ebca6b);
    high = Math.imul(high ^ code, 0xc2b2ae35);
  }
  return finish(low, high);
}

function hashBytes(bytes: Uint8Array, length: number, seed: number): number {
  let low = seed | 0;
  let high = Math.floor(seed / 2 ** 20) | 0;
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]!;
    low = Math.imul(low ^ byte, 0x85ebca6b);
    high = Math.imul(high ^ byte, 0xc2b2ae35);
  }
  return finish(low, high);
}

/** Mixes both halves until every bit of the text affects every bit of the result. */
function finish(low: number, high: number): number {
  let first = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  let second = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
  first = Math.imul(first ^ (first >>> 15), 0x2c1b3c6d);
  second = Math.imul(second ^ (second >>> 15), 0x297a2d39);
  return ((second ^ (second >>> 16)) & 0xfffff) * 2 ** 32 + ((first ^ (first >>> 16)) >>> 0);
}

/** A number between 0 and 1 (exclusive), constant for a session and endpoint. */
export function fractionOf({ hash }: SessionKey, endpointId: string): number {
  return (hashText(`${hash} ${endpointId}`) + 0.5) / 2 ** 52;
}
