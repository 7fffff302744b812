/**
 * Resumable uploads (`X-Goog-Upload-*`). Every chunk is a blob of its own until the last one arrives; then the file is
 * written from all of them. What has arrived is in the database, so any process of the gateway takes the next chunk. A
 * chunk counts once it is whole: of a chunk that breaks off, nothing is kept.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type Caller, hashToken } from '../../access/index.ts';
import { type Author, authorOf } from '../../audit/index.ts';
import { GatewayError, notFound } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import type { Blobs } from '../../blobs/index.ts';
import type { Exchange } from '../../http/operation.ts';
import type { Queryable } from '../../storage/database.ts';
import { secondsAfter } from '../expiry.ts';
import { tooLarge } from '../form.ts';
import { findFile, lockBytesOf, type StoredFile } from '../store.ts';
import { type StoreParts, storeContent, workspaceFull } from '../upload.ts';
import { type Announced, badHeader, commandOf, offsetOf } from './command.ts';
import * as store from './store.ts';

export interface UploadParts extends StoreParts {
  /** `Access.callerOfKey` */
  callerOfKey(hash: string): Caller | Promise<Caller>;
}

/** Where an upload is. */
interface Progress {
  status: 'active' | 'final' | 'cancelled';
  receivedBytes: number;
  /** Once it is final. */
  file?: StoredFile;
}

/** Chunks begin at multiples of it, so that they are not many. */
const GRANULARITY_BYTES = 256 * 1024;
const UPLOAD_SECONDS = 24 * 3_600;
/** As at Google, whose clients rely on it and do not delete their files. */
const FILE_SECONDS = 48 * 3_600;
const MOST_UNFINISHED = 100;
const TOKEN_BYTES = 32;
const TOKEN = /^[\w-]{43}$/;

/** @returns the secret of the upload's URL @throws GatewayError 400, 403, 413, 429 */
export async function startUpload(
  { keyHash, organizationId }: Caller,
  workspaceId: string,
  parts: UploadParts,
  { filename, displayName, bytes }: Announced,
): Promise<string> {
  const { database, clock, limits } = parts;
  if (bytes === 0) throw new GatewayError('invalid_request', 'file is empty', { path: 'file' });
  if (bytes !== undefined && bytes > limits.fileBytes) throw tooLarge(limits.fileBytes);
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const createdAt = new Date(clock.now());
  await database.transaction(async (tx) => {
    const { count } = await checkSpace(tx, workspaceId, bytes ?? 0, parts);
    if (count >= MOST_UNFINISHED) {
      const problem = `the workspace has ${MOST_UNFINISHED} unfinished uploads: finish or cancel one`;
      throw new GatewayError('rate_limit_exceeded', problem);
    }
    await store.insertUpload(tx, {
      ...{ id: uuidv7(clock.now()), tokenHash: hashToken(token), organizationId, workspaceId, keyHash, filename },
      ...{ displayName, announcedBytes: bytes ?? null, receivedBytes: 0, fileId: null },
      ...{ createdAt, expiresAt: secondsAfter(createdAt, UPLOAD_SECONDS) },
    });
  });
  return token;
}

/** Takes one request to the URL of an upload. @throws GatewayError 400, 401, 403, 404, 409, 413 */
export async function continueUpload(
  exchange: Exchange<unknown>,
  token: string,
  parts: UploadParts,
): Promise<Progress> {
  const { database, clock } = parts;
  if (!TOKEN.test(token)) throw gone();
  const upload = await store.findUpload(database, hashToken(token), new Date(clock.now()));
  if (upload === undefined) throw gone();
  // The URL is the credential of its upload, as long as the key that started it is valid.
  const caller = await parts.callerOfKey(upload.keyHash);
  const command = commandOf(exchange.headers);
  if (upload.fileId !== null) return finished(upload.workspaceId, upload.fileId, parts);
  if (command.kind === 'query') return { status: 'active', receivedBytes: upload.receivedBytes };
  if (command.kind === 'cancel') {
    await endUpload(upload.id, parts);
    return { status: 'cancelled', receivedBytes: 0 };
  }
  const offset = offsetOf(exchange.headers, exchange.upload === undefined ? upload.receivedBytes : undefined);
  const body = new Body(exchange.upload, offset, upload, parts);
  try {
    if (offset !== upload.receivedBytes) return await repeated(upload, offset, body, parts);
    if (!command.finalize) return await takeChunk(upload, body, parts);
    return await finish(authorOf({ ...about(exchange), caller }), upload, body, parts);
  } catch (error) {
    if (body.interrupted || !isOfFile(error)) throw error;
    await endUpload(upload.id, parts);
    throw final(error);
  }
}

