/** Manages the keys, and encrypts with them. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { SealingSettings } from '../base/config.ts';
import type { Database, Queryable } from '../storage/database.ts';
import type { Freshness } from '../storage/freshness.ts';
import { type FoundKey, readKey, readOrMakeKey } from './key-source.ts';
import { FIRST_VERSION, keyUnder, sealCanary, unwrapDataKey, wrapDataKey, wrongKey } from './keys.ts';
import {
  KEY_BYTES,
  openRecord,
  recordHeader,
  recordVersion,
  SealingError,
  type SealingKey,
  sealRecord,
} from './record.ts';
import { insertCanary, insertDataKey, lockKeys, readCanary, readKeys, type WrappedKey } from './store.ts';

/** Announced with a purpose when it gets a new key. */
export const SEALING_TOPIC = 'sealing.keys';
/** Attempts to match canary and key, because a rotation may happen between reading the two. */
const ATTEMPTS = 3;
const MARK_MISSING = 'the database lacks the canary of its encryption key';

export interface SealingParts {
  database: Database;
  clock: Clock;
  settings: SealingSettings;
  /** Whether this process is notified of new keys; absent for short-lived processes. */
  freshness?: Pick<Freshness, 'current'>;
}

/** Encrypts and decrypts the values of one purpose. */
export interface Box {
  /** The first bytes of the records that `seal` creates. */
  readonly header: Buffer;
  /** @param id of the row, @param column that stores the record */
  seal(id: string, column: string, text: string): Buffer;
  /** @throws SealingError for a record that was altered, or belongs to another row or column */
  open(id: string, column: string, record: Buffer): string;
}

interface HeldBox extends Box {
  /** Key versions that it can decrypt. */
  readonly versions: ReadonlySet<number>;
}

export class Sealing {
  readonly #parts: SealingParts;
  readonly #boxes = new Map<string, Promise<HeldBox | undefined>>();

  constructor(parts: SealingParts) {
    this.#parts = parts;
  }

  /**
   * Checks that stored values can be decrypted here. An installation without encrypted values needs no key.
   *
   * @returns the location of the key; undefined if nothing was ever encrypted
   * @throws SealingError with a message for the operator
   */
  async check(): Promise<Pick<FoundKey, 'role' | 'source'> | undefined> {
    const { database, settings } = this.#parts;
    const key = await this.#installationKey(() => readCanary(database));
    if (key === undefined) {
      // Validate the configured key now, so that the operator learns of a fault before it matters.
      await readKey(settings.current);
      return undefined;
    }
    key.bytes.fill(0);
    return { role: key.role, source: key.source };
  }

  /**
   * For existing values.
   *
   * @param records that will be decrypted; read them from the database before this call
   * @throws SealingError
   */
  async opener(purpose: string, records: readonly Buffer[] = []): Promise<Box> {
    const box = await this.find(purpose, records);
    if (box === undefined) throw new SealingError('the database lacks the data key of its encrypted values');
    return box;
  }

  /** Like `opener`; undefined if nothing was ever encrypted for this purpose. @param db to read keys from */
  async find(
    purpose: string,
    records: readonly Buffer[] = [],
    db: Queryable = this.#parts.database,
  ): Promise<Box | undefined> {
    const load = () => this.#loaded(db, purpose);
    const box = await this.#box(purpose, load);
    // Another process may have created a key since then, and used it.
    if (box === undefined || records.every((record) => holds(box, record))) return box;
    this.#boxes.delete(purpose);
    return this.#box(purpose, load);
  }

