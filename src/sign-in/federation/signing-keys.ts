/**
 * The signing keys of access tokens: P-256 keys, created with the first token and stored encrypted in the database.
 * Every process that has seen a token caches them and follows changes. A key is replaced when it is too old or when the
 * operator rotates it; it stays valid until its last token has expired. All processes know a new key before it signs
 * anything. On a machine that cannot decrypt a key, requests that need it get 503.
 */
import type { CryptoKey } from 'jose';
import { organizationId } from '../../access/index.ts';
import { type Author, gatewayAuthor, recordChange } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import { MAX_LIFETIME_MS } from '../../base/config.ts';
import type { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type Box, type Sealing, SealingError, sealedColumn } from '../../sealing/index.ts';
import { changeEverywhere } from '../../storage/change-everywhere.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { Followed } from '../../storage/followed.ts';
import { unavailable } from '../../storage/unavailable.ts';
import * as store from './store.ts';

export interface SigningKeyParts {
  database: Database;
  changes: Pick<Changes, 'announce' | 'subscribe' | 'freshness'>;
  clock: Clock;
  log: Log;
  sealing: Sealing;
}

interface SigningKey {
  /** RFC 7638 thumbprint. */
  id: string;
  publicKey: CryptoKey;
  privateKey: CryptoKey;
  /** As `GET /oauth/jwks` returns it. */
  jwk: { kty: 'EC'; crv: 'P-256'; x: string; y: string };
  /** Wall time in ms. */
  createdAt: number;
  retiredAt: number | null;
}

/** A key, and the `iss` and `aud` of its tokens. */
export interface Signer {
  key: SigningKey;
  issuer: string;
}

export const ALGORITHM = 'ES256';
/** Age at which a key is replaced. */
const ROTATE_AFTER_MS = 90 * 86_400_000;
/**
 * Minimum interval between lookups of an unknown key, which may have been missed while the database was unreachable.
 */
const LOOK_AGAIN_MS = 1_000;
const PURPOSE = 'federation';
const SEALED_COLUMN = 'sealed';
/** Announced with the id of a new key. */
const TOPIC = 'sign-in.signing-keys';

/** Rows to re-encrypt after a key rotation. Their content does not change, so nothing is announced. */
export const sealedSigningKeys = sealedColumn({ purpose: PURPOSE, table: 'federation_keys', column: SEALED_COLUMN });

interface Known {
  /** Keys that can be decrypted, the current one first. */
  keys: readonly SigningKey[];
  /** Keys that cannot be decrypted here. */
  unopened: readonly Pick<SigningKey, 'id' | 'retiredAt'>[];
  /** Id of the current key, whether or not it can be decrypted. */
  presentId: string | undefined;
  /** The gateway's name in its tokens. */
  issuer: string;
  /** Monotonic time in ms. */
  readAt: number;
}

export class SigningKeys {
  /** Why some keys cannot be decrypted here, for the operator; undefined if all keys needed so far can. */
  problem: string | undefined;
  readonly #parts: SigningKeyParts;
  readonly #followed: Followed<Known>;
  /** Ids already logged as not decryptable. */
  #logged = new Set<string>();
  #making: Promise<void> | undefined;

