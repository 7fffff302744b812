/**
 * Values that the database must not hold in clear, such as credentials that customers give. Three levels: the key of the
 * installation, which is not in the database and so in no backup of it; keys for each purpose, wrapped in that one; the
 * values. Nothing is made before the first value is sealed. Each level can be renewed while everything runs: the first by
 * `rotation.ts`, the second by `Sealing.addKey` and `sweep.ts`.
 */
export { placeOf, previousFile, usualFile } from './key-source.ts';
export { sealingMigrations } from './migrations/index.ts';
export { SealingError } from './record.ts';
export { type Rotated, rotateInstallationKey } from './rotation.ts';
export { type Box, SEALING_TOPIC, Sealing, type SealingParts } from './sealing.ts';
export { type SealedRows, sealedColumn } from './store.ts';
export { countOutdated, Sweeper, sweep } from './sweep.ts';
