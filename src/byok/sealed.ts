/** Where the credentials of own keys are sealed into, and by what name their changes are told. */
import { sealedColumn } from '../sealing/index.ts';

export const PURPOSE = 'byok';
/** Of `byok_keys`. */
export const SEALED_COLUMN = 'sealed';
/** Announced with an own key's id when anything about it changes. */
export const TOPIC = 'byok.keys';

/** The rows that a newer key is to seal. What they say does not change, so nobody is told. */
export const sealedOwnKeys = sealedColumn({ purpose: PURPOSE, table: 'byok_keys', column: SEALED_COLUMN });
