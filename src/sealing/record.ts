/**
 * One sealed value: AES-256-GCM under a key with a version, bound to the place where it is kept. No I/O.
 *
 *     1 byte    form of the record, 1
 *     4 bytes   version of the key
 *     12 bytes  initialization vector, random
 *     n bytes   ciphertext
 *     16 bytes  tag; it also covers everything in front of the vector, and the place
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

export const KEY_BYTES = 32;

const FORM = 1;
const HEADER_BYTES = 5;
const VECTOR_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

export interface SealingKey {
  version: number;
  bytes: Buffer;
}

/** Where a value is kept. Put into another row or column it does not open. */
export interface Place {
  purpose: string;
  id: string;
  column: string;
}

/** What an operator can mend, or has to know of: a key that is missing or wrong, a record that was altered. */
export class SealingError extends Error {
  override readonly name = 'SealingError';
}

/** What the records under one version of a key begin with. */
export function recordHeader(version: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(FORM, 0);
  header.writeUInt32BE(version, 1);
  return header;
}

/** Of the key that it was sealed under. @throws SealingError for what is no record */
export function recordVersion(record: Buffer): number {
  if (record.length < HEADER_BYTES + VECTOR_BYTES + TAG_BYTES || record[0] !== FORM) {
    throw new SealingError('a sealed value has a form that this version does not know');
  }
  return record.readUInt32BE(1);
}

export function sealRecord({ version, bytes }: SealingKey, place: Place, plain: Buffer): Buffer {
  const header = recordHeader(version);
  const vector = randomBytes(VECTOR_BYTES);
  const cipher = createCipheriv(CIPHER, bytes, vector, { authTagLength: TAG_BYTES }).setAAD(covered(header, place));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([header, vector, sealed, cipher.getAuthTag()]);
}

/**
 * @param keyOf the key of a version
 * @throws SealingError when the record was altered, stood elsewhere, or was sealed under another key
 */
export function openRecord(keyOf: (version: number) => Buffer | undefined, place: Place, record: Buffer): Buffer {
  const version = recordVersion(record);
  const header = record.subarray(0, HEADER_BYTES);
  const key = keyOf(version);
  if (key === undefined)
    throw new SealingError(`a sealed value needs version ${version} of its key, which is not there`);
  const [vectorEnd, sealedEnd] = [HEADER_BYTES + VECTOR_BYTES, record.length - TAG_BYTES];
  const decipher = createDecipheriv(CIPHER, key, record.subarray(HEADER_BYTES, vectorEnd), { authTagLength: TAG_BYTES })
    .setAAD(covered(header, place))
    .setAuthTag(record.subarray(sealedEnd));
  try {
    return Buffer.concat([decipher.update(record.subarray(vectorEnd, sealedEnd)), decipher.final()]);
  } catch (cause) {
    throw new SealingError('a sealed value does not open: it was altered, moved, or sealed under another key', {
      cause,
    });
  }
}

function covered(header: Buffer, { purpose, id, column }: Place): Buffer {
  return Buffer.concat([header, Buffer.from(JSON.stringify([purpose, id, column]))]);
}