  /** @param changed drops cached verification results */
  constructor(parts: SigningKeyParts, changed: () => void) {
    this.#parts = parts;
    const { changes, clock, log } = parts;
    this.#followed = new Followed({
      ...{ changes, clock, log, topic: TOPIC, changed },
      name: 'The signing keys of access tokens',
      read: () => this.#load(),
    });
  }

  /** The key for new tokens. @throws GatewayError 503 */
  async signer(): Promise<Signer> {
    const known = await this.#current();
    const present = presentOf(known);
    const old = present === undefined || this.#parts.clock.now() - present.createdAt >= ROTATE_AFTER_MS;
    if (!old) return { key: present, issuer: known.issuer };
    try {
      this.#making ??= this.#make(present?.id).finally(() => {
        this.#making = undefined;
      });
      await this.#making;
    } catch (error) {
      if (present === undefined) throw error instanceof SealingError ? undecryptable(error) : error;
      this.#parts.log.warn('the signing key of access tokens is too old and cannot be replaced', { error });
    }
    const renewed = await this.#current();
    const key = presentOf(renewed);
    if (key === undefined) throw unavailable('Access tokens cannot be signed at the moment. Retry later.');
    return { key, issuer: renewed.issuer };
  }

  /** A key whose tokens may still be valid; undefined if it is not one of ours. @throws GatewayError 503 */
  async find(id: string): Promise<Signer | undefined> {
    let known = await this.#current();
    const isKnown = [...known.keys, ...known.unopened].some((key) => key.id === id);
    if (!isKnown && this.#parts.clock.monotonic() - known.readAt >= LOOK_AGAIN_MS) {
      await this.#followed.readNow();
      known = this.#followed.value!;
    }
    const now = this.#parts.clock.now();
    if (known.unopened.some((key) => key.id === id && lives(key, now))) throw undecryptable();
    const key = known.keys.find((one) => one.id === id && lives(one, now));
    return key && { key, issuer: known.issuer };
  }

  /** True if `find` would find it, from the cache only. */
  has(id: string): boolean {
    const now = this.#parts.clock.now();
    return this.#followed.value?.keys.some((key) => key.id === id && lives(key, now)) ?? false;
  }

  /** Like `Followed.refresh`; call it before `has`. */
  refresh(): Promise<void> | undefined {
    return this.#followed.refresh();
  }

  get current(): boolean {
    return this.#followed.current;
  }

  /** All keys whose tokens may still be valid. @throws GatewayError 503 */
  async all(): Promise<readonly SigningKey[]> {
    const { keys, unopened } = await this.#current();
    const now = this.#parts.clock.now();
    // A client that caches an incomplete list would refuse genuine tokens.
    if (unopened.some((key) => lives(key, now))) throw undecryptable();
    return keys.filter((key) => lives(key, now));
  }

  async #current(): Promise<Known> {
    await this.#followed.refresh();
    return this.#followed.value!;
  }

  async #make(present: string | undefined): Promise<void> {
    await rotateSigningKey(this.#parts, { author: gatewayAuthor, only: present });
    await this.#followed.readNow();
  }

  async #load(): Promise<Known> {
    const { database, sealing, clock } = this.#parts;
    const readAt = clock.monotonic();
    const rows = await store.signingKeys(database);
    const issuer = `urn:gatehouse:${await theOrganization(database)}`;
    const presentId = rows.find(({ retiredAt }) => retiredAt === null)?.id;
    const keys: SigningKey[] = [];
    const unopened: store.StoredSigningKey[] = [];
    let reason: string | undefined;
    try {
      const records = rows.map(({ sealed }) => sealed);
      const box = rows.length === 0 ? undefined : await sealing.opener(PURPOSE, records);
      for (const row of rows) {
        const text = opened(box!, row);
        if (text === undefined) unopened.push(row);
        else keys.push(await imported(row, text));
      }
    } catch (error) {
      if (!(error instanceof SealingError)) throw error;
      reason = error.message;
      unopened.push(...rows);
    }
    this.#report(unopened, reason);
    const named = unopened.map(({ id, retiredAt }) => ({ id, retiredAt: retiredAt?.getTime() ?? null }));
    return { keys, unopened: named, presentId, issuer, readAt };
  }

  /** Logs each key once, however often it is read. */
  #report(unopened: readonly { id: string }[], reason = 'their records were altered'): void {
    const { length } = unopened;
    this.problem =
      length === 0 ? undefined : `${length} signing keys of access tokens cannot be decrypted here: ${reason}`;
    const fresh = unopened.filter(({ id }) => !this.#logged.has(id)).map(({ id }) => id);
    this.#logged = new Set(unopened.map(({ id }) => id));
    if (fresh.length > 0)
      this.#parts.log.error('signing keys of access tokens cannot be decrypted', { ids: fresh, reason });
  }
}

function opened(box: Box, { id, sealed }: store.StoredSigningKey): string | undefined {
  try {
    return box.open(id, SEALED_COLUMN, sealed);
  } catch (error) {
    if (!(error instanceof SealingError)) throw error;
    return undefined;
  }
}

