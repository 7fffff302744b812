/** `/files`. */
import { type Caller, chosenWorkspace } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError, invalidField, orNotFound } from '../base/errors.ts';
import type { Blobs } from '../blobs/index.ts';
import { ANY_KEY } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import { sendDownload } from '../http/download.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import { readForm } from './form.ts';
import * as schema from './schema.ts';
import { deletedReply, fileReply, listReply, shapeOf, storedId } from './shape.ts';
import * as store from './store.ts';
import { FILE_LIMITS, mostBytesOf, removeFile, type StoreParts, storeUpload, workspaceFull } from './upload.ts';
import type { Vendor } from './vendor/access.ts';
import { VendorFiles, type VendorParts } from './vendor/operations.ts';

export interface FileParts extends StoreParts {
  vendors: VendorParts;
}

/** Boundaries, headers and fields of a form. */
const FORM_OVERHEAD_BYTES = 256 * 1024;
const DEFAULT_PAGE = 100;
const TAG = 'Files';
const TAG_HEADER = 'The checksum of the content, for `If-Range` and `If-None-Match`';
const FILE = 'file with this id in the workspace';

/** Looks into `parts` only when a request comes. */
export function fileOperations(parts: FileParts): Operation<Caller>[] {
  return [listFiles(parts), uploadFile(parts), getFile(parts), downloadFile(parts), deleteFile(parts)];
}

/** What vendors answer with (`provider`). */
const VENDOR_ERRORS = [413, 429, 502, 504];
const common = { tag: TAG, access: { ...ANY_KEY, regions: ['global'] }, errors: VENDOR_ERRORS } as const;

function listFiles(parts: FileParts): Operation<Caller> {
  return {
    ...common,
    id: 'listFiles',
    method: 'GET',
    path: '/files',
    summary: 'List the files of a workspace, oldest first',
    query: schema.ListFilesQuery,
    replies: ok('One page, in the shape that the client expects', schema.FileListReply),
    async handle(exchange) {
      const query = exchange.query as ListQuery;
      const workspaceId = await workspaceOf(exchange, parts);
      if (query.provider !== undefined) return new VendorFiles(parts, exchange, workspaceId, query.provider).list();
      const limit = query.limit ?? DEFAULT_PAGE;
      const found = await store.listFiles(parts.database, workspaceId, {
        after: pageStart(query),
        limit: limit + 1,
        purpose: query.purpose,
        now: new Date(parts.clock.now()),
      });
      const shape = shapeOf(exchange.headers, query);
      exchange.reply(200, listReply(found.slice(0, limit), found.length > limit, shape, parts.namespace));
    },
  };
}

function uploadFile(parts: FileParts): Operation<Caller> {
  return {
    ...common,
    id: 'uploadFile',
    method: 'POST',
    path: '/files',
    summary: 'Upload a file to a workspace',
    query: schema.ScopeQuery,
    upload: {
      contentType: 'multipart/form-data',
      schema: schema.UploadForm,
      maxBytes: FILE_LIMITS.batchFileBytes + FORM_OVERHEAD_BYTES,
    },
    replies: ok('The file', schema.FileReply),
    async handle(exchange) {
      const { limits } = parts;
      const workspaceId = await workspaceOf(exchange, parts);
      const { provider } = exchange.query as ScopeQuery;
      if (provider !== undefined) return new VendorFiles(parts, exchange, workspaceId, provider).upload();
      if ((await store.bytesOf(parts.database, workspaceId)) >= limits.workspaceBytes) throw workspaceFull(limits);
      const type = exchange.headers['content-type'] ?? '';
      const mostBytes = (fields: ReadonlyMap<string, string>) => mostBytesOf(fields.get('purpose') ?? 'batch', limits);
      const file = await readForm(exchange.upload!, type, mostBytes, (uploaded, fields) =>
        storeUpload(exchange, parts, workspaceId, uploaded, fields),
      );
      exchange.reply(200, fileReply(file, shapeOf(exchange.headers, exchange.query), parts.namespace));
    },
  };
}

function getFile(parts: FileParts): Operation<Caller> {
  return {
    ...common,
    id: 'getFile',
    method: 'GET',
    path: '/files/{file_id}',
    summary: 'Show a file',
    params: schema.FileParams,
    query: schema.ScopeQuery,
    replies: ok('The file', schema.FileReply),
    async handle(exchange) {
      const vendor = await vendorFiles(exchange, parts);
      if (vendor !== undefined) return vendor.get();
      const file = await existing(exchange, parts);
      exchange.reply(200, fileReply(file, shapeOf(exchange.headers, exchange.query), parts.namespace));
    },
  };
}

