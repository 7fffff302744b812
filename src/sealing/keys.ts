/** Finds the installation key among the available ones, and wraps data keys with it. */
import type { SealingSettings } from '../base/config.ts';
import { describeSource, type FoundKey, findKey } from './key-source.ts';
import { openRecord, recordVersion, type SealContext, SealingError, type SealingKey, sealRecord } from './record.ts';

const CANARY_TEXT = Buffer.from('This is the key of this installation.');
const CANARY_CONTEXT: SealContext = { purpose: 'canary', id: '1', column: 'sealed' };
/** Version of the first key. Each replacement gets the next version. */
export const FIRST_VERSION = 0;

/** Encrypts a known text: a key that decrypts it is the right one. */
export function sealCanary(key: SealingKey): Buffer {
  return sealRecord(key, CANARY_CONTEXT, CANARY_TEXT);
}

export function fitsCanary(canary: Buffer, bytes: Buffer): boolean {
  try {
    openRecord(() => bytes, CANARY_CONTEXT, canary);
    return true;
  } catch {
    return false;
  }
}

export function wrapDataKey(key: SealingKey, purpose: string, version: number, plain: Buffer): Buffer {
  return sealRecord(key, contextOfKey(purpose, version), plain);
}

/** @throws SealingError */
export function unwrapDataKey(key: SealingKey, purpose: string, version: number, wrapped: Buffer): Buffer {
  const keyOf = (wanted: number) => (wanted === key.version ? key.bytes : undefined);
  return openRecord(keyOf, contextOfKey(purpose, version), wrapped);
}

/**
 * The key that encrypted a canary; undefined if none of the available keys did.
 *
 * @throws SealingError for an unreadable or invalid key
 */
export async function keyUnder(
  canary: Buffer,
  settings: SealingSettings,
): Promise<(FoundKey & SealingKey) | { missing: boolean }> {
  const { found, missing } = await findKey(settings, (bytes) => fitsCanary(canary, bytes));
  return found === undefined ? { missing } : { ...found, version: recordVersion(canary) };
}

/** The error for the operator if `keyUnder` finds none. */
export function wrongKey({ current }: SealingSettings, missing: boolean): SealingError {
  const source = describeSource(current);
  return new SealingError(
    missing
      ? `the database has encrypted credentials, but their key ${source} is missing: restore it, or set GATEHOUSE_KEK_FILE`
      : `${source} is not the key that encrypted the credentials in the database`,
  );
}

function contextOfKey(purpose: string, version: number): SealContext {
  return { purpose: 'data key', id: `${purpose}/${version}`, column: 'wrapped' };
}