  /** Like `opener`; creates the keys if there are none. @throws SealingError */
  async sealer(purpose: string): Promise<Box> {
    const { database, freshness } = this.#parts;
    const make = () => database.transaction((tx) => this.#made(tx, purpose));
    if (freshness?.current === false) this.#boxes.delete(purpose);
    return (await this.find(purpose)) ?? (await this.#box(purpose, make));
  }

  /** Drops cached keys, so that the newest ones are used from now on. */
  forget(): void {
    this.#boxes.clear();
  }

  /**
   * Adds a key for a purpose; new values are encrypted with it. Does nothing if nothing was ever encrypted.
   *
   * @returns its version
   * @throws SealingError
   */
  async addKey(tx: Queryable, purpose: string): Promise<number | undefined> {
    await lockKeys(tx);
    const { keys } = await readKeys(tx, purpose);
    const newest = keys.at(-1);
    if (newest === undefined) return undefined;
    const key = await this.#installationKey(() => readCanary(tx));
    if (key === undefined) throw new SealingError(MARK_MISSING);
    await this.#insertKey(tx, key, purpose, newest.version + 1);
    return newest.version + 1;
  }

  #box<B extends HeldBox | undefined>(purpose: string, make: () => Promise<B>): Promise<HeldBox | B> {
    const held = this.#boxes.get(purpose);
    if (held !== undefined) return held as Promise<HeldBox | B>;
    const box = make();
    this.#boxes.set(purpose, box);
    const drop = () => {
      if (this.#boxes.get(purpose) === box) this.#boxes.delete(purpose);
    };
    // Do not cache a failure: the operator may fix it, or another process may create the keys.
    box.then((made) => made ?? drop(), drop);
    return box;
  }

  async #loaded(db: Queryable, purpose: string): Promise<HeldBox | undefined> {
    let wrapped: WrappedKey[] = [];
    const key = await this.#installationKey(async () => {
      const { canary, keys } = await readKeys(db, purpose);
      wrapped = keys;
      if (keys.length > 0 && canary === undefined) {
        throw new SealingError(MARK_MISSING);
      }
      return keys.length > 0 ? canary : undefined;
    });
    if (key === undefined) return undefined;
    const plain = wrapped.map(
      ({ version, wrapped }) => [version, unwrapDataKey(key, purpose, version, wrapped)] as const,
    );
    key.bytes.fill(0);
    return boxOf(purpose, new Map(plain));
  }

  async #made(tx: Queryable, purpose: string): Promise<HeldBox> {
    await lockKeys(tx);
    const box = await this.#loaded(tx, purpose);
    if (box !== undefined) return box;
    let key: SealingKey | undefined = await this.#installationKey(() => readCanary(tx));
    if (key === undefined) {
      key = { version: FIRST_VERSION, bytes: await readOrMakeKey(this.#parts.settings.current) };
      await insertCanary(tx, sealCanary(key));
    }
    return boxOf(purpose, new Map([[1, await this.#insertKey(tx, key, purpose, 1)]]));
  }

  async #insertKey(tx: Queryable, key: SealingKey, purpose: string, version: number): Promise<Buffer> {
    const bytes = randomBytes(KEY_BYTES);
    const wrapped = wrapDataKey(key, purpose, version, bytes);
    await insertDataKey(tx, purpose, { version, wrapped }, new Date(this.#parts.clock.now()));
    return bytes;
  }

  /** The key that encrypted the canary, never a new one; undefined if there is no canary. */
  async #installationKey(canary: () => Promise<Buffer | undefined>): Promise<(FoundKey & SealingKey) | undefined> {
    const { settings } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      const mark = await canary();
      if (mark === undefined) return undefined;
      const key = await keyUnder(mark, settings);
      if ('bytes' in key) return key;
      if (attempt === ATTEMPTS) throw wrongKey(settings, key.missing);
    }
  }
}

function boxOf(purpose: string, keys: ReadonlyMap<number, Buffer>): HeldBox {
  const newest = Math.max(...keys.keys());
  return {
    header: recordHeader(newest),
    versions: new Set(keys.keys()),
    seal: (id, column, text) =>
      sealRecord({ version: newest, bytes: keys.get(newest)! }, { purpose, id, column }, Buffer.from(text)),
    open: (id, column, record) =>
      openRecord((version) => keys.get(version), { purpose, id, column }, record).toString(),
  };
}

/** Invalid records count as held, because opening them reports the error. */
function holds({ versions }: HeldBox, record: Buffer): boolean {
  try {
    return versions.has(recordVersion(record));
  } catch {
    return true;
  }
}
