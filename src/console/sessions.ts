/**
 * Sessions of the console. A session acts for the management key that signed it in, and runs models with an inference
 * key if it was given one: it can do what these keys can, and ends with the management key. Every request reads the
 * session from the database, so all processes agree and signing out takes effect at once.
 *
 * A page of another site can do nothing with the cookie: browsers do not send it (`SameSite=Strict`), requests need a
 * header that such a page cannot add (`http/cors.ts` never allows credentials), and their origin must be the one that
 * signed in.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type Access, type Caller, checkKind, hashToken, isToken, organizationId } from '../access/index.ts';
import { type Author, authorOf, type Changed, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { INFERENCE, MANAGEMENT } from '../http/access-rule.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { publicUrl } from '../http/public-url.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { installationOf, sessionCookie, sessionTokens } from './cookie.ts';
import type { SignInBody } from './schema.ts';
import * as store from './store.ts';

interface SessionParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  access: Pick<Access, 'authenticate' | 'callerOfKey'>;
}

/** A request that is being authenticated. */
interface Presented {
  headers: IncomingHttpHeaders;
  operation: Operation<Caller>;
}

type Place = Pick<Exchange<Caller>, 'headers' | 'protocol' | 'host' | 'prefix'>;

export interface SignedIn {
  management: Caller;
  /** null: the session cannot run models yet, or no longer. */
  inference: Caller | null;
  expiresAt: Date;
}

/** Set by the console's own requests; a page of another origin cannot. */
const MARK = 'x-gatehouse-console';
const LIFE_MS = 7 * 86_400_000;
/** Roles and membership may change at the identity provider. */
const MEMBER_LIFE_MS = 12 * 3_600_000;
const IDLE_MS = 86_400_000;
/** How late the time of the last use may be. */
const USE_MS = 300_000;
const LINK_LIFE_MS = 3_600_000;
const MOST_PER_KEY = 50;
const ORIGIN = /^https?:\/\/[\w.:[\]-]{1,260}$/;

export class ConsoleSessions {
  readonly #parts: SessionParts;

  #installation: string | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** True if a request without a key has a session instead. */
  static isPresented(headers: IncomingHttpHeaders): boolean {
    return headers.authorization === undefined && headers.cookie !== undefined && headers[MARK] !== undefined;
  }

  /**
   * The caller of a request that presents a session: the inference key for operations that only inference keys may
   * call, otherwise the management key. Rejects with 401 without a live session, and with 403 if it has no inference key.
   */
  async callerOf({ headers, operation }: Presented): Promise<Caller> {
    const session = await this.#sessionOf(headers);
    if (session === undefined) throw unauthorized('The console session has ended. Sign in again.');
    const { kinds } = operation.access;
    const management = await this.#parts.access.callerOfKey(session.keyHash);
    if (kinds === 'anyone' || kinds.includes('management')) return management;
    if (session.inferenceKeyHash !== null) return this.#parts.access.callerOfKey(session.inferenceKeyHash);
    throw new GatewayError('permission_denied', 'This needs an inference key. Choose one for the console.');
  }

  /** Undefined if the browser is not signed in. */
  async current({ headers }: Place): Promise<SignedIn | undefined> {
    if (headers[MARK] === undefined) return undefined;
    const session = await this.#sessionOf(headers);
    return session && this.#signedIn(session);
  }

