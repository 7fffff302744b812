/** Encryption purpose, column and change topic of destinations. */
import { GatewayError } from '../base/errors.ts';
import { type Sealing, SealingError, sealedColumn } from '../sealing/index.ts';
import type { Secrets } from './config.ts';

const PURPOSE = 'destinations';
const COLUMN = 'sealed';
/** Announced with a destination's id when anything about it changes. */
export const TOPIC = 'destinations';

/** Rows to re-encrypt after a key rotation. */
export const sealedDestinationSecrets = sealedColumn({ purpose: PURPOSE, table: 'destinations', column: COLUMN });

/** Contents that wait for a destination. */
export const sealedDestinationBatches = sealedColumn({
  purpose: PURPOSE,
  table: 'destination_batches',
  column: COLUMN,
});

/** @param id of the batch. @throws SealingError */
export async function sealBatch(sealing: Sealing, id: string, records: string): Promise<Buffer> {
  return (await sealing.sealer(PURPOSE)).seal(id, COLUMN, records);
}

/** @throws SealingError */
export async function openBatch(sealing: Sealing, { id, sealed }: { id: string; sealed: Buffer }): Promise<string> {
  return (await sealing.opener(PURPOSE, [sealed])).open(id, COLUMN, sealed);
}

/** @throws SealingError */
export async function openSecrets(
  sealing: Sealing,
  rows: readonly { id: string; sealed: Buffer }[],
): Promise<(row: { id: string; sealed: Buffer }) => Secrets> {
  const box = await sealing.opener(
    PURPOSE,
    rows.map(({ sealed }) => sealed),
  );
  return ({ id, sealed }) => JSON.parse(box.open(id, COLUMN, sealed)) as Secrets;
}

/** @throws GatewayError 503 */
export function sealSecrets(sealing: Sealing, id: string, secrets: Secrets): Promise<Buffer> {
  return presented(async () => (await sealing.sealer(PURPOSE)).seal(id, COLUMN, JSON.stringify(secrets)));
}

/** The secrets of one destination, for its operations. @throws GatewayError 503 */
export function secretsOf(sealing: Sealing, row: { id: string; sealed: Buffer }): Promise<Secrets> {
  return presented(async () => (await openSecrets(sealing, [row]))(row));
}

async function presented<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof SealingError)) throw cause;
    const message =
      'The secrets of destinations cannot be encrypted or decrypted on this machine at the moment; see its log.';
    throw new GatewayError('server', message, { status: 503, cause });
  }
}
