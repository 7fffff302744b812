/**
 * Content that is too large for a row: uploaded files, inputs and results of batches. Streamed in and out at constant
 * memory, checksummed, on the local disk or in an S3 bucket.
 *
 * The row in `blobs` is inserted before the first byte is stored and deleted after the last byte is removed, so a crash
 * leaves no untracked bytes. The owner of a blob calls `keep` in the transaction that inserts its own row, and `drop` in
 * the one that deletes it. `cleanBlobsJob` removes dropped and abandoned blobs.
 *
 * Not here: what the content means, who may read it (`files/`).
 */
export { BlobUnavailable } from './backend.ts';
export { type Blob, type BlobOptions, type Blobs, cleanBlobsJob, createBlobs } from './blobs.ts';
export { configuredBackends } from './configured.ts';
export { diskBackend } from './disk.ts';
export { blobMigrations } from './migrations/index.ts';
export { checkBucket } from './s3/index.ts';
export { countBlobs } from './store.ts';
