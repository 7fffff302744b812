/** Where a process is reached by others, with a key that only processes of this gateway can read. */
import type { PeerAddress } from '../../peers/index.ts';
import { type Sealing, sealedColumn } from '../../sealing/index.ts';
import type { Endpoint, Holder } from '../work/holders.ts';

const PURPOSE = 'interns';
const COLUMN = 'sealed_key';

/** Rows to re-encrypt after a key rotation. */
export const sealedPeerKeys = sealedColumn({ purpose: PURPOSE, table: 'intern_processes', column: COLUMN });

type Keys = Pick<Sealing, 'sealer' | 'opener'>;

/** @throws SealingError */
export async function endpointOf(sealing: Keys, { id, host, port, key }: PeerAddress): Promise<Endpoint> {
  const box = await sealing.sealer(PURPOSE);
  return { host, port, sealedKey: box.seal(id, COLUMN, key.toString('base64')) };
}

/** @throws SealingError */
export async function addressOf(sealing: Keys, { id, host, port, sealedKey }: Holder): Promise<PeerAddress> {
  const box = await sealing.opener(PURPOSE, [sealedKey]);
  return { id, host, port, key: Buffer.from(box.open(id, COLUMN, sealedKey), 'base64') };
}
