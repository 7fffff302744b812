/**
 * Resolves tokens to callers, from memory. A cached key costs one hash and one look-up, and no promise. Unknown tokens
 * are looked up in batches, one batch at a time: a flood of invented keys costs one query per round trip, not one per
 * request, and cannot grow the caches beyond their limits.
 */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Changes } from '../storage/database.ts';
import { type Freshness, READ_TIMEOUT_MS } from '../storage/freshness.ts';
import { unavailable } from '../storage/unavailable.ts';
import type { Caller } from './caller.ts';
import { hashToken, MAX_TOKEN_LENGTH, mayBeJwt, presentedToken, unauthorized } from './token.ts';

/**
 * Announced with a key's hash when anything about the key changes, which also covers its aliases, or with an alias's
 * hash.
 */
export const KEYS_TOPIC = 'access.keys';
/** Announced with a user's id when the user joins or leaves an organization. */
export const MEMBERS_TOPIC = 'access.members';
/** Announced with a workspace's id when any of its rules changes (`WorkspaceTerms`). */
export const WORKSPACES_TOPIC = 'access.workspaces';
/** Announced with a guardrail's id when anything about it changes. */
export const GUARDRAILS_TOPIC = 'access.guardrails';

/** Beyond this number the oldest entry is dropped; it costs one query when it is presented again. */
const MAX_KNOWN_KEYS = 50_000;
export const MAX_UNKNOWN_KEYS = 10_000;
/** Concurrent lookups of unknown tokens; further ones get 503. */
export const MAX_LOOKUPS = 1_024;

/** A stored key, whether or not it may be used now. */
export interface KeyState {
  readonly caller: Caller;
  readonly disabled: boolean;
  /** False when the member who created the key has left the organization. */
  readonly creatorIsMember: boolean;
  /** Hash of the presented secret, if it differs from the key's own. */
  readonly presentedHash?: string;
  /** When that secret ends, wall time in ms; null: together with the key. */
  readonly aliasExpiresAt?: number | null;
}

interface AuthenticatorParts {
  changes: Pick<Changes, 'subscribe' | 'freshness'>;
  clock: Clock;
  /** Returns the keys among `hashes` that exist. */
  load: (hashes: string[]) => Promise<KeyState[]>;
  accessTokens?: AccessTokens | undefined;
}

/** JWTs that act for a key for a limited time; issued and verified in `sign-in/`. */
export interface AccessTokens {
  /**
   * The hash of the key that a token acts for; without a promise if the token was verified before. undefined: it is not
   * an access token, and may be a key. Throws or rejects with GatewayError: 401 for an expired or altered token, 503 if
   * it cannot be verified at the moment.
   */
  keyHashOf(token: string): string | undefined | Promise<string | undefined>;
}

interface Entry extends KeyState {
  readonly digest: Buffer;
  /** Monotonic time of the query that found it. */
  readonly readAt: number;
  /** Monotonic time since which changes of it may have been missed; null if none can have been. */
  staleSince: number | null;
}

interface Lookup {
  readonly promise: Promise<KeyState | undefined>;
  readonly settle: (state: KeyState | undefined) => void;
  readonly fail: (error: unknown) => void;
  /** Something changed while the query ran, so its result may be outdated. */
  outdated: boolean;
}

export class Authenticator {
  /** By the first digits of the hash; the others are compared in constant time. */
  readonly #known = new Map<string, Entry>();
  readonly #unknown = new Set<string>();
  /** Tokens of the next query, and of the running one. */
  readonly #waiting = new Map<string, Lookup>();
  #running: ReadonlyMap<string, Lookup> = new Map();
  readonly #presented = Buffer.alloc(64);
  readonly #freshness: Freshness;
  readonly #clock: Clock;
  readonly #load: (hashes: string[]) => Promise<KeyState[]>;
  readonly #accessTokens: AccessTokens | undefined;
  #querying = false;
  /** Keys that changed during the running query. */
  readonly #changed = new Set<string>();
  /** True if some cached key is cached under an alias. */
  #remembersAlias = false;

