/** Encrypts the contents of vector stores. Each store has a data key, which also keys the hashes of its words. */
import { createHmac, randomBytes } from 'node:crypto';
import { GatewayError } from '../base/errors.ts';
import { KEY_BYTES, openRecord, type Sealing, SealingError, sealedColumn, sealRecord } from '../sealing/index.ts';

const PURPOSE = 'vector stores';
const COLUMN = 'data_key';
const VERSION = 1;
const TERM_BYTES = 8;

/** Rows to re-encrypt after a key rotation. */
export const sealedVectorStoreKeys = sealedColumn({ purpose: PURPOSE, table: 'vector_stores', column: COLUMN });

export class StoreKey {
  readonly #bytes: Buffer;
  readonly #termKey: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#termKey = createHmac('sha256', bytes).update('terms').digest();
  }

  /** @param row and column that the record belongs to; it opens there only */
  seal(row: string, column: string, content: Buffer): Buffer {
    return sealRecord({ version: VERSION, bytes: this.#bytes }, contextOf(row, column), content);
  }

  /** @throws GatewayError 503 if the record was altered */
  open(row: string, column: string, record: Buffer): Buffer {
    return presented(() =>
      openRecord((version) => (version === VERSION ? this.#bytes : undefined), contextOf(row, column), record),
    );
  }

  /** A word as the index holds it, in hexadecimal digits. */
  term(word: string): string {
    return createHmac('sha256', this.#termKey).update(word).digest().toString('hex', 0, TERM_BYTES);
  }
}

function contextOf(id: string, column: string) {
  return { purpose: 'vector store contents', id, column };
}

/** The key of a store that is about to be inserted, as its row holds it. Rejects with GatewayError 503. */
export async function newStoreKey(sealing: Sealing, id: string): Promise<Buffer> {
  const sealer = await sealing.sealer(PURPOSE).catch(unavailable);
  return presented(() => sealer.seal(id, COLUMN, randomBytes(KEY_BYTES).toString('base64')));
}

/** Rejects with GatewayError 503. */
export async function storeKeyOf(
  sealing: Sealing,
  { id, dataKey }: { id: string; dataKey: Buffer },
): Promise<StoreKey> {
  const opener = await sealing.opener(PURPOSE, [dataKey]).catch(unavailable);
  return presented(() => new StoreKey(Buffer.from(opener.open(id, COLUMN, dataKey), 'base64')));
}

function presented<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    return unavailable(cause);
  }
}

function unavailable(cause: unknown): never {
  if (!(cause instanceof SealingError)) throw cause;
  const message = 'vector stores cannot be encrypted or decrypted on this machine at the moment; see its log';
  throw new GatewayError('server', message, { status: 503, cause });
}
