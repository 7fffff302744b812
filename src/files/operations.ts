/** `/files`. */
import type { Caller } from '../access/index.ts';
import { invalidField } from '../base/errors.ts';
import type { Blobs } from '../blobs/index.ts';
import { googleFailure, isGoogle } from '../formats/index.ts';
import { ANY_KEY } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import { deleteOne, fileOf, fileOrContent, PART_REPLIES, sendFile, TAG_HEADER, workspaceOf } from './chosen-file.ts';
import { readForm } from './form.ts';
import { deleteForGoogle, getForGoogle, listForGoogle } from './google/handlers.ts';
import { googleFileOperations } from './google/operations.ts';
import { uploadsOf } from './google/store.ts';
import { removeUploads, type UploadParts } from './google/uploads.ts';
import * as schema from './schema.ts';
import { deletedReply, fileReply, listReply, shapeOf, storedId } from './shape.ts';
import * as store from './store.ts';
import { FILE_LIMITS, mostBytesOf, storeUpload, workspaceFull } from './upload.ts';
import type { VendorName } from './vendor/names.ts';
import { VendorFiles, type VendorParts } from './vendor/operations.ts';

export interface FileParts extends UploadParts {
  vendors: VendorParts;
}

/** Boundaries, headers and fields of a form. */
const FORM_OVERHEAD_BYTES = 256 * 1024;
const DEFAULT_PAGE = 100;
const TAG = 'Files';

/** Looks into `parts` only when a request comes. */
export function fileOperations(parts: FileParts): Operation<Caller>[] {
  return [
    ...[listFiles(parts), uploadFile(parts), getFile(parts), downloadFile(parts), deleteFile(parts)],
    ...googleFileOperations(parts),
  ];
}

/** What vendors answer with (`provider`). */
const VENDOR_ERRORS = [413, 429, 502, 504];
const common = {
  tag: TAG,
  access: { ...ANY_KEY, regions: ['global'] },
  errors: VENDOR_ERRORS,
  encodeError: googleFailure,
} as const;

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
      if (isGoogle(exchange.headers)) return listForGoogle(exchange, parts);
      const query = exchange.query as ListQuery;
      const workspaceId = await workspaceOf(exchange, parts);
      if (query.provider !== undefined) return new VendorFiles(parts, exchange, workspaceId, query.provider).list();
      const limit = query.limit ?? DEFAULT_PAGE;
      const found = await store.listFiles(parts.database, workspaceId, {
        ids: namedFiles(query),
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
    errors: [...VENDOR_ERRORS, 416],
    replies: fileOrContent(schema.ShownFileReply),
    async handle(exchange) {
      if (isGoogle(exchange.headers)) return getForGoogle(exchange, exchange.params['file_id']!, parts);
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
        headers: { ...TAG_HEADER, 'Accept-Ranges': '`bytes`' },
      },
      ...PART_REPLIES,
    },
    async handle(exchange) {
      const vendor = await vendorFiles(exchange, parts);
      if (vendor !== undefined) return vendor.download();
      const file = await existing(exchange, parts);
      await sendFile(exchange, file, parts.blobs);
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
      if (isGoogle(exchange.headers)) return deleteForGoogle(exchange, exchange.params['file_id']!, parts);
      const vendor = await vendorFiles(exchange, parts);
      if (vendor !== undefined) return vendor.delete();
      const file = await deleteOne(exchange, await existing(exchange, parts), parts);
      exchange.reply(200, deletedReply(file, shapeOf(exchange.headers, exchange.query), parts.namespace));
    },
  };
}

interface ScopeQuery {
  workspace_id?: string;
  provider?: VendorName;
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
  ids?: string[];
}

/** The files that a list names; undefined if it is not limited to some. @throws GatewayError 400 */
function namedFiles({ ids, ...query }: ListQuery): string[] | undefined {
  if (ids === undefined) return undefined;
  const paging = ['limit', 'cursor', 'after', 'after_id', 'page'] as const;
  const other = paging.find((name) => query[name] !== undefined);
  if (other !== undefined) throw invalidField('ids', `cannot be combined with ${other}`);
  return ids.map(storedId).filter((id) => id !== undefined);
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

/** What ends with a workspace: its files and unfinished uploads. */
export function endFiles(blobs: Pick<Blobs, 'drop'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    for (const blobId of await store.deleteFilesOf(tx, workspaceId)) await blobs.drop(tx, blobId);
    await removeUploads(tx, await uploadsOf(tx, workspaceId), blobs);
  };
}

/** Undefined: the files of this gateway are meant. */
async function vendorFiles(exchange: Exchange<Caller>, parts: FileParts): Promise<VendorFiles | undefined> {
  const { provider } = exchange.query as ScopeQuery;
  if (provider === undefined) return undefined;
  return new VendorFiles(parts, exchange, await workspaceOf(exchange, parts), provider);
}

function existing(exchange: Exchange<Caller>, parts: FileParts): Promise<store.StoredFile> {
  return fileOf(exchange, storedId(exchange.params['file_id'] ?? ''), parts);
}
