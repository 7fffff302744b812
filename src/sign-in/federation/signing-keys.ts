/**
 * What access tokens are signed with: a P-256 key of the installation, made when the first token is issued, sealed in the
 * database, and in the memory of every process that has met a token, followed by changes. Another one takes its place when it
 * has grown old or the operator says so; the one before it counts until its last token has ended. A new key is known to every
 * process before anything is signed with it. On a machine that cannot decrypt a key, whatever needs it is 503.
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

export interface SigningKey {
  /** RFC 7638 thumbprint. */
  id: string;
  publicKey: CryptoKey;
  privateKey: CryptoKey;
  /** As `GET /oauth/jwks` shows it. */
  jwk: { kty: 'EC'; crv: 'P-256'; x: string; y: string };
  /** Wall time in ms. */
  createdAt: number;
  retiredAt: number | null;
}

/** A key, and the name that its tokens have as `iss` and `aud`. */
export interface Signer {
  key: SigningKey;
  issuer: string;
}

export const ALGORITHM = 'ES256';
/** Another key takes its place when it is older. */
const ROTATE_AFTER_MS = 90 * 86_400_000;
/** For a key that nobody has told of, such as while the database was away. */
const LOOK_AGAIN_MS = 1_000;
const PURPOSE = 'federation';
const SEALED_COLUMN = 'sealed';
/** Announced with a key's id when it has taken another's place. */
const TOPIC = 'sign-in.signing-keys';

/** The rows that a newer key is to seal. What they say does not change, so nobody is told. */
export const sealedSigningKeys = sealedColumn({ purpose: PURPOSE, table: 'federation_keys', column: SEALED_COLUMN });

interface Known {
  /** Those that can be opened, the present one first. */
  keys: readonly SigningKey[];
  /** Those that cannot be opened here. */
  unopened: readonly Pick<SigningKey, 'id' | 'retiredAt'>[];
  /** Of the present one, whether it can be opened or not. */
  presentId: string | undefined;
  /** Names this gateway in its tokens. */
  issuer: string;
  /** Monotonic time in ms. */
  readAt: number;
}

export class SigningKeys {
  /** Why some cannot be opened here, in words for the operator; undefined: all can, as far as they were needed. */
  problem: string | undefined;
  readonly #parts: SigningKeyParts;
  readonly #followed: Followed<Known>;
  /** Ids of those that were logged because they cannot be opened. */
  #logged = new Set<string>();
  #making: Promise<void> | undefined;

  /** @param changed what was verified with these keys is to be verified again */
  constructor(parts: SigningKeyParts, changed: () => void) {
    this.#parts = parts;
    const { changes, clock, log } = parts;
    this.#followed = new Followed({
      ...{ changes, clock, log, topic: TOPIC, changed },
      name: 'The keys that access tokens are signed with',
      read: () => this.#load(),
    });
  }

  /** The one that signs. @throws GatewayError 503 */
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
      this.#parts.log.warn('the key of access tokens is old, and none can take its place', { error });
    }
    const renewed = await this.#current();
    const key = presentOf(renewed);
    if (key === undefined) throw unavailable('Access tokens cannot be signed at the moment. Try again.');
    return { key, issuer: renewed.issuer };
  }

  /** A key that tokens may be signed with still; undefined: it is none of ours. @throws GatewayError 503 */
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

  /** Whether `find` would find it, as far as is known; at once. */
  has(id: string): boolean {
    const now = this.#parts.clock.now();
    return this.#followed.value?.keys.some((key) => key.id === id && lives(key, now)) ?? false;
  }

  /** As `Followed.refresh`; to be called before `has`. */
  refresh(): Promise<void> | undefined {
    return this.#followed.refresh();
  }

  get current(): boolean {
    return this.#followed.current;
  }

  /** All that a token may be signed with now. @throws GatewayError 503 */
  async all(): Promise<readonly SigningKey[]> {
    const { keys, unopened } = await this.#current();
    const now = this.#parts.clock.now();
    // Whoever keeps an incomplete list refuses tokens that are genuine.
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

  /** Once for each key, however often they are read. */
  #report(unopened: readonly { id: string }[], reason = 'their records were altered'): void {
    const { length } = unopened;
    this.problem = length === 0 ? undefined : `${length} keys of access tokens cannot be opened here: ${reason}`;
    const fresh = unopened.filter(({ id }) => !this.#logged.has(id)).map(({ id }) => id);
    this.#logged = new Set(unopened.map(({ id }) => id));
    if (fresh.length > 0) this.#parts.log.error('keys of access tokens cannot be opened', { ids: fresh, reason });
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
    'The keys that access tokens are signed with cannot be decrypted on this machine. The operator has to give it the ' +
      "installation's key for stored credentials (gatehouse doctor).",
    cause,
  );
}

/** Whether a token that it has signed may live still. */
function lives({ retiredAt }: Pick<SigningKey, 'retiredAt'>, nowMs: number): boolean {
  return retiredAt === null || nowMs < retiredAt + MAX_LIFETIME_MS;
}

/** undefined: there is none. @throws GatewayError 503 for one that cannot be opened */
function presentOf({ keys, presentId }: Known): SigningKey | undefined {
  const present = keys.find(({ id }) => id === presentId);
  if (present === undefined && presentId !== undefined) throw undecryptable();
  return present;
}

export interface Rotation {
  author: (organizationId: string, at: number) => Author;
  /** Nothing happens when another key than this one signs by now; undefined there: when any does. Absent: always. */
  only?: string | undefined;
  /** All tokens that were issued before end at once. */
  endsTokens?: boolean;
}

/**
 * Another key takes the place of the present one, or becomes the first.
 *
 * @returns its id; undefined where nothing happened
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
  if (id === undefined) throw unavailable('The gateway has not made its organization yet. Try again.');
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
