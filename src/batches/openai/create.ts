/** `POST /batches` with `input_file_id`: the requests of the batch are the lines of a file. */

import type { Caller } from '../../access/index.ts';
import { continued } from '../../base/continued.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import { type JsonDocument, readDocument } from '../../base/json.ts';
import { BATCH_FILE_SECONDS, findFile, storedFileId } from '../../files/index.ts';
import type { Exchange } from '../../http/operation.ts';
import { valueCheck } from '../../http/validate.ts';
import type { Batch, BatchEndpoint } from '../batch.ts';
import * as store from '../store.ts';
import { refuseWithoutBudget } from '../submission/affordable.ts';
import { HashedBody, idempotencyKeyOf } from '../submission/idempotency.ts';
import { insert, isRepeated, type Origin, originOf, type SubmitParts, submittedBefore } from '../submission/submit.ts';
import { insertBatchFiles } from './files.sql.ts';
import { isOpenaiClient } from './reply.ts';
import { CreateFileBatchBody, METADATA } from './schema.ts';

/** Enough for all members at their longest; a longer body cannot be meant. */
const MOST_BYTES = 128 * 1024;

/** The members of a body that show which API it is of. */
interface BegunBody {
  /** The whole body, if it is a small JSON object. */
  document: JsonDocument | undefined;
  content: AsyncIterable<Buffer>;
}

export async function beginBody(body: AsyncIterable<Buffer>): Promise<BegunBody> {
  const chunks = body[Symbol.asyncIterator]();
  const begun: Buffer[] = [];
  let bytes = 0;
  let isWhole = false;
  while (!isWhole && bytes <= MOST_BYTES) {
    const next = await chunks.next();
    if (next.done) isWhole = true;
    else {
      begun.push(next.value);
      bytes += next.value.length;
    }
  }
  return { document: isWhole ? documentOf(Buffer.concat(begun)) : undefined, content: continued(begun, chunks) };
}

/**
 * Undefined for a body that is not a JSON object and seems to be of the gateway's own API, which then reports the
 * error.
 */
function documentOf(bytes: Buffer): JsonDocument | undefined {
  try {
    return readDocument(bytes);
  } catch (error) {
    if (bytes.includes('"input_file_id"')) throw error;
    return undefined;
  }
}

export function namesInputFile(document: JsonDocument, headers: Exchange['headers']): boolean {
  const has = (member: string) => document.members.some(({ key }) => key === member);
  return has('input_file_id') || (isOpenaiClient(headers) && !has('requests'));
}

interface CreateBody {
  input_file_id: string;
  endpoint: BatchEndpoint;
  metadata?: Record<string, string> | null;
  output_expires_after?: { seconds: number } | null;
}

let check: ((value: unknown) => void) | undefined;

/**
 * Returns the new batch, or the one that was submitted with the same `Idempotency-Key` before. Its file is read later.
 * @throws GatewayError
 */
export async function createFromFile(
  exchange: Exchange<Caller>,
  parts: SubmitParts,
  document: JsonDocument,
  content: AsyncIterable<Buffer>,
): Promise<Batch> {
  const { clock, runner } = parts;
  const idempotencyKey = idempotencyKeyOf(exchange.headers);
  const body = new HashedBody(content);
  const before = () => submittedBefore(exchange, idempotencyKey, body, parts);
  const first = await before();
  if (first !== undefined) return first;
  for await (const _ of body);
  const { endpoint, metadata = null, ...given } = readBody(document);
  const origin = originOf(exchange, 'openai', parts);
  refuseRegion(origin);
  const inputFileId = await inputFile(given.input_file_id, exchange.caller, parts);
  await refuseWithoutBudget(exchange.caller, parts.inference);
  const id = uuidv7(clock.now());
  const target = { endpoint, model: null, provider: null, ...origin };
  const made = { id, ...target, total: 0, idempotencyKey, bodySha256: body.sha256() };
  try {
    return await insert(made, exchange, parts, async (tx) => {
      await store.beginIntake(tx, id, new Date(clock.now()));
      await insertBatchFiles(tx, {
        ...{ batchId: id, inputFileId, outputFileId: null, errorFileId: null, writtenAt: null, errors: null, metadata },
        outputSeconds: given.output_expires_after?.seconds ?? BATCH_FILE_SECONDS,
      });
      await runner.startReading(tx, id);
    });
  } catch (error) {
    const other = isRepeated(error) ? await before() : undefined;
    if (other === undefined) throw error;
    return other;
  }
}

function refuseRegion({ region }: Origin): void {
  if (region === 'global') return;
  throw new GatewayError('permission_denied', 'input_file_id: files are served on the global host only', {
    path: 'input_file_id',
  });
}

function readBody(document: JsonDocument): CreateBody {
  check ??= valueCheck(CreateFileBatchBody);
  const own = document.members.find(({ key }) => key === 'requests' || key === 'model');
  if (own) throw invalidField('input_file_id', `cannot be combined with ${own.key}`);
  const { value } = document;
  check(value);
  const body = value as unknown as CreateBody;
  for (const [key, text] of Object.entries(body.metadata ?? {})) {
    if (key.length > METADATA.keyLength) {
      throw invalidField('metadata', `has a key with more than ${METADATA.keyLength} characters`);
    }
    for (const each of [key, text]) {
      if (each.includes('\0') || !each.isWellFormed()) {
        throw invalidField('metadata', 'must not contain U+0000 or half surrogate pairs');
      }
    }
  }
  return body;
}

/** Returns its id. @throws GatewayError 404, 400 for another purpose */
async function inputFile(wireId: string, { workspaceId }: Caller, { database, clock }: SubmitParts): Promise<string> {
  const id = storedFileId(wireId);
  const found = id === undefined ? undefined : await findFile(database, workspaceId, id, new Date(clock.now()));
  if (found === undefined) {
    const path = 'input_file_id';
    throw new GatewayError('not_found', `${path}: the workspace has no file with the id ${wireId}`, { path });
  }
  if (found.purpose === 'batch') return found.id;
  throw invalidField('input_file_id', `names a file with the purpose ${found.purpose}; it must be batch`);
}
