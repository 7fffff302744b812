/** xAI's batch interface (`batch-vendor.ts`): a file of calls, a batch with counts, pages of results. */
import type { Dialect } from './batch-dialects.ts';
import {
  type BatchVendor,
  formOf,
  type Json,
  linesIn,
  polled,
  type VendorBatch,
  type VendorResult,
} from './batch-vendor.ts';

/** So small that results have several pages. */
const PAGE = 3;

export const xai: Dialect = {
  handle(vendor, request) {
    const { method } = request;
    const { pathname: path, searchParams: query } = new URL(request.path, 'http://xai.invalid');
    const route = `${method} ${path}`;
    if (route === 'POST /files') {
      const { name, content, fields } = formOf(request);
      if (fields.size > 0) return undefined;
      const id = vendor.id('file_');
      vendor.files.set(id, { name, content });
      return { id, filename: name, bytes: content.length };
    }
    if (route === 'GET /files')
      return { data: [...vendor.files].map(([id, { name }]) => ({ id, filename: name })), pagination_token: null };
    if (route === 'POST /batches') return created(vendor, JSON.parse(request.body.toString()));
    if (route === 'GET /batches') return page(vendor.batches.toReversed().map(shown), query, 'batches');
    const [, file = ''] = /^\/files\/(\w+)$/.exec(path) ?? [];
    if (method === 'DELETE') return vendor.files.delete(file) ? { id: file, deleted: true } : undefined;
    const [, id, action] = /^\/batches\/([\w-]+)(:cancel|\/results)?$/.exec(path) ?? [];
    const batch = vendor.batches.find((each) => each.id === id);
    if (batch === undefined) return undefined;
    if (action === '/results')
      return page(batch.results.filter(({ status }) => status !== 0).map(result), query, 'results');
    if (action === ':cancel') vendor.finish(batch, 'cancelled', Math.floor(batch.calls.length / 2));
    return shown(action === undefined ? polled(vendor, batch) : batch);
  },
};

function created(vendor: BatchVendor, { name, input_file_id: file }: Json): Json {
  const upload = vendor.files.get(file);
  if (upload === undefined) return undefined;
  const calls = linesIn(upload.content).map(({ custom_id: id, method, url, body }) => {
    if (method !== 'POST' || url !== '/v1/chat/completions') throw new Error(`${method} ${url}`);
    return { id, body };
  });
  return shown(vendor.create({ marker: name, calls, uploadId: file }));
}

function page(all: Json[], query: URLSearchParams, member: string): Json {
  const from = Number(query.get('pagination_token') ?? 0);
  const next = from + PAGE;
  return { [member]: all.slice(from, next), pagination_token: next < all.length ? String(next) : null };
}

/** It expires no batches: a call that was not run counts as cancelled. */
function shown(batch: VendorBatch): Json {
  const count = (test: (status: number) => boolean) => batch.results.filter(({ status }) => test(status)).length;
  const isRefused = batch.state === 'failed';
  return {
    batch_id: batch.id,
    name: batch.marker,
    create_time: batch.createdAt.toISOString().slice(0, 10),
    cancel_time: batch.state === 'cancelled' || isRefused ? batch.createdAt.toISOString().slice(0, 10) : null,
    cancel_by_xai_message: isRefused ? batch.message : null,
    input_file_id: batch.uploadId,
    state: {
      num_requests: isRefused ? 0 : batch.calls.length,
      num_pending: batch.state === 'running' ? batch.calls.length : 0,
      num_success: count((status) => status === 200),
      num_error: count((status) => status > 200),
      num_cancelled: count((status) => status === 0),
    },
  };
}

function result({ id, status, body }: VendorResult): Json {
  const outcome = status === 200 ? { response: { chat_get_completion: body } } : { error: body.error };
  return { batch_request_id: id, batch_result: outcome };
}
