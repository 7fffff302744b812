/**
 * Files that clients upload to a workspace, in the shapes that the SDKs of OpenAI, Anthropic and OpenRouter expect. Content
 * is kept as blobs (`blobs/`).
 *
 * `google/` serves them to Google's clients, with resumable uploads.
 *
 * `vendor/` serves the files of a caller's own account at OpenAI or Anthropic, over a BYOK credential.
 *
 * `copies/` keeps files at vendors for conversations that are sent there, and removes them with their file.
 *
 * Not here: how a conversation uses a file (`inference/`).
 */
export { createFileContents, type FileContents, type UsableFile } from './contents.ts';
export { createVendorCopies, type VendorCopies, type VendorCopy } from './copies/copies.ts';
export { type CopyRemovalParts, removeCopiesJob } from './copies/remove-job.ts';
export { expireFilesJob } from './expire-job.ts';
export { BATCH_FILE_SECONDS, EXPIRY_SECONDS } from './expiry.ts';
export { fileMigrations } from './migrations/index.ts';
export { endFiles, type FileParts, fileOperations } from './operations.ts';
export { FileReply } from './schema.ts';
export { shapeOf, storedId as storedFileId, wireId as wireFileId } from './shape.ts';
export { findFile } from './store.ts';
export { addMadeFile, addToolFile, FILE_LIMITS, type StoreParts as FileStoreParts } from './upload.ts';
export type { VendorParts } from './vendor/operations.ts';
export { type WorkspaceFile, WorkspaceFiles } from './workspace-files.ts';
