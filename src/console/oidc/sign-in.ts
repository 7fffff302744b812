/**
 * Signing in at the identity provider: from the sign-in page there, and back with a session. A session acts for a
 * management key of the member, made with the first sign-in, so that it ends when the member leaves the organization.
 *
 * Nothing is stored meanwhile: the state, the nonce and the PKCE verifier are in a cookie that scripts cannot read. A
 * response of the provider is of use only to the browser that began.
 */
import { issueMemberKey, namedKeys, organizationId } from '../../access/index.ts';
import type { Author } from '../../audit/index.ts';
import type { OidcSettings } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Exchange } from '../../http/operation.ts';
import type { Database, Queryable } from '../../storage/database.ts';
import { unavailable } from '../../storage/unavailable.ts';
import { oidcCookie, oidcValues } from '../cookie.ts';
import type { OidcCallback } from '../schema.ts';
import { type ConsoleSessions, originOf } from '../sessions.ts';
import * as store from '../store.ts';
import type { Claims } from './claims.ts';
import { adminOf, type Refusal } from './member.ts';
import { type Attempt, OidcProvider, type ProviderParts } from './provider.ts';

interface OidcParts extends ProviderParts {
  database: Database;
  log: Log;
  sessions: ConsoleSessions;
  /** null: people sign in with a management key. */
  settings(): OidcSettings | null;
}

type Place = Pick<
  Exchange,
  'headers' | 'protocol' | 'host' | 'prefix' | 'query' | 'requestId' | 'clientAddress' | 'startedAt'
>;

/** Why a person comes back without a session; the sign-in page says it. */
type Problem = Refusal | 'expired' | 'denied' | 'failed';

class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem, cause?: unknown) {
    super(problem, { cause });
    this.problem = problem;
  }
}

const CALLBACK = '/console/session/oidc';
/** To sign in at the provider. */
const ATTEMPT_S = 600;

export class OidcSignIn {
  readonly #parts: OidcParts;
  readonly #provider: OidcProvider;

  constructor(parts: OidcParts) {
    this.#parts = parts;
    this.#provider = new OidcProvider(parts);
  }

  get name(): string | undefined {
    return this.#parts.settings()?.name;
  }

  /** The URL that the browser must open, and the `Set-Cookie` that ties the callback to this browser. */
  async begin(exchange: Place): Promise<{ url: string; cookie: string }> {
    const settings = this.#required();
    const origin = originOf(exchange);
    try {
      const { url, attempt } = await this.#provider.begin(settings, redirectUri(settings, origin, exchange.prefix));
      const { state, nonce, verifier } = attempt;
      const value = [state, nonce, verifier, Buffer.from(origin).toString('base64url')].join('.');
      const place = { origin, prefix: exchange.prefix, installation: await this.#parts.sessions.installation() };
      return { url, cookie: oidcCookie(value, place, ATTEMPT_S) };
    } catch (cause) {
      this.#parts.log.warn('the identity provider of the console cannot be used', { cause });
      throw unavailable('The identity provider cannot be reached. Try again later.', cause);
    }
  }

  /** The person is back: cookies to set, and the problem if there is no session. */
  async finish(exchange: Place): Promise<{ cookies: string[]; problem: Problem | null }> {
    const installation = await this.#parts.sessions.installation();
    const begun = attemptOf(exchange.headers.cookie, installation);
    if (begun === undefined) return { cookies: [], problem: 'expired' };
    const { prefix } = exchange;
    const cookies = [oidcCookie('', { origin: begun.origin, prefix, installation }, 0)];
    try {
      cookies.push(await this.#session(exchange, begun));
      return { cookies, problem: null };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const { problem, cause } = error;
      this.#parts.log.warn('a sign-in to the console was refused', { reason: problem, cause });
      return { cookies, problem };
    }
  }

  /** Where a member signs out of the provider as well; null for other sessions. */
  async signOutUrl(session: store.StoredSession, prefix: string): Promise<string | null> {
    const settings = this.#parts.settings();
    if (settings === null || session.userId === null) return null;
    const page = redirectUri(settings, session.origin, prefix).replace(/session\/oidc$/, '');
    return this.#provider.signOutUrl(settings, page).catch(() => null);
  }

  async #session(exchange: Place, { origin, ...attempt }: Begun): Promise<string> {
    const settings = this.#required();
    const callback = new URL(redirectUri(settings, origin, exchange.prefix));
    for (const [name, value] of Object.entries(exchange.query as OidcCallback)) callback.searchParams.set(name, value);
    const claims = await this.#provider.finish(settings, callback, attempt).catch((cause: unknown) => {
      throw new Refused(isDenial(cause) ? 'denied' : 'failed', cause);
    });
    const { database, sessions } = this.#parts;
    const organization = await organizationId(database);
    if (organization === undefined) throw new Refused('not_member');
    const author = authorOf(exchange, organization);
    return sessions.signInMember(exchange, origin, author, (tx) => this.#memberKey(tx, author, settings, claims));
  }

  async #memberKey(tx: Queryable, author: Author, settings: OidcSettings, claims: Claims) {
    const { organizationId: organization } = author;
    const member = await adminOf(tx, organization, settings, claims);
    if (typeof member === 'string') throw new Refused(member);
    const { userId, label } = member;
    author.userId = userId;
    const known = await store.personKey(tx, userId);
    const isKept = known !== undefined && (await namedKeys(tx, organization, [known])).has(known);
    if (isKept) return { userId, keyHash: known };
    const now = this.#parts.clock.now();
    const keyHash = await issueMemberKey(tx, author, { userId, name: `Console, ${label}` }, now);
    await store.setPersonKey(tx, userId, keyHash);
    return { userId, keyHash };
  }

  #required(): OidcSettings {
    const settings = this.#parts.settings();
    if (settings !== null) return settings;
    throw new GatewayError('not_found', 'No identity provider is configured for the console.');
  }
}

interface Begun extends Attempt {
  /** Of the page that began. */
  origin: string;
}

function attemptOf(cookies: string | undefined, installation: string): Begun | undefined {
  const [value] = oidcValues(cookies, installation).tokens;
  const [state, nonce, verifier, encoded] = value?.split('.') ?? [];
  if (state === undefined || nonce === undefined || verifier === undefined || encoded === undefined) return undefined;
  const origin = URL.parse(Buffer.from(encoded, 'base64url').toString())?.origin;
  return origin === undefined || origin === 'null' ? undefined : { state, nonce, verifier, origin };
}

function redirectUri({ redirectUri: configured }: OidcSettings, origin: string, prefix: string): string {
  return configured ?? `${origin}${prefix}${CALLBACK}`;
}

function authorOf({ requestId, clientAddress, startedAt }: Place, organization: string): Author {
  return {
    ...{ organizationId: organization, type: 'sign_in', keyHash: null, keyLabel: null, userId: null },
    ...{ requestId, sourceAddress: clientAddress ?? null, at: startedAt },
  };
}

/** The person or the provider refused the sign-in. */
function isDenial(error: unknown): boolean {
  return (error as { error?: unknown }).error === 'access_denied';
}