/** Whether the file itself is refused, or has no space: it would be refused again. After other errors, the client may repeat. */
function isOfFile(error: unknown): error is GatewayError {
  return error instanceof GatewayError && (error.details.path === 'file' || error.status === 403);
}

/** The error for a client that repeats requests until it gets the status of its upload. */
function final({ type, message, status, details }: GatewayError): GatewayError {
  return new GatewayError(type, message, { ...details, status, headers: { 'X-Goog-Upload-Status': 'final' } });
}

function about({ requestId, clientAddress, startedAt }: Exchange<unknown>) {
  return { requestId, clientAddress, startedAt };
}

/** The bytes that a request brings, at their offset in the file. */
class Body implements AsyncIterable<Buffer> {
  /** The client went away, or was too slow. */
  interrupted = false;
  bytes = 0;
  readonly offset: number;
  readonly #source: AsyncIterable<Buffer> | undefined;
  readonly #announced: number | null;
  readonly #mostBytes: number;

  constructor(
    source: AsyncIterable<Buffer> | undefined,
    offset: number,
    { announcedBytes }: store.StoredUpload,
    { limits }: UploadParts,
  ) {
    this.#source = source;
    this.offset = offset;
    this.#announced = announcedBytes;
    this.#mostBytes = limits.fileBytes;
  }

