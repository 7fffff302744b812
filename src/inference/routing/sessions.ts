/**
 * Which endpoint a session was served by last, so that its next request finds the provider's prompt cache warm
 * (spec.md, "session id"). A session goes on where it was until that endpoint fails it. Kept per process, in a bounded
 * number; a session that is not known here still gets the same endpoint in every process, see `order.ts`.
 */
import type { Clock } from '../../base/clock.ts';

const MOST_SESSIONS = 20_000;
/** No provider keeps a prompt's cache for longer without use. */
const IDLE_MS = 60 * 60_000;
/** A prompt that providers cache is longer than this, and conversations that share it begin with the same bytes. */
const PREFIX_BYTES = 2_048;

interface Entry {
  endpointId: string;
  usedAt: number;
}

/** What a session is known by. `named`: the client gave it an id; otherwise it is its prompt's beginning. */
export interface SessionKey {
  hash: number;
  named: boolean;
}

export class Sessions {
  readonly #clock: Clock;
  /** The least recently used first. */
  readonly #entries = new Map<number, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The endpoint of the session; undefined when it has none, or none any more. */
  endpointOf({ hash }: SessionKey): string | undefined {
    const entry = this.#entries.get(hash);
    if (entry === undefined) return undefined;
    if (this.#clock.monotonic() - entry.usedAt <= IDLE_MS) return entry.endpointId;
    this.#entries.delete(hash);
    return undefined;
  }

  keep({ hash }: SessionKey, endpointId: string): void {
    this.#entries.delete(hash);
    if (this.#entries.size >= MOST_SESSIONS) this.#entries.delete(this.#entries.keys().next().value!);
    this.#entries.set(hash, { endpointId, usedAt: this.#clock.monotonic() });
  }

  /** The endpoint has failed the session. */
  letGo({ hash }: SessionKey, endpointId: string): void {
    if (this.#entries.get(hash)?.endpointId === endpointId) this.#entries.delete(hash);
  }

  get size(): number {
    return this.#entries.size;
  }
}

export interface SessionHints {
  /** Sessions of different keys are different. */
  keyId: string;
  model: string;
  sessionId: string | null;
  cacheKey: string | undefined;
  /** The request's body. */
  body: Uint8Array;
}

/** undefined for a request that names no session and is too short to be cached. */
export function sessionKey({ keyId, model, sessionId, cacheKey, body }: SessionHints): SessionKey | undefined {
  const about = `${keyId}\n${model}\n`;
  if (sessionId !== null && sessionId !== '') return { hash: hashText(`${about}session ${sessionId}`), named: true };
  if (cacheKey !== undefined) return { hash: hashText(`${about}cache ${cacheKey}`), named: true };
  if (body.length < PREFIX_BYTES) return undefined;
  return { hash: hashBytes(body, PREFIX_BYTES, hashText(about)), named: false };
}

const SEED = 0x811c9dc5;
const SECOND = 0x01000193;

/** 52 bits; only spreads, protects nothing. */
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

/** Mixes both halves until every bit of the text moves every bit of the result. */
function finish(low: number, high: number): number {
  let first = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  let second = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
  first = Math.imul(first ^ (first >>> 15), 0x2c1b3c6d);
  second = Math.imul(second ^ (second >>> 15), 0x297a2d39);
  return ((second ^ (second >>> 16)) & 0xfffff) * 2 ** 32 + ((first ^ (first >>> 16)) >>> 0);
}

/** A number between 0 and 1 (neither) that is always the same for this session and endpoint. */
export function fractionOf({ hash }: SessionKey, endpointId: string): number {
  return (hashText(`${hash} ${endpointId}`) + 0.5) / 2 ** 52;
}