  constructor({ changes, clock, load, accessTokens }: AuthenticatorParts) {
    this.#freshness = changes.freshness;
    this.#clock = clock;
    this.#load = load;
    this.#accessTokens = accessTokens;
    changes.subscribe(KEYS_TOPIC, (hash) => (hash === null ? this.#markAllStale() : this.#forgetKey(hash)));
    const forgets = (topic: string, concerns: (caller: Caller, id: string) => boolean): void => {
      changes.subscribe(topic, (id) => {
        if (id === null) this.#markAllStale();
        else this.#forgetWhere((caller) => concerns(caller, id));
      });
    };
    forgets(MEMBERS_TOPIC, ({ userId }, id) => userId === id);
    forgets(WORKSPACES_TOPIC, ({ workspaceId }, id) => workspaceId === id);
    forgets(GUARDRAILS_TOPIC, ({ guardrails }, id) => guardrails.ids.includes(id));
  }

  /** See `Access.authenticate`. */
  authenticate(headers: IncomingHttpHeaders): Caller | Promise<Caller> {
    const token = presentedToken(headers);
    const keyHash = mayBeJwt(token) ? this.#accessTokens?.keyHashOf(token) : undefined;
    if (keyHash === undefined) return this.#callerOfSecret(token);
    if (typeof keyHash === 'string') return this.callerOfKey(keyHash);
    return keyHash.then((hash) => (hash === undefined ? this.#callerOfSecret(token) : this.callerOfKey(hash)));
  }

  /** See `Access.callerOfKey`. */
  callerOfKey(hash: string): Caller | Promise<Caller> {
    const state = this.#stateOf(hash);
    return state instanceof Promise ? state.then((key) => this.#admit(key, null)) : this.#admit(state, null);
  }

  #callerOfSecret(token: string): Caller | Promise<Caller> {
    // `presentedToken` also accepts the length of a JWT, which no key has.
    if (token.length > MAX_TOKEN_LENGTH) throw unauthorized('The API key is not valid.');
    const state = this.#stateOf(hashToken(token));
    const admit = (key: KeyState) => this.#admit(key, key.aliasExpiresAt ?? null);
    return state instanceof Promise ? state.then(admit) : admit(state);
  }

  #stateOf(hash: string): KeyState | Promise<KeyState> {
    const entry = this.#find(hash);
    if (this.#freshness.current) {
      if (entry?.staleSince === null) return entry;
      if (this.#unknown.has(hash)) throw unauthorized('The API key is not known.');
    }
    // An unknown key is still looked up: the database may be back before anything else notices.
    if (entry !== undefined && this.#inGrace(entry) && !this.#freshness.mayRead()) return entry;
    return this.#query(hash, entry);
  }

  #find(hash: string): Entry | undefined {
    const entry = this.#known.get(indexOf(hash));
    if (entry === undefined) return undefined;
    this.#presented.write(hash, 'latin1');
    return timingSafeEqual(this.#presented, entry.digest) ? entry : undefined;
  }

  /** @param secretEndsAt end of the presented secret; null: it ends with the key, or the key itself is meant */
  #admit(state: KeyState, secretEndsAt: number | null): Caller {
    const { caller } = state;
    if (state.disabled) throw unauthorized('The API key is disabled.');
    if (caller.expiresAt !== null && this.#clock.now() >= caller.expiresAt)
      throw unauthorized('The API key has expired.');
    if (secretEndsAt !== null && this.#clock.now() >= secretEndsAt)
      throw unauthorized('The API key was replaced by another one.');
    if (!state.creatorIsMember) {
      throw new GatewayError(
        'permission_denied',
        'The creator of this API key is no longer a member of the organization.',
      );
    }
    return caller;
  }

  #inGrace(entry: Entry): boolean {
    return this.#freshness.inGrace(entry.staleSince ?? this.#rightUntil(entry));
  }

  /** Time until which the entry is known to be current, unless a change of it was missed before. */
  #rightUntil({ readAt }: Entry): number {
    return Math.max(readAt, this.#freshness.provenAt);
  }

  async #query(hash: string, entry: Entry | undefined): Promise<KeyState> {
    let state: KeyState | undefined;
    try {
      state = await this.#lookUp(hash, entry !== undefined);
    } catch (error) {
      if (error instanceof TooManyLookups) throw keyUnchecked(error);
      // Look again: a change that arrived in the meantime has removed the entry.
      const known = this.#find(hash);
      if (known !== undefined && this.#inGrace(known)) return known;
      throw keyUnchecked(error);
    }
    if (state === undefined) throw unauthorized('The API key is not known.');
    return state;
  }

  /**
   * Joins a running query only while changes arrive, because they mark its result as outdated. Otherwise its result may
   * be older than the request.
   */
  #lookUp(hash: string, known: boolean): Promise<KeyState | undefined> {
    const pending = this.#waiting.get(hash) ?? (this.#freshness.current ? this.#running.get(hash) : undefined);
    if (pending !== undefined) return pending.promise;
    if (!known && this.#waiting.size + this.#running.size >= MAX_LOOKUPS) return Promise.reject(new TooManyLookups());
    const { promise, resolve, reject } = Promise.withResolvers<KeyState | undefined>();
    this.#waiting.set(hash, { promise, settle: resolve, fail: reject, outdated: false });
    if (!this.#querying) void this.#runQueries();
    return promise;
  }

  async #runQueries(): Promise<void> {
    this.#querying = true;
    while (this.#waiting.size > 0) {
      this.#running = new Map(this.#waiting);
      this.#waiting.clear();
      this.#changed.clear();
      const readAt = this.#clock.monotonic();
      try {
        const states = await this.#inTime(this.#load([...this.#running.keys()]));
        this.#freshness.read(true);
        const found = new Map(states.map((state) => [presentedHashOf(state), state]));
        for (const [hash, lookup] of this.#running) this.#answer(hash, lookup, found.get(hash), readAt);
      } catch (error) {
        for (const lookup of this.#running.values()) lookup.fail(error);
      }
      this.#running = new Map();
    }
    this.#querying = false;
  }

  async #inTime<T>(query: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = this.#clock.timer(READ_TIMEOUT_MS, () => {
      this.#freshness.read(false);
      reject(new Error('the database did not answer in time'));
    });
    try {
      return await Promise.race([query, promise]);
    } finally {
      timer.cancel();
    }
  }

  #answer(hash: string, lookup: Lookup, state: KeyState | undefined, readAt: number): void {
    // Changes name the key, not its aliases.
    if (lookup.outdated || (state && this.#changed.has(state.caller.keyHash))) {
      this.#requeue(hash, lookup);
      return;
    }
    if (state === undefined) this.#rememberUnknown(hash);
    else this.#remember(state, readAt);
    lookup.settle(state);
  }

  #requeue(hash: string, lookup: Lookup): void {
    lookup.outdated = false;
    const next = this.#waiting.get(hash);
    if (next === undefined) this.#waiting.set(hash, lookup);
    else next.promise.then(lookup.settle, lookup.fail);
  }

  #remember(state: KeyState, readAt: number): void {
    const hash = presentedHashOf(state);
    evictOldest(this.#known, MAX_KNOWN_KEYS);
    this.#known.set(indexOf(hash), { ...state, digest: Buffer.from(hash, 'latin1'), readAt, staleSince: null });
    if (hash !== state.caller.keyHash) this.#remembersAlias = true;
  }

  #rememberUnknown(hash: string): void {
    this.#known.delete(indexOf(hash));
    evictOldest(this.#unknown, MAX_UNKNOWN_KEYS);
    this.#unknown.add(hash);
  }

  #forgetKey(hash: string): void {
    this.#known.delete(indexOf(hash));
    this.#unknown.delete(hash);
    const lookup = this.#running.get(hash);
    if (lookup !== undefined) lookup.outdated = true;
    if (this.#querying) this.#changed.add(hash);
    if (!this.#remembersAlias) return;
    for (const [index, { caller }] of this.#known) if (caller.keyHash === hash) this.#known.delete(index);
  }

  #forgetWhere(concerned: (caller: Caller) => boolean): void {
    for (const [index, entry] of this.#known) if (concerned(entry.caller)) this.#known.delete(index);
    this.#outdateLookups();
  }

  /**
   * Changes may have been missed. Known keys stay usable for the grace period, and are looked up again as soon as
   * possible.
   */
  #markAllStale(): void {
    for (const entry of this.#known.values()) entry.staleSince ??= this.#rightUntil(entry);
    this.#unknown.clear();
    this.#outdateLookups();
  }

  #outdateLookups(): void {
    for (const lookup of this.#running.values()) lookup.outdated = true;
  }
}

class TooManyLookups extends Error {
  constructor() {
    super('too many keys are being looked up');
  }
}

const INDEX_DIGITS = 16;

function presentedHashOf(state: KeyState): string {
  return state.presentedHash ?? state.caller.keyHash;
}

function indexOf(hash: string): string {
  return hash.slice(0, INDEX_DIGITS);
}

function evictOldest(
  entries: { size: number; keys(): IterableIterator<string>; delete(key: string): boolean },
  max: number,
): void {
  if (entries.size < max) return;
  const oldest = entries.keys().next();
  if (!oldest.done) entries.delete(oldest.value);
}

/** 503: whether the key is valid is unknown; a 401 would make clients discard valid keys. */
function keyUnchecked(cause: unknown): GatewayError {
  return unavailable('The API key cannot be checked at the moment. Try again.', cause);
}