function undecryptable(cause?: unknown): GatewayError {
  return unavailable(
    'The signing keys of access tokens cannot be decrypted on this machine. The operator must provide the ' +
      "installation's key for stored credentials (gatehouse doctor).",
    cause,
  );
}

/** True if tokens of this key may still be valid. */
function lives({ retiredAt }: Pick<SigningKey, 'retiredAt'>, nowMs: number): boolean {
  return retiredAt === null || nowMs < retiredAt + MAX_LIFETIME_MS;
}

/** undefined if there is none. @throws GatewayError 503 if it cannot be decrypted */
function presentOf({ keys, presentId }: Known): SigningKey | undefined {
  const present = keys.find(({ id }) => id === presentId);
  if (present === undefined && presentId !== undefined) throw undecryptable();
  return present;
}

interface Rotation {
  author: (organizationId: string, at: number) => Author;
  /** Rotate only if this key is still the current one (undefined: if there is no current one). Absent: always. */
  only?: string | undefined;
  /** Ends all previously issued tokens at once. */
  endsTokens?: boolean;
}

/**
 * Replaces the current key, or creates the first one.
 *
 * @returns the new key's id; undefined if nothing changed
 * @throws SealingError, GatewayError 503
 */
export async function rotateSigningKey(
  parts: Pick<SigningKeyParts, 'database' | 'clock' | 'sealing'> & { changes: Pick<Changes, 'announce'> },
  rotation: Rotation,
): Promise<string | undefined> {
  const box = await parts.sealing.sealer(PURPOSE);
  const { id, text } = await newKey();
  const sealed = box.seal(id, SEALED_COLUMN, text);
  return changeEverywhere(parts, async (tx, announce) => {
    const createdAt = new Date(parts.clock.now());
    await store.lockSigningKeys(tx);
    const before = (await store.signingKeys(tx)).find(({ retiredAt }) => retiredAt === null);
    if ('only' in rotation && before?.id !== rotation.only) return undefined;
    await store.retireSigningKey(tx, createdAt);
    const ended = rotation.endsTokens ? createdAt : new Date(createdAt.getTime() - MAX_LIFETIME_MS);
    await store.deleteRetiredBefore(tx, ended);
    await store.insertSigningKey(tx, { id, sealed, createdAt });
    await record(tx, rotation, before, { id, createdAt });
    await announce(TOPIC, id);
    return id;
  });
}

type Named = Pick<store.StoredSigningKey, 'id' | 'createdAt'>;

async function record(tx: Queryable, rotation: Rotation, before: Named | undefined, after: Named): Promise<void> {
  const organization = await theOrganization(tx);
  const state = ({ id, createdAt }: Named) => ({ kid: id, alg: ALGORITHM, created_at: createdAt.toISOString() });
  await recordChange(tx, rotation.author(organization, after.createdAt.getTime()), {
    action: before === undefined ? 'signing_key.created' : 'signing_key.rotated',
    ...{ resourceType: 'signing_key', resourceId: after.id, workspaceId: null },
    before: before && state(before),
    after: { ...state(after), ...(rotation.endsTokens && { ends_tokens: true }) },
  });
}

async function theOrganization(db: Queryable): Promise<string> {
  const id = await organizationId(db);
  if (id === undefined) throw unavailable('The gateway has not created its organization yet. Retry later.');
  return id;
}

async function newKey(): Promise<{ id: string; text: string }> {
  const { calculateJwkThumbprint, exportJWK, generateKeyPair } = await import('jose');
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { id: await calculateJwkThumbprint(jwk), text: JSON.stringify(jwk) };
}

async function imported({ id, createdAt, retiredAt }: store.StoredSigningKey, text: string): Promise<SigningKey> {
  const { importJWK } = await import('jose');
  const { x, y, d } = JSON.parse(text) as { x: string; y: string; d: string };
  const jwk = { kty: 'EC', crv: 'P-256', x, y } as const;
  return {
    ...{ id, jwk, createdAt: createdAt.getTime(), retiredAt: retiredAt?.getTime() ?? null },
    publicKey: (await importJWK(jwk, ALGORITHM)) as CryptoKey,
    privateKey: (await importJWK({ ...jwk, d }, ALGORITHM)) as CryptoKey,
  };
}
