/**
 * Values that the database must not hold in clear, such as credentials that customers give. Three levels: the key of the
 * installation, which is not in the database and so in no backup of it; a key for each purpose, wrapped in that one; the
 * values. Nothing is made before the first value is sealed.
 */
export { sealingMigrations } from './migrations/index.ts';
export { SealingError } from './record.ts';
export { type Box, Sealing, type SealingParts } from './sealing.ts';
