/**
 * The installation's key gives way to another one. What is in the database changes in one transaction, and the files of the
 * usual place around it, so that whenever the process dies one of the keys that are there fits what is in the database:
 *
 *     1. the new key is written to `kek.next`
 *     2. one transaction wraps every data key, and the mark that tells which key it is, in the new one
 *     3. `kek` becomes `kek.previous`, `kek.next` becomes `kek`
 *
 * A start between 2 and 3 finds that `kek.next` fits; asked again, a broken off change is carried on. Values are not touched,
 * and processes that hold data keys need not hear of it.
 */
import type { KeySource } from '../base/config.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { adoptNextFile, makeKeyFile, nextFile, placeOf, readKey, readOrMakeKey, usualFile } from './key-source.ts';
import { fitsCanary, keyUnder, sealCanary, unwrapDataKey, wrapDataKey, wrongKey } from './keys.ts';
import { SealingError, type SealingKey } from './record.ts';
import type { SealingParts } from './sealing.ts';
import { allKeys, lockKeys, readCanary, replaceCanary, replaceDataKey } from './store.ts';

/** `nothing`: nothing was ever sealed. `carried on`: a change that had been broken off is done now. `already`: nothing was to do. */
export type Rotated = 'nothing' | 'rotated' | 'carried on' | 'already';

/**
 * With the usual file a new key takes its place. Otherwise the operator has given both, the new one and the previous one,
 * and what is under the previous one is put under the new one.
 *
 * @throws SealingError with words for the operator
 */
export async function rotateInstallationKey({
  database,
  settings,
}: Pick<SealingParts, 'database' | 'settings'>): Promise<Rotated> {
  const { current, previous } = settings;
  const usual = usualFile(current);
  const rotated = await database.transaction(async (tx): Promise<Rotated> => {
    await lockKeys(tx);
    const canary = await readCanary(tx);
    if (canary === undefined) return 'nothing';
    const key = await keyUnder(canary, settings);
    if (!('bytes' in key)) throw wrongKey(settings, key.missing);
    if (key.role === 'next') return 'carried on';
    if (key.role === 'previous') await rewrap(tx, key, await readOrMakeKey(current));
    else if (previous !== null) return 'already';
    else if (usual !== undefined) await rewrap(tx, key, makeKeyFile(nextFile(usual)));
    else throw onlyOne(current);
    return 'rotated';
  });
  if (usual !== undefined && rotated !== 'nothing') await adopt(database, usual);
  return rotated;
}

function onlyOne(current: KeySource): SealingError {
  const [place, previous] = [placeOf(current), current.variable?.replace('KEK', 'KEK_PREVIOUS')];
  return new SealingError(
    `${place} is the only key that is given: let ${current.variable} give the new one and ${previous} this one, and start every process with both before this`,
  );
}

/** In a transaction of its own, as the files must not move before what is in the database is certain to stay. */
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
