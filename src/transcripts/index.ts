/**
 * What requests and answers said (`io_logging`): kept where it is wanted, off the request's way and with bounded memory,
 * shown to their own key and to the organization, let go when it is old; and what people thought of an answer. Not here:
 * figures and cost of a generation (`spend/`), what is read of a request and its answer (`inference/log-contents.ts`).
 */
export { transcriptMigrations } from './migrations/index.ts';
export { type TranscriptOperationParts, transcriptOperations } from './operations.ts';
export type { ContentRule, Transcript } from './transcript.ts';
export { cleanTranscriptsJob, createTranscripts, type TranscriptOptions, type Transcripts } from './transcripts.ts';
