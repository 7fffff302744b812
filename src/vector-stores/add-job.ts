/** The job that adds a file to a vector store: its text, split into chunks, with vectors where the store has a model. */
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { FileContents, UsableFile } from '../files/index.ts';
import { wireFileId } from '../files/index.ts';
import type { Job, JobKind } from '../jobs/index.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Database } from '../storage/database.ts';
import { chunksOf } from './chunking.ts';
import { insertChunks, type StoredChunk } from './chunks.sql.ts';
import * as entries from './entries.sql.ts';
import { vectorsOf } from './entry-vectors.ts';
import { deletePieces } from './pieces.sql.ts';
import { type StoreKey, storeKeyOf } from './sealed.ts';
import { termsOf } from './terms.ts';

export type AddFileJob = JobKind<{ id: string }>;

export interface AddJobParts {
  database: Database;
  sealing: Sealing;
  clock: Clock;
  log: Log;
  files: Pick<FileContents, 'find' | 'read'>;
  pdf: { read(bytes: Uint8Array): Promise<{ pages: readonly string[] } | { fault: string }> };
  docx: { read(bytes: Uint8Array): Promise<{ text: string } | { fault: string }> };
  callerOfKey(hash: string): Caller | Promise<Caller>;
  /** A governed request of the caller. Rejects with GatewayError. */
  embed(caller: Caller, model: string, texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

/** UTF-16 units of a text, and bytes of a file. */
const LONGEST_TEXT = 4 * 1024 * 1024;
const MOST_FILE_BYTES = 32 * 1024 * 1024;
/** Of a store: what one search can compare. */
const MOST_CHUNKS = 20_000;
const ATTEMPTS = 6;
/** Positions of a word in a chunk that the index keeps; more do not change a rank. */
const MOST_POSITIONS = 32;
const LAST_POSITION = 16_383;
/** Chunks after which other work gets its turn. */
const TURN = 50;
const PDF = 'application/pdf';
const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
const TEXT_TYPE = /^(?:text\/|application\/(?:json|x-ndjson)$)/;

/** A file that cannot be added, ever. */
class Unusable extends Error {
  readonly code: 'unsupported_file' | 'invalid_file' | 'server_error';

  constructor(code: Unusable['code'], message: string) {
    super(message);
    this.code = code;
  }
}

export function addFileJob(parts: AddJobParts): AddFileJob {
  return {
    name: 'vector-stores.add',
    runs: 'many',
    concurrency: 2,
    retries: ATTEMPTS - 1,
    run: (job) => run(parts, job),
  };
}

async function run(parts: AddJobParts, { data: { id }, attempt, signal }: Job<{ id: string }>): Promise<void> {
  const { database, log } = parts;
  const entry = await entries.waitingEntry(database, id);
  if (entry === undefined) return;
  try {
    await add(parts, entry, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    const problem = problemOf(error);
    if (problem === undefined && attempt < ATTEMPTS) throw error;
    if (problem === undefined)
      log.error('a file was not added to a vector store', { file: entry.fileId, cause: error });
    await entries.failEntry(
      database,
      id,
      problem?.code ?? 'server_error',
      problem?.message ?? 'the file could not be added',
    );
  }
}

/** Undefined for what may succeed later. */
function problemOf(error: unknown): Unusable | undefined {
  if (error instanceof Unusable) return error;
  const isFinal = error instanceof GatewayError && error.status < 500 && error.status !== 429 && error.status !== 408;
  return isFinal ? new Unusable('server_error', `its vectors could not be made: ${error.message}`) : undefined;
}

async function add(parts: AddJobParts, entry: entries.WaitingEntry, signal: AbortSignal): Promise<void> {
  const wire = wireFileId(entry.fileId);
  const file = (await parts.files.find(entry.workspaceId, [wire])).get(wire);
  // It was deleted, and its entry with it, or has expired.
  if (file === undefined) throw new Unusable('invalid_file', 'the file does not exist any more');
  const text = await textOf(file, parts, signal);
  const key = await storeKeyOf(parts.sealing, { id: entry.storeId, dataKey: entry.dataKey });
  const texts: string[] = [];
  const stored: StoredChunk[] = [];
  for (const chunk of chunksOf(text, { tokens: entry.chunkTokens, overlap: entry.overlapTokens })) {
    if (texts.length >= MOST_CHUNKS) throw tooManyChunks();
    stored.push({
      sealed: key.seal(entry.id, `chunk ${texts.length}`, Buffer.from(chunk)),
      terms: indexed(chunk, key),
    });
    texts.push(chunk);
    if (texts.length % TURN === 0) await new Promise(setImmediate);
  }
  if (texts.length === 0) throw new Unusable('invalid_file', 'the file has no text');
  const vectors = await vectorsFor(parts, entry, texts, key, signal);
  const sealed = vectors && key.seal(entry.id, 'vectors', vectors);
  const bytes = stored.reduce((sum, chunk) => sum + chunk.sealed.length, sealed?.length ?? 0);
  await parts.database.transaction(async (tx) => {
    if (!(await entries.lockWaiting(tx, entry))) return;
    if ((await entries.chunksInStore(tx, entry.storeId)) + texts.length > MOST_CHUNKS) throw tooManyChunks();
    await insertChunks(tx, entry.id, stored);
    await deletePieces(tx, entry.id);
    await entries.completeEntry(tx, { id: entry.id, chunks: texts.length, bytes, vectors: sealed ?? null });
  });
}

function tooManyChunks(): Unusable {
  return new Unusable('invalid_file', `the vector store would have more than ${MOST_CHUNKS} chunks`);
}

async function textOf(file: UsableFile, { files, pdf, docx }: AddJobParts, signal: AbortSignal): Promise<string> {
  const { mimeType, bytes } = file;
  const isText = TEXT_TYPE.test(mimeType);
  if (!isText && mimeType !== PDF && mimeType !== DOCX) {
    throw new Unusable('unsupported_file', `files of the type ${mimeType} have no text that can be searched`);
  }
  if (bytes > MOST_FILE_BYTES) throw new Unusable('invalid_file', `the file has more than ${MOST_FILE_BYTES} bytes`);
  const content = await files.read(file, signal);
  const text = isText
    ? content.toString('utf8').replace(/^\ufeff/, '')
    : documentText(mimeType === PDF ? await pdf.read(content) : await docx.read(content));
  if (text.length > LONGEST_TEXT) {
    throw new Unusable('invalid_file', `the text of the file is longer than ${LONGEST_TEXT} characters`);
  }
  return text;
}

function documentText(read: { pages: readonly string[] } | { text: string } | { fault: string }): string {
  if ('pages' in read) return read.pages.join('\n\n');
  if ('text' in read) return read.text;
  // The thread reads other files first.
  if (read.fault === 'busy') throw new Error('too many documents wait');
  if (read.fault === 'unavailable') throw new Unusable('server_error', 'the reader of documents cannot be loaded');
  throw new Unusable('invalid_file', `the document cannot be read (${read.fault})`);
}

/** The words of a chunk, as a literal of `tsvector`. */
function indexed(chunk: string, key: StoreKey): string {
  const positions = new Map<string, number[]>();
  termsOf(chunk).forEach((word, index) => {
    const known = positions.get(word);
    if (known === undefined) positions.set(word, [Math.min(index + 1, LAST_POSITION)]);
    else if (known.length < MOST_POSITIONS && index < LAST_POSITION) known.push(index + 1);
  });
  return [...positions].map(([word, at]) => `${key.term(word)}:${at.join(',')}`).join(' ');
}

async function vectorsFor(
  { database, callerOfKey, embed }: AddJobParts,
  { id: entryId, embeddingModel, keyHash }: entries.WaitingEntry,
  texts: readonly string[],
  key: StoreKey,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  if (embeddingModel === null) return undefined;
  const vectors = await vectorsOf(texts, {
    ...{ database, key, entryId },
    // The key may be disabled meanwhile.
    embed: async (some) => embed(await callerOfKey(keyHash), embeddingModel, some, signal),
  });
  if (vectors === undefined) {
    throw new Unusable('server_error', 'the embedding model returned vectors that do not fit together');
  }
  return vectors;
}
