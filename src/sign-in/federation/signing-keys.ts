/**
 * What access tokens are signed with: a P-256 key of the installation, made when the first token is issued, sealed in the
 * database, and in the memory of every process that has met a token. Another one takes its place when it has grown old or the
 * operator says so; the one before it counts until its last token has ended. A new key is known to every process before
 * anything is signed with it.
 */
import type { CryptoKey } from 'jose';
import { organizationId } from '../../access/index.ts';
import { type Author, gatewayAuthor, recordChange } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import { MAX_LIFETIME_MS } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import { type Sealing, SealingError, sealedColumn } from '../../sealing/index.ts';
import { changeEverywhere } from '../../storage/change-everywhere.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { unavailable } from '../../storage/unavailable.ts';
import * as store from './store.ts';

export interface SigningKeyParts {
  database: Database;
  changes: Pick<Changes, 'announce' | 'subscribe'>;
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
  /** Of the present one, whether it can be opened or not. */
  presentId: string | undefined;
  /** Names this gateway in its tokens. */
  issuer: string;
  /** Monotonic time in ms. */
  readAt: number;
}

export class SigningKeys {
  readonly #parts: SigningKeyParts;
  readonly #changed: () => void;
  #known: Known | undefined;
  #outdated = false;
  #reading: Promise<void> | undefined;
  #making: Promise<void> | undefined;

  /** @param changed what was verified with these keys is to be verified anew */
  constructor(parts: SigningKeyParts, changed: () => void) {
    this.#parts = parts;
    this.#changed = changed;
    parts.changes.subscribe(TOPIC, () => this.#readAgain());
  }

  /** The one that signs. @throws GatewayError 503, SealingError */
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
      if (present === undefined) throw error;
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
    if (!known.keys.some((key) => key.id === id) && this.#parts.clock.monotonic() - known.readAt >= LOOK_AGAIN_MS) {
      await this.#read();
      known = this.#known!;
    }
    const key = this.#living(known).find((one) => one.id === id);
    return key && { key, issuer: known.issuer };
  }

  /** Whether `find` would find it, as far as is known; at once. */
  has(id: string): boolean {
    const now = this.#parts.clock.now();
    return this.#known?.keys.some((key) => key.id === id && lives(key, now)) ?? false;
  }

  /** All that a token may be signed with now. @throws GatewayError 503 */
  async all(): Promise<readonly SigningKey[]> {
    return this.#living(await this.#current());
  }

  #living({ keys }: Known): SigningKey[] {
    const now = this.#parts.clock.now();
    return keys.filter((key) => lives(key, now));
  }

  /** As they are now, or, where they cannot be read, as they were. */
  async #current(): Promise<Known> {
    if (this.#known !== undefined && !this.#outdated) return this.#known;
    await this.#read().catch((error: unknown) => {
      if (this.#known === undefined) throw error;
    });
    return this.#known!;
  }

  async #make(present: string | undefined): Promise<void> {
    await rotateSigningKey(this.#parts, { author: gatewayAuthor, only: present });
    // Everybody has heard of it by now, this process too; where its listener is away it is asked for.
    await this.#readAgain();
  }

  /** Resolves when what is known is no older than this call, or cannot be read. */
  async #readAgain(): Promise<void> {
    this.#changed();
    this.#outdated = true;
    // Who has met no token yet reads them with the first one.
    if (this.#known === undefined && this.#reading === undefined) return;
    await this.#read().catch((error: unknown) => {
      this.#parts.log.warn('the keys of access tokens cannot be read; those that were known go on', { error });
    });
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readUntilCurrent().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readUntilCurrent(): Promise<void> {
    do {
      this.#outdated = false;
      try {
        this.#known = await this.#load();
      } catch (error) {
        this.#outdated = true;
        throw error;
      }
    } while (this.#outdated);
  }

  async #load(): Promise<Known> {
    const { database, sealing, clock, log } = this.#parts;
    const readAt = clock.monotonic();
    const rows = await store.signingKeys(database);
    const issuer = `urn:gatehouse:${await theOrganization(database)}`;
    const presentId = rows.find(({ retiredAt }) => retiredAt === null)?.id;
    if (rows.length === 0) return { keys: [], presentId, issuer, readAt };
    const records = rows.map(({ sealed }) => sealed);
    const box = await sealing.opener(PURPOSE, records);
    const keys: SigningKey[] = [];
    for (const row of rows) {
      try {
        keys.push(await imported(row, box.open(row.id, SEALED_COLUMN, row.sealed)));
      } catch (error) {
        if (!(error instanceof SealingError)) throw error;
        log.error('a key of access tokens cannot be opened', { id: row.id, error });
      }
    }
    return { keys, presentId, issuer, readAt };
  }
}

/** Whether a token that it has signed may live still. */
function lives({ retiredAt }: SigningKey, nowMs: number): boolean {
  return retiredAt === null || nowMs < retiredAt + MAX_LIFETIME_MS;
}

/** undefined: there is none. @throws SealingError for one that cannot be opened */
function presentOf({ keys, presentId }: Known): SigningKey | undefined {
  const present = keys.find(({ id }) => id === presentId);
  if (present === undefined && presentId !== undefined) {
    throw new SealingError(
      'the key that access tokens are signed with cannot be opened (gatehouse federation rotate-key)',
    );
  }
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
