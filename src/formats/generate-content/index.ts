/**
 * The methods `generateContent` and `streamGenerateContent` of the Gemini API, served on top of the chat format
 * (decision 025): requests become chat requests, and chat answers, events and errors are converted back. Pure. Not here: the
 * same format spoken to Google's services (`formats/gemini`).
 */
export { ContentStream, contentReplyOf, type Framing } from './from-chat.ts';
export { googleError, googleErrorOf } from './google-error.ts';
export { inOwnWords } from './paths.ts';
export { type ContentShape, chatRequestOf } from './request.ts';
export { ContentEvents, ContentReply, GoogleErrorSchema, schema as contentSchema } from './schema.ts';
