/** The shape in which a client expects files, and files in it. */
import type { IncomingHttpHeaders } from 'node:http';
import { isUuid, prefixedId } from '../base/ids.ts';
import { unixSeconds } from '../base/timestamp.ts';
import { OWN_FILE_PREFIX } from '../formats/conversation/file-words.ts';
import type { StoredFile } from './store.ts';
import { type VendorName, vendorNamed } from './vendor/names.ts';

export type Shape = 'anthropic' | 'openai' | 'svc';

/** Ids of earlier versions. Those of vendors have no 32 hexadecimal digits after it. */
const OLDER_PREFIX = 'file_';

/** What a list query says of the client that sent it. */
interface Hints {
  provider?: VendorName;
  after?: string;
  order?: string;
}

/** Anthropic's SDKs name their API version; OpenAI's name themselves, and page by `after` and `order`. */
export function shapeOf(headers: IncomingHttpHeaders, { provider, after, order }: Hints): Shape {
  if (headers['anthropic-version'] !== undefined) return 'anthropic';
  const isOpenai = headers['x-stainless-lang'] !== undefined || /^(?:Async)?OpenAI\//.test(headers['user-agent'] ?? '');
  if (isOpenai || after !== undefined || order !== undefined) return 'openai';
  return provider === undefined ? 'svc' : vendorNamed(provider);
}

/** A file under its id on the wire. */
interface ShownFile
  extends Pick<StoredFile, 'filename' | 'mimeType' | 'bytes' | 'purpose' | 'downloadable' | 'createdAt'> {
  id: string;
  expiresAt?: Date | null;
}

/** @param namespace the name of `svc` on the wire */
export function fileReply(file: StoredFile, shape: Shape, namespace: string): Record<string, unknown> {
  return shownFile({ ...file, id: wireId(file.id) }, shape, namespace);
}

export function shownFile(file: ShownFile, shape: Shape, namespace: string): Record<string, unknown> {
  const { id, expiresAt } = file;
  if (shape === 'openai') {
    return {
      _shape: shape,
      id,
      object: 'file',
      bytes: file.bytes,
      created_at: unixSeconds(file.createdAt),
      ...(expiresAt && { expires_at: unixSeconds(expiresAt) }),
      filename: file.filename,
      purpose: file.purpose,
      status: 'processed',
    };
  }
  return {
    _shape: shapeName(shape, namespace),
    id,
    type: 'file',
    filename: file.filename,
    mime_type: file.mimeType,
    size_bytes: file.bytes,
    created_at: file.createdAt.toISOString(),
    ...(shape === 'anthropic' && expiresAt !== undefined && { expires_at: expiresAt?.toISOString() ?? null }),
    downloadable: file.downloadable,
  };
}

export interface FileList {
  /** In the shape of the list. */
  data: readonly Readonly<Record<string, unknown>>[];
  hasMore: boolean;
  /** Ids of the first and the last file. */
  first: string | null;
  last: string | null;
}

export function listReply(
  files: readonly StoredFile[],
  hasMore: boolean,
  shape: Shape,
  namespace: string,
): Record<string, unknown> {
  const [first = null, last = null] = files.length === 0 ? [] : [files[0]!, files.at(-1)!].map(({ id }) => wireId(id));
  const data = files.map((file) => fileReply(file, shape, namespace));
  return shownList({ data, hasMore, first, last }, shape, namespace);
}

export function shownList(
  { data, hasMore, first, last }: FileList,
  shape: Shape,
  namespace: string,
): Record<string, unknown> {
  return {
    _shape: shapeName(shape, namespace),
    ...(shape === 'openai' && { object: 'list' }),
    data,
    has_more: hasMore,
    first_id: first,
    last_id: last,
    ...(shape === 'svc' && { cursor: hasMore ? last : null }),
    ...(shape === 'anthropic' && { next_page: hasMore ? last : null }),
  };
}

export function deletedReply(file: StoredFile, shape: Shape, namespace: string): Record<string, unknown> {
  return shownDeleted(wireId(file.id), shape, namespace);
}

export function shownDeleted(id: string, shape: Shape, namespace: string): Record<string, unknown> {
  const common = { _shape: shapeName(shape, namespace), id };
  return shape === 'openai' ? { ...common, object: 'file', deleted: true } : { ...common, type: 'file_deleted' };
}

/** For the audit log. */
export function resourceOf({ id, workspaceId }: StoredFile) {
  return { resourceType: 'file', resourceId: wireId(id), workspaceId };
}

export function wireId(id: string): string {
  return prefixedId(OWN_FILE_PREFIX, id);
}

/** Undefined if `wire` is not the id of a file. */
export function storedId(wire: string): string | undefined {
  const prefix = [OWN_FILE_PREFIX, OLDER_PREFIX].find((known) => wire.startsWith(known));
  const hex = prefix === undefined ? '' : wire.slice(prefix.length).toLowerCase();
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return isUuid(id) ? id : undefined;
}

function shapeName(shape: Shape, namespace: string): string {
  return shape === 'svc' ? namespace : shape;
}
