/**
 * Content logging (`io_logging`): inputs and outputs of requests, stored where it is enabled, written in the background
 * with bounded memory, readable for their own key and the organization, and removed after their retention; and feedback
 * on generations. Not here: usage and cost of a generation (`spend/`), and how content is extracted from a request and
 * its answer (`inference/answer/log-contents.ts`).
 */
export { transcriptMigrations } from './migrations/index.ts';
export { type TranscriptOperationParts, transcriptOperations } from './operations.ts';
export type { ContentRule, Transcript } from './transcript.ts';
export { cleanTranscriptsJob, createTranscripts, type TranscriptOptions, type Transcripts } from './transcripts.ts';
