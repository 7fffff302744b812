/** The file that a request means, and what is done with it. The same for the operations of every client. */
import type { TSchema } from 'typebox';
import { type Caller, chosenWorkspace } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, orNotFound } from '../base/errors.ts';
import type { Blobs } from '../blobs/index.ts';
import { sendDownload } from '../http/download.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Database } from '../storage/database.ts';
import * as store from './store.ts';
import { removeFile, type StoreParts } from './upload.ts';

export const TAG_HEADER = { ETag: 'The checksum of the content, for `If-Range` and `If-None-Match`' };

/** Of a download, besides that of the whole content. */
export const PART_REPLIES: Operation['replies'] = {
  206: { description: 'The byte range of the header `Range`', contentType: '*/*', headers: TAG_HEADER },
  304: { description: 'The content is the one of `If-None-Match`', headers: TAG_HEADER },
};

/** Of the operations that Google's clients also download with. */
export function fileOrContent(file: TSchema): Operation['replies'] {
  const description = "The file; its content if the path ends with `:download`, as Google's clients write";
  return { 200: { description, schema: file, texts: ['*/*'] }, ...PART_REPLIES };
}

const FILE = 'file with this id in the workspace';

/** The workspace whose files are meant. @throws GatewayError 400, 403 */
export async function workspaceOf(
  { caller, query }: Pick<Exchange<Caller>, 'caller' | 'query'>,
  { database }: { database: Database },
): Promise<string> {
  const wanted = (query['workspace_id'] as string | undefined)?.toLowerCase();
  if (caller.kind === 'inference') {
    if (wanted === undefined || wanted === caller.workspaceId) return caller.workspaceId;
    throw new GatewayError('permission_denied', 'workspace_id names another workspace than that of the key', {
      path: 'workspace_id',
    });
  }
  return chosenWorkspace(database, caller.organizationId, wanted);
}

/** @param id UUID; undefined: it cannot be one @throws GatewayError 400, 403, 404 */
export async function fileOf(
  exchange: Pick<Exchange<Caller>, 'caller' | 'query'>,
  id: string | undefined,
  { database, clock }: { database: Database; clock: Clock },
): Promise<store.StoredFile> {
  const workspaceId = await workspaceOf(exchange, { database });
  const found = id === undefined ? undefined : await store.findFile(database, workspaceId, id, new Date(clock.now()));
  return orNotFound(found, FILE);
}

/** @throws GatewayError 400 for an uploaded file */
export async function sendFile(
  exchange: Exchange<Caller>,
  file: store.StoredFile,
  blobs: Pick<Blobs, 'find' | 'read'>,
): Promise<void> {
  if (!file.downloadable) {
    throw new GatewayError(
      'invalid_request',
      'uploaded files cannot be downloaded; only files that tools or batches made',
    );
  }
  const { sha256 } = await blobs.find(file.blobId);
  await sendDownload(exchange, {
    bytes: file.bytes,
    checksum: sha256,
    headers: {
      'Content-Type': file.mimeType,
      'Content-Disposition': `attachment; filename*=UTF-8''${encodeURIComponent(file.filename)}`,
      'X-Content-Type-Options': 'nosniff',
    },
    read: (range) => blobs.read(file.blobId, range),
  });
}

/** @returns the file as it was @throws GatewayError 404 if it is gone meanwhile */
export function deleteOne(
  exchange: Exchange<Caller>,
  { id }: store.StoredFile,
  parts: StoreParts,
): Promise<store.StoredFile> {
  return changeAs(authorOf(exchange), parts, async (tx, changed) => {
    return orNotFound(await removeFile(tx, changed, parts, id), FILE);
  });
}
