/**
 * One encrypted value: AES-256-GCM with a versioned key, bound to its location in the database. No I/O.
 *
 *     1 byte    record format, 1
 *     4 bytes   key version
 *     12 bytes  initialization vector, random
 *     n bytes   ciphertext
 *     16 bytes  tag; it also authenticates format, version and location
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

/** Location of a value. A record copied into another row or column does not decrypt. */
export interface SealContext {
  purpose: string;
  id: string;
  column: string;
}

/** Errors that concern the operator: a missing or wrong key, or an altered record. */
export class SealingError extends Error {
  override readonly name = 'SealingError';
}

/** The first bytes of all records with one key version. */
export function recordHeader(version: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(FORM, 0);
  header.writeUInt32BE(version, 1);
  return header;
}

/** Version of the key that encrypted the record. @throws SealingError for an invalid record */
export function recordVersion(record: Buffer): number {
  if (record.length < HEADER_BYTES + VECTOR_BYTES + TAG_BYTES || record[0] !== FORM) {
    throw new SealingError('an encrypted value has an unknown format');
  }
  return record.readUInt32BE(1);
}

export function sealRecord({ version, bytes }: SealingKey, context: SealContext, plain: Buffer): Buffer {
  const header = recordHeader(version);
  const vector = randomBytes(VECTOR_BYTES);
  const cipher = createCipheriv(CIPHER, bytes, vector, { authTagLength: TAG_BYTES }).setAAD(covered(header, context));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([header, vector, sealed, cipher.getAuthTag()]);
}

/**
 * @param keyOf the key of a version
 * @throws SealingError if the record was altered, moved, or encrypted with another key
 */
export function openRecord(
  keyOf: (version: number) => Buffer | undefined,
  context: SealContext,
  record: Buffer,
): Buffer {
  const version = recordVersion(record);
  const header = record.subarray(0, HEADER_BYTES);
  const key = keyOf(version);
  if (key === undefined)
    throw new SealingError(`an encrypted value needs version ${version} of its key, which does not exist`);
  const [vectorEnd, sealedEnd] = [HEADER_BYTES + VECTOR_BYTES, record.length - TAG_BYTES];
  const decipher = createDecipheriv(CIPHER, key, record.subarray(HEADER_BYTES, vectorEnd), { authTagLength: TAG_BYTES })
    .setAAD(covered(header, context))
    .setAuthTag(record.subarray(sealedEnd));
  try {
    return Buffer.concat([decipher.update(record.subarray(vectorEnd, sealedEnd)), decipher.final()]);
  } catch (cause) {
    throw new SealingError(
      'an encrypted value cannot be decrypted: it was altered, moved, or encrypted with another key',
      {
        cause,
      },
    );
  }
}

function covered(header: Buffer, { purpose, id, column }: SealContext): Buffer {
  return Buffer.concat([header, Buffer.from(JSON.stringify([purpose, id, column]))]);
}
