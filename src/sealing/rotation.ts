/**
 * Rotates the installation key. The database changes in one transaction, and the files of the default location before
 * and after it. Whenever the process dies, one of the existing keys fits the database:
 *
 *     1. write the new key to `kek.next`
 *     2. in one transaction, wrap every data key and the canary with the new key
 *     3. rename `kek` to `kek.previous`, and `kek.next` to `kek`
 *
 * A start between 2 and 3 finds that `kek.next` fits, and another rotation completes the interrupted one. Values are
 * not touched, and processes that have cached data keys need not be notified.
 */
import type { KeySource } from '../base/config.ts';
import type { Database, Queryable } from '../storage/database.ts';
import {
  adoptNextFile,
  defaultFile,
  describeSource,
  makeKeyFile,
  nextFile,
  readKey,
  readOrMakeKey,
} from './key-source.ts';
import { fitsCanary, keyUnder, sealCanary, unwrapDataKey, wrapDataKey, wrongKey } from './keys.ts';
import { SealingError, type SealingKey } from './record.ts';
import type { SealingParts } from './sealing.ts';
import { allKeys, lockKeys, readCanary, replaceCanary, replaceDataKey } from './store.ts';

/**
 * `nothing`: nothing was ever encrypted. `carried on`: an interrupted rotation is complete. `already`: no rotation was
 * due.
 */
export type Rotated = 'nothing' | 'rotated' | 'carried on' | 'already';

/**
 * With the default file, creates a new key. Otherwise the operator has configured the new and the previous key, and
 * data keys wrapped with the previous one are wrapped with the new one.
 *
 * @throws SealingError with a message for the operator
 */
export async function rotateInstallationKey({
  database,
  settings,
}: Pick<SealingParts, 'database' | 'settings'>): Promise<Rotated> {
  const { current, previous } = settings;
  const defaultPath = defaultFile(current);
  const rotated = await database.transaction(async (tx): Promise<Rotated> => {
    await lockKeys(tx);
    const canary = await readCanary(tx);
    if (canary === undefined) return 'nothing';
    const key = await keyUnder(canary, settings);
    if (!('bytes' in key)) throw wrongKey(settings, key.missing);
    if (key.role === 'next') return 'carried on';
    if (key.role === 'previous') await rewrap(tx, key, await readOrMakeKey(current));
    else if (previous !== null) return 'already';
    else if (defaultPath !== undefined) await rewrap(tx, key, makeKeyFile(nextFile(defaultPath)));
    else throw onlyOne(current);
    return 'rotated';
  });
  if (defaultPath !== undefined && rotated !== 'nothing') await adopt(database, defaultPath);
  return rotated;
}

function onlyOne(current: KeySource): SealingError {
  const [source, previous] = [describeSource(current), current.variable?.replace('KEK', 'KEK_PREVIOUS')];
  return new SealingError(
    `${source} is the only configured key: set ${current.variable} to the new key and ${previous} to this one, and restart every process with both first`,
  );
}

/** A separate transaction, because the files must not move before the database change is committed. */
async function adopt(database: Database, file: string): Promise<void> {
  await database.transaction(async (tx) => {
    await lockKeys(tx);
    const canary = await readCanary(tx);
    const next = await readKey({ kind: 'file', path: nextFile(file) });
    if (canary !== undefined && next !== undefined && fitsCanary(canary, next)) adoptNextFile(file);
  });
}

async function rewrap(tx: Queryable, old: SealingKey, bytes: Buffer): Promise<void> {
  const key = { version: old.version + 1, bytes };
  for (const { purpose, version, wrapped } of await allKeys(tx)) {
    const plain = unwrapDataKey(old, purpose, version, wrapped);
    await replaceDataKey(tx, purpose, { version, wrapped: wrapDataKey(key, purpose, version, plain) });
  }
  await replaceCanary(tx, sealCanary(key));
}
