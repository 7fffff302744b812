/**
 * Files that clients upload to a workspace, in the shapes that the SDKs of OpenAI, Anthropic and OpenRouter expect. Content
 * is kept as blobs (`blobs/`).
 *
 * Not here: files at a provider, and what a conversation does with a file.
 */
export { fileMigrations } from './migrations/index.ts';
export { endFiles, FILE_LIMITS, type FileParts, fileOperations } from './operations.ts';