  /** Signs in with a management key or the code of a one-time link; returns the session and its `Set-Cookie`. */
  async signIn(exchange: Exchange<Caller>, { key, code }: SignInBody): Promise<{ signedIn: SignedIn; cookie: string }> {
    if ((key === undefined) === (code === undefined)) throw invalidField('key', 'or code must be given, and not both');
    const origin = originOf(exchange);
    const { database, changes, clock } = this.#parts;
    const now = clock.now();
    const keys = code === undefined ? await this.#keysOf(key ?? '') : await this.#keysOfCode(code, now);
    const caller = await this.#parts.access.callerOfKey(keys.keyHash);
    checkKind(caller, MANAGEMENT.kinds);
    const { session, token } = newSession({ ...keys, origin, userId: null }, now, LIFE_MS);
    const { requestId, clientAddress, startedAt } = exchange;
    const author = authorOf({ requestId, clientAddress, startedAt, caller });
    await changeAs(author, { database, changes }, (tx, changed) =>
      insert(tx, changed, session, { one_time_link: code !== undefined }),
    );
    const place = { origin, prefix: exchange.prefix, installation: await this.installation() };
    const cookie = sessionCookie(token, place, LIFE_MS / 1000);
    return { signedIn: await this.#signedIn(session), cookie };
  }

  /**
   * Begins the session of a member who has signed in elsewhere; returns its `Set-Cookie`.
   * @param origin of the page that began to sign in
   * @param find the member, and the management key that the session acts for; what it throws is thrown
   */
  async signInMember(
    { prefix }: Place,
    origin: string,
    author: Author,
    find: (tx: Queryable) => Promise<{ userId: string; keyHash: string }>,
  ): Promise<string> {
    const { database, changes, clock } = this.#parts;
    const token = await changeAs(author, { database, changes }, async (tx, changed) => {
      const keys = { ...(await find(tx)), inferenceKeyHash: null };
      const begun = newSession({ ...keys, origin }, clock.now(), MEMBER_LIFE_MS);
      await insert(tx, changed, begun.session, { user_id: keys.userId });
      return begun.token;
    });
    return sessionCookie(token, { origin, prefix, installation: await this.installation() }, MEMBER_LIFE_MS / 1000);
  }

  /** Makes the session run models with another inference key, or with none. */
  async useInferenceKey({ headers }: Place, key: string | null): Promise<SignedIn> {
    const session = await this.#required(headers);
    let hash: string | null = null;
    if (key !== null) {
      const caller = await this.#callerOf(key);
      checkKind(caller, INFERENCE.kinds);
      const own = await this.#parts.access.callerOfKey(session.keyHash);
      if (caller.organizationId !== own.organizationId) throw invalidField('key', 'belongs to another organization');
      hash = caller.keyHash;
    }
    await store.setInferenceKey(this.#parts.database, session.hash, hash);
    return this.#signedIn({ ...session, inferenceKeyHash: hash });
  }

  /** Returns the `Set-Cookie` that removes the cookie, and the session that has ended. */
  async signOut(place: Place): Promise<{ cookie: string; session: store.StoredSession }> {
    const session = await this.#required(place.headers);
    await store.deleteSession(this.#parts.database, session.hash);
    const own = { origin: session.origin, prefix: place.prefix, installation: await this.installation() };
    return { cookie: sessionCookie('', own, 0), session };
  }

  /** The code of a link that signs in once, within an hour. */
  async createLink(keys: store.LinkedKeys): Promise<string> {
    const { database, clock } = this.#parts;
    const code = randomBytes(32).toString('base64url');
    const now = clock.now();
    const link = { ...keys, hash: hashToken(code), expiresAt: new Date(now + LINK_LIFE_MS) };
    await store.insertLink(database, link, new Date(now));
    return code;
  }

  /** As cookies name it; empty before the first start has created its keys. */
  async installation(): Promise<string> {
    if (this.#installation !== undefined) return this.#installation;
    const organization = await organizationId(this.#parts.database);
    if (organization !== undefined) this.#installation = installationOf(organization);
    return this.#installation ?? '';
  }

  async #required(headers: IncomingHttpHeaders): Promise<store.StoredSession> {
    const session = headers[MARK] === undefined ? undefined : await this.#sessionOf(headers);
    if (session === undefined) throw unauthorized('The console session has ended. Sign in again.');
    return session;
  }

  async #sessionOf(headers: IncomingHttpHeaders): Promise<store.StoredSession | undefined> {
    const { tokens, arePrefixed } = sessionTokens(headers.cookie, await this.installation());
    if (tokens.length === 0 || isForeign(headers)) return undefined;
    const { database, clock } = this.#parts;
    const now = clock.now();
    const idleSince = new Date(now - IDLE_MS);
    const sessions = await store.liveSessions(database, tokens.map(hashToken), new Date(now), idleSince);
    const { origin } = headers;
    // A session of an https origin is only ever in a cookie with a prefix.
    const session = sessions.find(
      (each) => (origin === undefined || each.origin === origin) && (arePrefixed || !each.origin.startsWith('https:')),
    );
    if (session !== undefined && now - session.usedAt.getTime() > USE_MS) {
      await store.markUsed(database, session.hash, new Date(now));
    }
    return session;
  }

  async #signedIn({ keyHash, inferenceKeyHash, expiresAt }: store.StoredSession): Promise<SignedIn> {
    const { access } = this.#parts;
    const management = await access.callerOfKey(keyHash);
    const inference = inferenceKeyHash === null ? null : await usable(() => access.callerOfKey(inferenceKeyHash));
    return { management, inference, expiresAt };
  }

  async #keysOf(key: string): Promise<store.LinkedKeys> {
    return { keyHash: (await this.#callerOf(key)).keyHash, inferenceKeyHash: null };
  }

  async #callerOf(key: string): Promise<Caller> {
    if (!isToken(key)) throw unauthorized('The API key is not valid.');
    return this.#parts.access.authenticate({ authorization: `Bearer ${key}` });
  }

  async #keysOfCode(code: string, now: number): Promise<store.LinkedKeys> {
    const keys = await store.takeLink(this.#parts.database, hashToken(code), new Date(now));
    if (keys !== undefined) return keys;
    throw unauthorized('This link was already used or has expired. Sign in with a management key.');
  }
}

function newSession(
  facts: Pick<store.StoredSession, 'keyHash' | 'inferenceKeyHash' | 'origin' | 'userId'>,
  now: number,
  lifeMs: number,
): { session: store.StoredSession; token: string } {
  const token = randomBytes(32).toString('base64url');
  const life = { createdAt: new Date(now), usedAt: new Date(now), expiresAt: new Date(now + lifeMs) };
  return { session: { ...facts, ...life, hash: hashToken(token) }, token };
}

/** @param more what the audit log says of it */
async function insert(tx: Queryable, changed: Changed, session: store.StoredSession, more: object): Promise<void> {
  await store.insertSession(tx, session, MOST_PER_KEY);
  const resource = { resourceType: 'console_session', resourceId: session.hash, workspaceId: null };
  const after = { origin: session.origin, ...more, expires_at: session.expiresAt.toISOString() };
  await changed({ action: 'console_session.created', ...resource, after });
}

/** The origin of the page that signs in, as its browser reports it. Other clients need not say. */
export function originOf(exchange: Place): string {
  if (isForeign(exchange.headers)) throw new GatewayError('permission_denied', 'The request comes from another site.');
  const { origin } = exchange.headers;
  if (origin === undefined) return new URL(publicUrl(exchange)).origin;
  if (!ORIGIN.test(origin) || !URL.canParse(origin))
    throw new GatewayError('permission_denied', 'The request has no usable origin.');
  return origin;
}

function isForeign(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin';
}

/** null where the key was disabled or deleted meanwhile. */
async function usable(caller: () => Caller | Promise<Caller>): Promise<Caller | null> {
  try {
    return await caller();
  } catch (error) {
    if (error instanceof GatewayError && error.status < 500) return null;
    throw error;
  }
}

function unauthorized(message: string): GatewayError {
  return new GatewayError('authentication', message);
}
