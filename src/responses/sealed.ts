/** Encryption of contents: each row has a data key, which is encrypted as `sealing/` does. */
import { randomBytes } from 'node:crypto';
import { GatewayError } from '../base/errors.ts';
import { KEY_BYTES, openRecord, type Sealing, SealingError, sealedColumn, sealRecord } from '../sealing/index.ts';

const PURPOSE = 'responses';
const COLUMN = 'data_key';
const VERSION = 1;

/** Rows to re-encrypt after a key rotation. */
export const sealedResponseKeys = sealedColumn({ purpose: PURPOSE, table: 'responses', column: COLUMN });

export const sealedConversationKeys = sealedColumn({ purpose: PURPOSE, table: 'conversations', column: COLUMN });

/** Encrypts and decrypts the contents of one row. */
export class DataKey {
  readonly #id: string;
  readonly #bytes: Buffer;

  constructor(id: string, bytes: Buffer) {
    this.#id = id;
    this.#bytes = bytes;
  }

  /** @param part of the row, such as a column; the record opens for this row and part only */
  seal(part: string, text: string): Buffer {
    return sealRecord({ version: VERSION, bytes: this.#bytes }, this.#context(part), Buffer.from(text));
  }

  /** @throws SealingError if the record was altered, or belongs to another row or part */
  open(part: string, record: Buffer): string {
    const keyOf = (version: number) => (version === VERSION ? this.#bytes : undefined);
    return openRecord(keyOf, this.#context(part), record).toString();
  }

  #context(part: string) {
    return { purpose: 'response contents', id: this.#id, column: part };
  }
}

/** A new key for a row that is about to be inserted, and the record of it. @throws GatewayError 503 */
export function newDataKey(sealing: Sealing, id: string): Promise<{ key: DataKey; record: Buffer }> {
  return presented(async () => {
    const bytes = randomBytes(KEY_BYTES);
    const record = (await sealing.sealer(PURPOSE)).seal(id, COLUMN, bytes.toString('base64'));
    return { key: new DataKey(id, bytes), record };
  });
}

/** The keys of rows, in their order. @throws GatewayError 503 */
export function dataKeysOf(sealing: Sealing, rows: readonly { id: string; dataKey: Buffer }[]): Promise<DataKey[]> {
  if (rows.length === 0) return Promise.resolve([]);
  return presented(async () => {
    const box = await sealing.opener(
      PURPOSE,
      rows.map(({ dataKey }) => dataKey),
    );
    return rows.map(({ id, dataKey }) => new DataKey(id, Buffer.from(box.open(id, COLUMN, dataKey), 'base64')));
  });
}

/** Runs what decrypts. @throws GatewayError 503 */
export async function presented<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof SealingError)) throw cause;
    const message = 'stored responses cannot be encrypted or decrypted on this machine at the moment; see its log';
    throw new GatewayError('server', message, { status: 503, cause });
  }
}
