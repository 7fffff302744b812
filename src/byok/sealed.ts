/** Encryption purpose, column and change topic of BYOK credentials. */
import { sealedColumn } from '../sealing/index.ts';

export const PURPOSE = 'byok';
/** Of `byok_keys`. */
export const SEALED_COLUMN = 'sealed';
/** Announced with a credential's id when anything about it changes. */
export const TOPIC = 'byok.keys';

/** Rows to re-encrypt after a key rotation. Their content does not change, so nothing is announced. */
export const sealedByokCredentials = sealedColumn({ purpose: PURPOSE, table: 'byok_keys', column: SEALED_COLUMN });
