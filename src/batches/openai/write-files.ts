/** Writes the results of a final batch to its output and error files. */

import type { Clock } from '../../base/clock.ts';
import { ERROR_STATUS, type ErrorType } from '../../base/errors.ts';
import type { Blob, Blobs } from '../../blobs/index.ts';
import { addMadeFile } from '../../files/index.ts';
import type { Database, Queryable } from '../../storage/database.ts';
import { type Batch, wireId } from '../batch.ts';
import { type ItemResult, resultsAfter, type StoredResult } from '../items.sql.ts';
import { CANCELLED, EXPIRED, resultId, resultJson } from '../results/result.ts';
import * as store from '../store.ts';
import { lockUnwritten, markWritten } from './files.sql.ts';

export interface WriteParts {
  database: Database;
  clock: Clock;
  blobs: Blobs;
  /** The name of `svc` on the wire. */
  namespace: string;
}

const PAGE = { count: 200, bytes: 1024 * 1024 };
/** Without an answer of the endpoint, not even an error. */
const NEVER_RAN = new Set([EXPIRED.type, CANCELLED.type]);

export async function writeFiles(parts: WriteParts, id: string, signal: AbortSignal): Promise<void> {
  const { database, blobs } = parts;
  const batch = await store.findBatch(database, id);
  if (batch === undefined) return;
  const { completed, failed } = batch.purgedAt === null ? batch : { completed: 0, failed: 0 };
  const written: { output?: Blob; error?: Blob } = {};
  try {
    if (completed > 0) written.output = await blobs.write(linesOf(database, id, 'completed', signal));
    if (failed > 0) written.error = await blobs.write(linesOf(database, id, 'failed', signal));
    if (await database.transaction((tx) => attach(tx, batch, written, parts))) return;
  } catch (error) {
    await drop(written, parts);
    throw error;
  }
  await drop(written, parts);
}

/** False: another process was faster, or the batch is gone. */
async function attach(
  tx: Queryable,
  { id, organizationId, workspaceId }: Batch,
  { output, error }: { output?: Blob; error?: Blob },
  parts: WriteParts,
): Promise<boolean> {
  const files = await lockUnwritten(tx, id);
  if (files === undefined) return false;
  const add = (blob: Blob, kind: string) =>
    addMadeFile(
      tx,
      {
        ...{ organizationId, workspaceId, blob, purpose: 'batch_output', mimeType: 'application/x-ndjson' },
        filename: `${wireId(id)}_${kind}.jsonl`,
        expiresAfterSeconds: files.outputSeconds,
      },
      parts,
    );
  await markWritten(tx, {
    batchId: id,
    outputFileId: output === undefined ? null : await add(output, 'output'),
    errorFileId: error === undefined ? null : await add(error, 'error'),
    writtenAt: new Date(parts.clock.now()),
  });
  return true;
}

async function drop(written: { output?: Blob; error?: Blob }, { blobs, database }: WriteParts): Promise<void> {
  // What cannot be dropped now goes with the abandoned ones.
  for (const blob of Object.values(written)) await blobs.drop(database, blob.id).catch(() => {});
}

async function* linesOf(
  database: Database,
  batchId: string,
  outcome: ItemResult['outcome'],
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const end = Buffer.from('\n');
  for (let after = -1; ; ) {
    signal.throwIfAborted();
    const page = await resultsAfter(database, batchId, after, PAGE);
    if (page.length === 0) return;
    const lines = page
      .filter((result) => result.outcome === outcome)
      .flatMap((result) => [lineOf(batchId, result), end]);
    if (lines.length > 0) yield Buffer.concat(lines);
    after = page.at(-1)!.position;
  }
}

/** As OpenAI's: an error of the endpoint is a response with its status. */
function lineOf(batchId: string, result: StoredResult): Buffer {
  const { position, customId, requestId, error } = result;
  if (error === null) return resultJson(batchId, result);
  const { type, message, param, error_type: errorType } = error;
  const neverRan = NEVER_RAN.has(type);
  const response = {
    status_code: ERROR_STATUS[errorType as ErrorType] ?? 500,
    request_id: requestId,
    body: { error: { message, type: errorType, param, code: type } },
  };
  const line = {
    id: resultId(batchId, position),
    custom_id: customId,
    response: neverRan ? null : response,
    error: neverRan ? { code: type, message } : null,
  };
  return Buffer.from(JSON.stringify(line));
}
