/** Encryption of the texts of memories. */
import { GatewayError } from '../base/errors.ts';
import { type Box, type Sealing, SealingError, sealedColumn } from '../sealing/index.ts';

const PURPOSE = 'memories';
const COLUMN = 'sealed';

/** Rows to re-encrypt after a key rotation. */
export const sealedMemories = sealedColumn({ purpose: PURPOSE, table: 'memory_files', column: COLUMN });

/** A text as it is stored. */
export interface StoredText {
  id: string;
  /** Of an earlier version; null for a text that is encrypted. */
  content: string | null;
  sealed: Buffer | null;
}

/** @throws GatewayError 503 */
export async function opened(sealing: Sealing, texts: readonly StoredText[]): Promise<string[]> {
  const records = texts.flatMap(({ sealed }) => sealed ?? []);
  if (records.length === 0) return texts.map(({ content }) => content ?? '');
  return presented(async () => {
    const box = await sealing.opener(PURPOSE, records);
    return texts.map(({ id, content, sealed }) => (sealed === null ? content! : box.open(id, COLUMN, sealed)));
  });
}

/** Encrypts the text of a row. @throws GatewayError 503 */
export function sealerOf(sealing: Sealing): Promise<(id: string, text: string) => Buffer> {
  return presented(async () => {
    const box: Box = await sealing.sealer(PURPOSE);
    return (id, text) => box.seal(id, COLUMN, text);
  });
}

async function presented<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof SealingError)) throw cause;
    const message = 'memories cannot be encrypted or decrypted on this machine at the moment; see its log';
    throw new GatewayError('server', message, { status: 503, cause });
  }
}
