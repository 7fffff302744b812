/** Stores files: those that clients upload, and those that the gateway makes. */
import type { Caller } from '../access/index.ts';
import { type Author, authorOf, type Changed, changeAs, gatewayAuthor, recordChange } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Blob, Blobs } from '../blobs/index.ts';
import type { Exchange } from '../http/operation.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { typed } from './content-type.ts';
import { expiryOf, secondsAfter } from './expiry.ts';
import { checkFilename } from './filename.ts';
import { tooLarge, type UploadedFile } from './form.ts';
import { purposeOf } from './purpose.ts';
import { fileReply, resourceOf, shapeOf } from './shape.ts';
import * as store from './store.ts';

interface FileLimits {
  fileBytes: number;
  /** Of a file with the purpose `batch`. */
  batchFileBytes: number;
  workspaceBytes: number;
}

export const FILE_LIMITS: FileLimits = {
  fileBytes: 100 * 1024 * 1024,
  batchFileBytes: 200 * 1024 * 1024,
  workspaceBytes: 10 * 1024 ** 3,
};

export interface StoreParts {
  database: Database;
  changes: Changes;
  blobs: Blobs;
  clock: Clock;
  /** The name of `svc` on the wire. */
  namespace: string;
  limits: FileLimits;
}

export function mostBytesOf(purpose: string, { fileBytes, batchFileBytes }: FileLimits): number {
  return purpose === 'batch' ? batchFileBytes : fileBytes;
}

/** @throws GatewayError 400, 403, 413 */
export function storeUpload(
  exchange: Exchange<Caller>,
  parts: StoreParts,
  workspaceId: string,
  { filename, content }: UploadedFile,
  fields: ReadonlyMap<string, string>,
): Promise<store.StoredFile> {
  return storeContent(authorOf(exchange), parts, {
    ...{ workspaceId, filename, content, downloadable: false },
    terms(createdAt) {
      const purpose = purposeOf(fields.get('purpose'));
      return { purpose, expiresAt: expiryOf(fields, purpose, createdAt) };
    },
  });
}

interface NewContent {
  workspaceId: string;
  filename: string | undefined;
  content: AsyncIterable<Buffer>;
  downloadable: boolean;
  /** Called once the content is complete: fields of a form may come after the file. */
  terms(createdAt: Date): { purpose: string; expiresAt: Date | null };
  /** What its client calls it, where that is no filename. */
  displayName?: string | null;
  /** The id of a file that it takes the place of. */
  replaces?: string | undefined;
  /** What else changes in the transaction that adds the file. What it throws is thrown, and nothing is stored. */
  alongside?(tx: Queryable, file: store.StoredFile): Promise<void>;
}

/** Adds a file whose content arrives. @throws GatewayError 400, 403, 413, and 409 if the replaced file is gone */
export async function storeContent(
  author: Author,
  { database, changes, blobs, clock, limits, namespace }: StoreParts,
  { workspaceId, filename, displayName = null, content, downloadable, terms, replaces, alongside }: NewContent,
): Promise<store.StoredFile> {
  const name = checkFilename(filename);
  const { mimeType: mimeTypeOf, content: checked } = await typed(content, name);
  const blob = await blobs.write(checked);
  try {
    const createdAt = new Date(clock.now());
    const mimeType = mimeTypeOf();
    const { purpose, expiresAt } = terms(createdAt);
    if (blob.bytes > mostBytesOf(purpose, limits)) throw tooLarge(mostBytesOf(purpose, limits));
    const file: store.StoredFile = {
      ...newFile(blob, createdAt),
      ...{ organizationId: author.organizationId, workspaceId, filename: name, mimeType, purpose },
      ...{ displayName, downloadable, expiresAt },
    };
    await changeAs(author, { database, changes }, async (tx, changed) => {
      if ((await store.lockBytesOf(tx, workspaceId)) + file.bytes > limits.workspaceBytes) throw workspaceFull(limits);
      if (replaces !== undefined && (await removeFile(tx, changed, { blobs, namespace }, replaces)) === undefined) {
        throw new GatewayError('invalid_request', 'the file was changed meanwhile; read it again', { status: 409 });
      }
      await blobs.keep(tx, blob.id);
      await store.insertFile(tx, file);
      await alongside?.(tx, file);
      const after = fileReply(file, 'svc', namespace);
      await changed({ action: 'file.created', ...resourceOf(file), after });
    });
    return file;
  } catch (error) {
    await blobs.drop(database, blob.id);
    throw error;
  }
}

/** Files of tools, in the words of OpenAI's clients. */
export const TOOL_TERMS = () => ({ purpose: 'assistants_output', expiresAt: null });

/**
 * Adds a file that a tool has made to the workspace of the caller. Returns it as the client expects it.
 * @throws GatewayError 400, 403, 413
 */
export async function addToolFile(
  exchange: Exchange<Caller>,
  parts: StoreParts,
  { filename, content }: Pick<NewContent, 'filename' | 'content'>,
): Promise<Record<string, unknown>> {
  const { workspaceId } = exchange.caller;
  const file = await storeContent(authorOf(exchange), parts, {
    ...{ workspaceId, filename, content, downloadable: true },
    terms: TOOL_TERMS,
  });
  return fileReply(file, shapeOf(exchange.headers, {}), parts.namespace);
}

/** Removes a file, and says so in the audit log. Undefined if there is none. */
export async function removeFile(
  tx: Queryable,
  changed: Changed,
  { blobs, namespace }: Pick<StoreParts, 'blobs' | 'namespace'>,
  id: string,
): Promise<store.StoredFile | undefined> {
  const held = await store.lockFile(tx, id);
  if (held === undefined) return undefined;
  await store.deleteFile(tx, held.id);
  await blobs.drop(tx, held.blobId);
  const before = fileReply(held, 'svc', namespace);
  await changed({ action: 'file.deleted', ...resourceOf(held), before });
  return held;
}

interface MadeFile extends Pick<store.StoredFile, 'organizationId' | 'workspaceId' | 'filename' | 'mimeType'> {
  blob: Blob;
  purpose: string;
  expiresAfterSeconds: number;
}

/**
 * Adds a file that the gateway has made, which clients may download. The workspace may exceed its limit, because the
 * results are paid for. `tx` is the transaction that stores what the file belongs to. Returns the id of the file.
 */
export async function addMadeFile(
  tx: Queryable,
  { blob, expiresAfterSeconds, ...made }: MadeFile,
  { blobs, clock, namespace }: Pick<StoreParts, 'blobs' | 'clock' | 'namespace'>,
): Promise<string> {
  const createdAt = new Date(clock.now());
  const expiresAt = secondsAfter(createdAt, expiresAfterSeconds);
  const file: store.StoredFile = {
    ...{ ...newFile(blob, createdAt), ...made },
    ...{ displayName: null, downloadable: true, expiresAt },
  };
  await blobs.keep(tx, blob.id);
  await store.insertFile(tx, file);
  const change = { action: 'file.created', ...resourceOf(file), after: fileReply(file, 'svc', namespace) } as const;
  await recordChange(tx, gatewayAuthor(file.organizationId, clock.now()), change);
  return file.id;
}

function newFile({ id: blobId, bytes }: Blob, createdAt: Date) {
  return { id: uuidv7(createdAt.getTime()), bytes, blobId, createdAt };
}

export function workspaceFull({ workspaceBytes }: FileLimits): GatewayError {
  return new GatewayError(
    'permission_denied',
    `the files of the workspace would be larger than ${workspaceBytes} bytes`,
  );
}
