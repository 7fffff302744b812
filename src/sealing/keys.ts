/** The installation's key at work: which of those that are here it is, and what it wraps. */
import type { SealingSettings } from '../base/config.ts';
import { type FoundKey, findKey, placeOf } from './key-source.ts';
import { openRecord, type Place, recordVersion, SealingError, type SealingKey, sealRecord } from './record.ts';

const CANARY_TEXT = Buffer.from('This is the key of this installation.');
const CANARY_PLACE: Place = { purpose: 'canary', id: '1', column: 'sealed' };
/** Of the first key. Each that takes the place of another has the next one. */
export const FIRST_VERSION = 0;

/** A known text under the key: who can open it has the right one. */
export function sealCanary(key: SealingKey): Buffer {
  return sealRecord(key, CANARY_PLACE, CANARY_TEXT);
}

export function fitsCanary(canary: Buffer, bytes: Buffer): boolean {
  try {
    openRecord(() => bytes, CANARY_PLACE, canary);
    return true;
  } catch {
    return false;
  }
}

export function wrapDataKey(key: SealingKey, purpose: string, version: number, plain: Buffer): Buffer {
  return sealRecord(key, placeOfKey(purpose, version), plain);
}

/** @throws SealingError */
export function unwrapDataKey(key: SealingKey, purpose: string, version: number, wrapped: Buffer): Buffer {
  const keyOf = (wanted: number) => (wanted === key.version ? key.bytes : undefined);
  return openRecord(keyOf, placeOfKey(purpose, version), wrapped);
}

/**
 * The key that a canary was sealed under; undefined when none of those that are here is it.
 *
 * @throws SealingError for a key that cannot be read or is none
 */
export async function keyUnder(
  canary: Buffer,
  settings: SealingSettings,
): Promise<(FoundKey & SealingKey) | { missing: boolean }> {
  const { found, missing } = await findKey(settings, (bytes) => fitsCanary(canary, bytes));
  return found === undefined ? { missing } : { ...found, version: recordVersion(canary) };
}

/** What the operator is told when `keyUnder` finds none. */
export function wrongKey({ current }: SealingSettings, missing: boolean): SealingError {
  const place = placeOf(current);
  return new SealingError(
    missing
      ? `the database holds sealed credentials, and ${place}, the key to them, is missing: put it back, or name it with GATEHOUSE_KEK_FILE`
      : `${place} is not the key that the credentials in the database are sealed under`,
  );
}

function placeOfKey(purpose: string, version: number): Place {
  return { purpose: 'data key', id: `${purpose}/${version}`, column: 'wrapped' };
}
