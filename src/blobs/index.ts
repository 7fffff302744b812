/**
 * Content that is too large for a row: uploaded files, inputs and results of batches. Streamed in and out at constant
 * memory, checksummed, on the local disk or in an S3 bucket.
 *
 * A row of `blobs` exists before the first byte is stored and goes after the last one is removed, so that no crash leaves
 * bytes that nobody knows of. What a blob belongs to says so with `keep` in the transaction of its own row, and `drop`
 * when that row goes; `cleanBlobsJob` removes the rest.
 *
 * Not here: what the content means, who may read it (`files/`).
 */
export { type Blob, type BlobOptions, type Blobs, cleanBlobsJob, createBlobs } from './blobs.ts';
export { diskBackend } from './disk.ts';
export { blobMigrations } from './migrations/index.ts';
