/**
 * Encryption at rest, for values such as customers' credentials. Three levels: the installation key, which is neither
 * in the database nor in its backups; data keys per purpose, wrapped with it; and the values. No key is created before
 * the first value is encrypted. All levels can be rotated while everything runs: the installation key by `rotation.ts`,
 * data keys by `Sealing.addKey` and `sweep.ts`.
 */
export { defaultFile, describeSource, previousFile } from './key-source.ts';
export { sealingMigrations } from './migrations/index.ts';
export { KEY_BYTES, openRecord, type SealContext, SealingError, sealRecord } from './record.ts';
export { type Rotated, rotateInstallationKey } from './rotation.ts';
export { type Box, SEALING_TOPIC, Sealing, type SealingParts } from './sealing.ts';
export { type SealedRows, sealedColumn } from './store.ts';
export { countOutdated, followNewKeys, sweep, sweepJob } from './sweep.ts';
