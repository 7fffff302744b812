/** Every column of values that are sealed, one line a folder: what a change of keys has to seal anew. */
import { sealedOwnKeys } from './byok/index.ts';
import type { SealedRows } from './sealing/index.ts';
import { sealedSigningKeys } from './sign-in/index.ts';

export const sealedRows: readonly SealedRows[] = [sealedOwnKeys, sealedSigningKeys];
