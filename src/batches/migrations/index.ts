/** The tables of batches, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { batches } from './0160-batches.ts';
import { idempotencyKeys } from './0161-idempotency-keys.ts';
import { itemModels } from './0162-item-models.ts';
import { nativeBatches } from './0163-native-batches.ts';
import { unrunItems } from './0164-unrun-items.ts';
import { freeItems } from './0165-free-items.ts';
import { callbacks } from './0166-callbacks.ts';
import { inputFiles } from './0167-input-files.ts';
import { upstreamData } from './0168-upstream-data.ts';

export const batchMigrations: readonly Migration[] = [
  batches,
  idempotencyKeys,
  itemModels,
  nativeBatches,
  unrunItems,
  freeItems,
  callbacks,
  inputFiles,
  upstreamData,
];
