/** Where the credentials of own keys are sealed into, and by what name their changes are told. */
import type { SealedRows } from '../sealing/index.ts';
import * as store from './store.ts';

export const PURPOSE = 'byok';
/** Of `byok_keys`. */
export const SEALED_COLUMN = 'sealed';
/** Announced with an own key's id when anything about it changes. */
export const TOPIC = 'byok.keys';

/** The rows that a newer key is to seal. What they say does not change, so nobody is told. */
export const sealedOwnKeys: SealedRows = {
  purpose: PURPOSE,
  column: SEALED_COLUMN,
  outdated: store.holdSealedOtherwise,
  replace: store.replaceRecord,
  countOutdated: store.countSealedOtherwise,
};
