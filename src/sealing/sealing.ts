/** The keys, and what seals with them. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { SealingSettings } from '../base/config.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { makeInstallationKey, readInstallationKey } from './key-file.ts';
import { KEY_BYTES, openRecord, type Place, SealingError, sealRecord } from './record.ts';
import { dataKeys, insertCanary, insertDataKey, lockKeys, readCanary, type WrappedKey } from './store.ts';

const CANARY_TEXT = Buffer.from('This is the key of this installation.');
const CANARY_PLACE: Place = { purpose: 'canary', id: '1', column: 'sealed' };
/** The installation's key has one version: another one is another installation. */
const INSTALLATION = 0;

export interface SealingParts {
  database: Database;
  clock: Clock;
  settings: SealingSettings;
}

/** Seals and opens the values of one purpose. */
export interface Box {
  /** @param id of the row, @param column where in it the record is kept */
  seal(id: string, column: string, text: string): Buffer;
  /** @throws SealingError for a record that was altered, or stood in another row or column */
  open(id: string, column: string, record: Buffer): string;
}

export class Sealing {
  readonly #parts: SealingParts;
  readonly #boxes = new Map<string, Promise<Box>>();

  constructor(parts: SealingParts) {
    this.#parts = parts;
  }

  /**
   * Whether what was sealed can be opened here. An installation that never sealed anything needs no key.
   *
   * @returns whether anything was ever sealed
   * @throws SealingError with words for the operator
   */
  async check(): Promise<boolean> {
    const canary = await readCanary(this.#parts.database);
    if (canary !== undefined) this.#installationKey(canary);
    // What the operator has given is right, or is told of before it is needed.
    else readInstallationKey(this.#parts.settings);
    return canary !== undefined;
  }

  /** For what is sealed already. @throws SealingError */
  opener(purpose: string): Promise<Box> {
    return this.#box(purpose, async () => {
      const keys = await dataKeys(this.#parts.database, purpose);
      if (keys.length === 0) throw new SealingError('the database lacks the key that its values are sealed under');
      return this.#unwrapped(this.#parts.database, purpose, keys);
    });
  }

  /** As `opener`; the first who asks makes the keys. @throws SealingError */
  sealer(purpose: string): Promise<Box> {
    const { database } = this.#parts;
    return this.#box(purpose, async () => {
      const keys = await dataKeys(database, purpose);
      if (keys.length > 0) return this.#unwrapped(database, purpose, keys);
      return database.transaction((tx) => this.#made(tx, purpose));
    });
  }

  #box(purpose: string, make: () => Promise<Box>): Promise<Box> {
    let box = this.#boxes.get(purpose);
    if (box === undefined) {
      box = make();
      this.#boxes.set(purpose, box);
      // The operator may mend it, or somebody make the keys.
      box.catch(() => this.#boxes.delete(purpose));
    }
    return box;
  }

  async #unwrapped(db: Queryable, purpose: string, wrapped: readonly WrappedKey[]): Promise<Box> {
    const canary = await readCanary(db);
    if (canary === undefined) throw new SealingError('the database lacks the mark of the key that its values need');
    const key = this.#installationKey(canary);
    return boxOf(
      purpose,
      new Map(wrapped.map(({ version, wrapped }) => [version, openUnder(key, keyPlace(purpose, version), wrapped)])),
    );
  }

  async #made(tx: Queryable, purpose: string): Promise<Box> {
    await lockKeys(tx);
    const keys = await dataKeys(tx, purpose);
    if (keys.length > 0) return this.#unwrapped(tx, purpose, keys);
    const canary = await readCanary(tx);
    const { settings, clock } = this.#parts;
    const key =
      canary === undefined
        ? (readInstallationKey(settings) ?? makeInstallationKey(settings))
        : this.#installationKey(canary);
    if (canary === undefined) await insertCanary(tx, sealUnder(key, CANARY_PLACE, CANARY_TEXT));
    const [version, bytes] = [1, randomBytes(KEY_BYTES)];
    const wrapped = sealUnder(key, keyPlace(purpose, version), bytes);
    await insertDataKey(tx, purpose, { version, wrapped }, new Date(clock.now()));
    return boxOf(purpose, new Map([[version, bytes]]));
  }

  /** The one that the canary was sealed under, and never a new one. */
  #installationKey(canary: Buffer): Buffer {
    const { settings } = this.#parts;
    const source = settings.key === null ? settings.file : 'GATEHOUSE_KEK';
    const key = readInstallationKey(settings);
    if (key === undefined) {
      throw new SealingError(
        `the database holds sealed credentials, and ${source}, the key to them, is missing: put it back, or name it with GATEHOUSE_KEK_FILE`,
      );
    }
    try {
      openUnder(key, CANARY_PLACE, canary);
    } catch {
      throw new SealingError(`${source} is not the key that the credentials in the database are sealed under`);
    }
    return key;
  }
}

function boxOf(purpose: string, keys: ReadonlyMap<number, Buffer>): Box {
  const newest = Math.max(...keys.keys());
  return {
    seal: (id, column, text) =>
      sealRecord({ version: newest, bytes: keys.get(newest)! }, { purpose, id, column }, Buffer.from(text)),
    open: (id, column, record) =>
      openRecord((version) => keys.get(version), { purpose, id, column }, record).toString(),
  };
}

function keyPlace(purpose: string, version: number): Place {
  return { purpose: 'data key', id: `${purpose}/${version}`, column: 'wrapped' };
}

function sealUnder(key: Buffer, place: Place, plain: Buffer): Buffer {
  return sealRecord({ version: INSTALLATION, bytes: key }, place, plain);
}

function openUnder(key: Buffer, place: Place, record: Buffer): Buffer {
  return openRecord((version) => (version === INSTALLATION ? key : undefined), place, record);
}