  /** Where the file ends after this request. */
  get end(): number {
    return this.offset + this.bytes;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for await (const chunk of this.#arriving()) {
      this.bytes += chunk.length;
      if (this.#announced !== null && this.end > this.#announced) throw otherSize(this.#announced, 'more');
      if (this.end > this.#mostBytes) throw tooLarge(this.#mostBytes);
      yield chunk;
    }
  }

  async *#arriving(): AsyncGenerator<Buffer> {
    if (this.#source === undefined) return;
    try {
      yield* this.#source;
    } catch (error) {
      this.interrupted = true;
      throw error;
    }
  }

  /** @throws GatewayError 400 unless the file is as long as announced */
  checkEnd(): void {
    if (this.#announced !== null && this.end !== this.#announced) throw otherSize(this.#announced, `${this.end}`);
  }
}

function otherSize(announced: number, sent: string): GatewayError {
  const problem = `file was announced with ${announced} bytes, but has ${sent}`;
  return new GatewayError('invalid_request', problem, { path: 'file' });
}

/** A chunk that has arrived before, because its client did not get the answer. @throws GatewayError 400, 416 */
async function repeated(
  { id, receivedBytes }: store.StoredUpload,
  offset: number,
  body: Body,
  { database, blobs }: UploadParts,
): Promise<Progress> {
  const known = (await store.chunksOf(database, id)).find(({ start }) => start === offset);
  const hash = createHash('sha256');
  for await (const piece of body) hash.update(piece);
  const isSame = known?.bytes === body.bytes && hash.digest().equals((await blobs.find(known.blobId)).sha256);
  if (isSame) return { status: 'active', receivedBytes };
  throw otherOffset(receivedBytes);
}

/** The client may ask where the upload is, and send what is missing. */
function otherOffset(receivedBytes: number): GatewayError {
  const message = `the header x-goog-upload-offset must be ${receivedBytes}, the number of bytes that have arrived`;
  return new GatewayError('invalid_request', message, {
    status: 416,
    headers: progressHeaders('active', receivedBytes),
  });
}

export function progressHeaders(status: Progress['status'], receivedBytes: number): Record<string, string> {
  return {
    'X-Goog-Upload-Status': status,
    'X-Goog-Upload-Size-Received': String(receivedBytes),
    ...(status === 'active' && { 'X-Goog-Upload-Chunk-Granularity': String(GRANULARITY_BYTES) }),
  };
}

async function takeChunk(upload: store.StoredUpload, body: Body, parts: UploadParts): Promise<Progress> {
  const { database, blobs } = parts;
  if (body.offset % GRANULARITY_BYTES !== 0) {
    throw badHeader(
      'x-goog-upload-offset',
      `must be a multiple of ${GRANULARITY_BYTES}: only the last chunk may be shorter`,
    );
  }
  const blob = await blobs.write(body);
  try {
    if (blob.bytes === 0) throw new GatewayError('invalid_request', 'the chunk is empty', { path: '' });
    await database.transaction(async (tx) => {
      await checkSpace(tx, upload.workspaceId, blob.bytes, parts);
      await lockAt(tx, upload);
      await blobs.keep(tx, blob.id);
      await store.addChunk(tx, { uploadId: upload.id, start: body.offset, bytes: blob.bytes, blobId: blob.id });
    });
  } catch (error) {
    await blobs.drop(database, blob.id);
    throw error;
  }
  return { status: 'active', receivedBytes: body.end };
}

async function finish(author: Author, upload: store.StoredUpload, body: Body, parts: UploadParts): Promise<Progress> {
  const { blobs } = parts;
  try {
    const file = await storeContent(author, parts, {
      ...{ workspaceId: upload.workspaceId, filename: upload.filename, displayName: upload.displayName },
      ...{ content: whole(upload.id, body, parts), downloadable: false },
      terms: (createdAt) => ({ purpose: 'user_data', expiresAt: secondsAfter(createdAt, FILE_SECONDS) }),
      async alongside(tx, { id: fileId, bytes }) {
        await lockAt(tx, upload);
        for (const blobId of await store.finishUpload(tx, { id: upload.id, fileId, bytes }))
          await blobs.drop(tx, blobId);
      },
    });
    return { status: 'final', receivedBytes: file.bytes, file };
  } catch (error) {
    if (error instanceof Finished) return finished(upload.workspaceId, error.fileId, parts);
    throw error;
  }
}

/** The chunks that have arrived, and the last one. */
async function* whole(uploadId: string, body: Body, { database, blobs }: UploadParts): AsyncGenerator<Buffer> {
  for (const { blobId } of await store.chunksOf(database, uploadId)) yield* await blobs.read(blobId);
  yield* body;
  body.checkEnd();
}

/** Another request has finished the upload meanwhile. */
class Finished extends Error {
  readonly fileId: string;

  constructor(fileId: string) {
    super('the upload is finished');
    this.fileId = fileId;
  }
}

/** It was never there, has expired, was cancelled, or its file is deleted. */
function gone(): GatewayError {
  return final(notFound('upload with this URL'));
}

/** Keeps the upload for the transaction. @throws GatewayError 404, 409 if another request has changed it meanwhile */
async function lockAt(tx: Queryable, { id, receivedBytes }: store.StoredUpload): Promise<void> {
  const held = await store.lockUpload(tx, id);
  if (held === undefined) throw gone();
  if (held.fileId !== null) throw new Finished(held.fileId);
  if (held.receivedBytes === receivedBytes) return;
  const headers = progressHeaders('active', held.receivedBytes);
  throw new GatewayError('invalid_request', 'another request has sent this chunk', { status: 409, headers });
}

async function finished(workspaceId: string, fileId: string, { database, clock }: UploadParts): Promise<Progress> {
  const file = await findFile(database, workspaceId, fileId, new Date(clock.now()));
  if (file === undefined) throw gone();
  return { status: 'final', receivedBytes: file.bytes, file };
}

/** Holds the workspace, and counts what has arrived of its unfinished uploads. @throws GatewayError 403 */
async function checkSpace(
  tx: Queryable,
  workspaceId: string,
  bytes: number,
  { limits }: UploadParts,
): Promise<{ count: number }> {
  const stored = await lockBytesOf(tx, workspaceId);
  const unfinished = await store.unfinishedIn(tx, workspaceId);
  if (stored + unfinished.bytes + bytes > limits.workspaceBytes) throw workspaceFull(limits);
  return unfinished;
}

async function endUpload(id: string, { database, blobs }: UploadParts): Promise<void> {
  await database.transaction(async (tx) => {
    if ((await store.lockUpload(tx, id)) !== undefined) await removeUploads(tx, [id], blobs);
  });
}

/** With what has arrived of them. @param ids locked */
export async function removeUploads(tx: Queryable, ids: readonly string[], blobs: Pick<Blobs, 'drop'>): Promise<void> {
  for (const blobId of await store.deleteUploads(tx, ids)) await blobs.drop(tx, blobId);
}
