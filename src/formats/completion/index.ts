/**
 * The legacy text completion format (`POST /completions`; platform.openai.com/docs/api-reference/completions): continues
 * a prompt. Served by services that still offer it, or on top of chat. Pure.
 */
export { type CompletionDialect, completionAdapter } from './adapter.ts';
export { type CompletionAdapter, completion, needsNative, prefersNative } from './native.ts';
export { CompletionReply, schema as completionSchema } from './schema.ts';
export { type CompletionShape, CompletionStream, chatRequestOf, completionOf } from './through-chat.ts';