function downloadFile(parts: FileParts): Operation<Caller> {
  return {
    ...common,
    id: 'downloadFile',
    method: 'GET',
    path: '/files/{file_id}/content',
    summary: 'Download a file that a tool or a batch produced',
    params: schema.FileParams,
    query: schema.ScopeQuery,
    errors: [...VENDOR_ERRORS, 416],
    replies: {
      200: {
        description: 'The content',
        contentType: '*/*',
        headers: { ETag: TAG_HEADER, 'Accept-Ranges': '`bytes`' },
      },
      206: { description: 'The byte range of the header `Range`', contentType: '*/*', headers: { ETag: TAG_HEADER } },
      304: { description: 'The content is the one of `If-None-Match`', headers: { ETag: TAG_HEADER } },
    },
    async handle(exchange) {
      const vendor = await vendorFiles(exchange, parts);
      if (vendor !== undefined) return vendor.download();
      const file = await existing(exchange, parts);
      if (!file.downloadable) {
        throw new GatewayError(
          'invalid_request',
          'uploaded files cannot be downloaded; only files that tools or batches made',
        );
      }
      const { sha256 } = await parts.blobs.find(file.blobId);
      await sendDownload(exchange, {
        bytes: file.bytes,
        checksum: sha256,
        headers: {
          'Content-Type': file.mimeType,
          'Content-Disposition': `attachment; filename*=UTF-8''${encodeURIComponent(file.filename)}`,
          'X-Content-Type-Options': 'nosniff',
        },
        read: (range) => parts.blobs.read(file.blobId, range),
      });
    },
  };
}

function deleteFile(parts: FileParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteFile',
    method: 'DELETE',
    path: '/files/{file_id}',
    summary: 'Delete a file',
    params: schema.FileParams,
    query: schema.ScopeQuery,
    replies: ok('The file is gone', schema.FileDeletedReply),
    async handle(exchange) {
      const vendor = await vendorFiles(exchange, parts);
      if (vendor !== undefined) return vendor.delete();
      const known = await existing(exchange, parts);
      const file = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        return orNotFound(await removeFile(tx, changed, parts, known.id), FILE);
      });
      exchange.reply(200, deletedReply(file, shapeOf(exchange.headers, exchange.query), parts.namespace));
    },
  };
}

interface ScopeQuery {
  workspace_id?: string;
  provider?: Vendor;
}

interface ListQuery extends ScopeQuery {
  limit?: number;
  cursor?: string;
  after?: string;
  after_id?: string;
  page?: string;
  before_id?: string;
  order?: string;
  purpose?: string;
}

/** The id that the page begins after. */
function pageStart({
  cursor,
  after,
  after_id: afterId,
  page,
  before_id: before,
  order,
}: ListQuery): string | undefined {
  if (before !== undefined) throw invalidField('before_id', 'is not supported: files are listed oldest first');
  if (order === 'desc') throw invalidField('order', 'must be asc: files are listed oldest first');
  const cursors = { cursor, after, after_id: afterId, page };
  const [first, second] = Object.entries(cursors).filter(([, value]) => value !== undefined);
  if (first === undefined) return undefined;
  const [name, value] = first;
  if (second !== undefined) throw invalidField(name, `cannot be combined with ${second[0]}`);
  const id = storedId(value!);
  if (id === undefined) throw invalidField(name, 'is not the id of a file');
  return id;
}

/** The workspace whose files are meant. @throws GatewayError 400, 403 */
async function workspaceOf(exchange: Exchange<Caller>, parts: FileParts): Promise<string> {
  const { caller, query } = exchange;
  const wanted = (query as ScopeQuery).workspace_id?.toLowerCase();
  if (caller.kind === 'inference') {
    if (wanted === undefined || wanted === caller.workspaceId) return caller.workspaceId;
    throw new GatewayError('permission_denied', 'workspace_id names another workspace than that of the key', {
      path: 'workspace_id',
    });
  }
  return chosenWorkspace(parts.database, caller.organizationId, wanted);
}

/** What ends with a workspace: its files. */
export function endFiles(blobs: Pick<Blobs, 'drop'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    for (const blobId of await store.deleteFilesOf(tx, workspaceId)) await blobs.drop(tx, blobId);
  };
}

/** Undefined: the files of this gateway are meant. */
async function vendorFiles(exchange: Exchange<Caller>, parts: FileParts): Promise<VendorFiles | undefined> {
  const { provider } = exchange.query as ScopeQuery;
  if (provider === undefined) return undefined;
  return new VendorFiles(parts, exchange, await workspaceOf(exchange, parts), provider);
}

async function existing(exchange: Exchange<Caller>, parts: FileParts): Promise<store.StoredFile> {
  const workspaceId = await workspaceOf(exchange, parts);
  const id = storedId(exchange.params['file_id'] ?? '');
  const file = id && (await store.findFile(parts.database, workspaceId, id, new Date(parts.clock.now())));
  return orNotFound(file || undefined, FILE);
}
