/** Files of a vendor in the shape that a client expects, and its pages in the vendor's own query. */
import { invalidField } from '../../base/errors.ts';
import { type FileList, type Shape, shownDeleted, shownFile, shownList } from '../shape.ts';
import type { Vendor } from './names.ts';

/** As a list query of any client names them. */
export interface ListQuery {
  limit?: number;
  cursor?: string;
  after?: string;
  after_id?: string;
  page?: string;
  before_id?: string;
  order?: string;
  purpose?: string;
  ids?: readonly string[];
}

type Json = Readonly<Record<string, unknown>>;

/** Files with these purposes were not uploaded as material for models, and can be downloaded. */
const DOWNLOADABLE = new Set(['batch', 'batch_output', 'fine-tune', 'fine-tune-results', 'assistants_output']);

/** @throws GatewayError 400 for what the vendor's lists lack */
export function listPath(query: ListQuery, vendor: Vendor): string {
  const { cursor, after, after_id: afterId, page, before_id: before, order, purpose, limit, ids } = query;
  if (cursor !== undefined && after !== undefined) throw invalidField('cursor', 'cannot be combined with after');
  const start = cursor ?? after ?? afterId ?? page;
  const search = new URLSearchParams();
  const add = (name: string, value: string | number | undefined) => {
    if (value !== undefined) search.set(name, String(value));
  };
  add('limit', limit);
  if (vendor === 'openai') {
    if (before !== undefined) throw invalidField('before_id', 'is not supported by OpenAI');
    if (ids !== undefined) throw invalidField('ids', 'is not supported by OpenAI');
    add('after', start);
    add('order', order);
    add('purpose', purpose);
  } else {
    if (order !== undefined) throw invalidField('order', 'is not supported by Anthropic');
    if (purpose !== undefined) throw invalidField('purpose', 'is not supported by Anthropic');
    add('after_id', start);
    add('before_id', before);
    for (const id of ids ?? []) search.append('ids[]', id);
  }
  return `/files${search.size === 0 ? '' : `?${search}`}`;
}

/** In the vendor's own shape all that it said, in another one what both have. */
export function vendorFile(file: Json, vendor: Vendor, shape: Shape, namespace: string): Json {
  if (shape === vendor) return { _shape: shape, ...file };
  const text = (name: string) => (typeof file[name] === 'string' ? file[name] : '');
  const purpose = text('purpose');
  const created = file['created_at'];
  const shared = { id: text('id'), filename: text('filename') };
  if (vendor === 'openai') {
    const createdAt = new Date(typeof created === 'number' ? created * 1000 : 0);
    const kind = { mimeType: 'application/octet-stream', purpose, downloadable: DOWNLOADABLE.has(purpose) };
    return shownFile({ ...shared, ...kind, bytes: Number(file['bytes'] ?? 0), createdAt }, shape, namespace);
  }
  const createdAt = new Date(typeof created === 'string' ? created : 0);
  const kind = { mimeType: text('mime_type'), purpose: 'user_data', downloadable: file['downloadable'] === true };
  return shownFile({ ...shared, ...kind, bytes: Number(file['size_bytes'] ?? 0), createdAt }, shape, namespace);
}

export function vendorList(list: Json, vendor: Vendor, shape: Shape, namespace: string): Json {
  const data = Array.isArray(list['data']) ? (list['data'] as Json[]) : [];
  const idOf = (file: Json | undefined) => (typeof file?.['id'] === 'string' ? file['id'] : null);
  const shown: FileList = {
    data: data.map((file) => vendorFile(file, vendor, shape, namespace)),
    hasMore: list['has_more'] === true,
    first: idOf(data[0]),
    last: idOf(data.at(-1)),
  };
  return shownList(shown, shape, namespace);
}

export function vendorDeleted(id: string, shape: Shape, namespace: string): Json {
  return shownDeleted(id, shape, namespace);
}
