/** How vendors spell their batch interfaces (`batch-vendor.ts`), from their documentation and from recordings. */
import { type BatchVendor, formOf, type Json, linesIn, type VendorBatch, type VendorRequest } from './batch-vendor.ts';

export interface Dialect {
  /** JSON, the text of a file, or undefined for an unknown path. */
  handle(vendor: BatchVendor, request: VendorRequest): Json | string | undefined;
}

const jsonLines = (values: readonly Json[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('');
const seconds = (time: Date) => Math.floor(time.getTime() / 1000);
const byId = (vendor: BatchVendor, id: string | undefined) => vendor.batches.find((batch) => batch.id === id);

function polled(vendor: BatchVendor, batch: VendorBatch | undefined): VendorBatch | undefined {
  if (batch !== undefined && vendor.finishes) vendor.finish(batch);
  return batch;
}

/** OpenAI: a file of calls, a batch, files of results and errors. */
const openai: Dialect = {
  handle(vendor, request) {
    const { method, path } = request;
    const route = `${method} ${path.replace(/\?.*/, '')}`;
    if (route === 'POST /files') {
      const { name, content, fields } = formOf(request);
      if (fields.get('purpose') !== 'batch') return undefined;
      const id = vendor.id('file-');
      vendor.files.set(id, { name, content });
      return { id, object: 'file', filename: name, bytes: content.length, purpose: 'batch' };
    }
    if (route === 'GET /files')
      return { data: [...vendor.files].map(([id, { name }]) => ({ id, filename: name })), has_more: false };
    if (route === 'POST /batches') {
      const {
        input_file_id: file,
        metadata,
        endpoint,
        completion_window: window,
      } = JSON.parse(request.body.toString());
      const upload = vendor.files.get(file);
      if (upload === undefined || window !== '24h') return undefined;
      const calls = linesIn(upload.content).map(({ custom_id: id, body, url }) => {
        if (url !== endpoint) throw new Error(`${url} is not ${endpoint}`);
        return { id, body };
      });
      return openaiBatch(vendor.create({ marker: metadata?.gatehouse_batch, calls, uploadId: file }));
    }
    if (route === 'GET /batches')
      return { data: vendor.batches.toReversed().map(openaiBatch), has_more: false, object: 'list' };
    const [, id, action] = /^\/batches\/([^/?]+)(\/cancel)?$/.exec(path) ?? [];
    const batch = byId(vendor, id);
    if (batch !== undefined && action !== undefined && method === 'POST') {
      vendor.finish(batch, 'cancelled', Math.floor(batch.calls.length / 2));
      return openaiBatch(batch);
    }
    if (batch !== undefined && method === 'GET') return openaiBatch(polled(vendor, batch)!);
    return openaiFile(vendor, request);
  },
};

function openaiFile(vendor: BatchVendor, { method, path }: VendorRequest): Json {
  const [, file = '', content] = /^\/files\/([^/]+)(\/content)?$/.exec(path) ?? [];
  if (method === 'DELETE') return vendor.files.delete(file) ? { id: file, deleted: true } : { id: file };
  const [, kind, id] = /^(out|err)-(.*)$/.exec(file) ?? [];
  const batch = byId(vendor, id);
  if (batch === undefined || content === undefined) return undefined;
  const isError = (status: number) => status === 0 || status >= 400;
  const lines = batch.results.filter(({ status }) => isError(status) === (kind === 'err'));
  return jsonLines(
    lines.map(({ id: custom, status, body }) => ({
      id: `batch_req_${custom}`,
      custom_id: custom,
      response: status === 0 ? null : { status_code: status, request_id: `req-${custom}`, body },
      error: status === 0 ? { code: `batch_${batch.state}`, message: 'This request could not be executed.' } : null,
    })),
  );
}

function openaiBatch(batch: VendorBatch): Json {
  const done = batch.state !== 'running' && batch.state !== 'failed';
  return {
    id: batch.id,
    object: 'batch',
    input_file_id: batch.uploadId,
    status: batch.state === 'running' ? 'in_progress' : batch.state,
    output_file_id: done ? `out-${batch.id}` : null,
    error_file_id: done && batch.results.some(({ status }) => status === 0 || status >= 400) ? `err-${batch.id}` : null,
    errors: batch.message === undefined ? null : { object: 'list', data: [{ message: batch.message, line: 1 }] },
    created_at: seconds(batch.createdAt),
    metadata: batch.marker === undefined ? null : { gatehouse_batch: batch.marker },
  };
}

/** Anthropic: calls inline, results as lines, and no place for a marker. */
const anthropic: Dialect = {
  handle(vendor, { method, path, body }) {
    const route = `${method} ${path.replace(/\?.*/, '')}`;
    if (route === 'POST /messages/batches') {
      const { requests } = JSON.parse(body.toString());
      const calls = requests.map(({ custom_id: id, params }: Json) => ({ id, body: params }));
      return anthropicBatch(vendor.create({ marker: undefined, calls }));
    }
    if (route === 'GET /messages/batches')
      return { data: vendor.batches.toReversed().map(anthropicBatch), has_more: false, last_id: null };
    const [, id, action] = /^\/messages\/batches\/([^/?]+)(\/cancel|\/results)?$/.exec(path) ?? [];
    const batch = byId(vendor, id);
    if (batch === undefined) return undefined;
    if (action === '/cancel') vendor.finish(batch, 'cancelled', Math.floor(batch.calls.length / 2));
    if (action === '/results') return jsonLines(batch.results.map((result) => anthropicResult(result, batch)));
    if (method === 'DELETE') {
      vendor.batches.splice(vendor.batches.indexOf(batch), 1);
      return { id, type: 'message_batch_deleted' };
    }
    return anthropicBatch(action === undefined ? polled(vendor, batch)! : batch);
  },
};

function anthropicResult({ id, status, body }: VendorBatch['results'][number], { state }: VendorBatch): Json {
  if (status === 200) return { custom_id: id, result: { type: 'succeeded', message: body } };
  if (status !== 0) return { custom_id: id, result: { type: 'errored', error: body } };
  return { custom_id: id, result: { type: state === 'cancelled' ? 'canceled' : 'expired' } };
}

function anthropicBatch(batch: VendorBatch): Json {
  const count = (test: (status: number) => boolean) => batch.results.filter(({ status }) => test(status)).length;
  const lost = count((status) => status === 0);
  return {
    id: batch.id,
    type: 'message_batch',
    processing_status: batch.state === 'running' ? 'in_progress' : 'ended',
    request_counts: {
      processing: batch.state === 'running' ? batch.calls.length : 0,
      succeeded: count((status) => status === 200),
      errored: count((status) => status > 200),
      canceled: batch.state === 'cancelled' ? lost : 0,
      expired: batch.state === 'cancelled' ? 0 : lost,
    },
    created_at: batch.createdAt.toISOString(),
    cancel_initiated_at: batch.state === 'cancelled' ? batch.createdAt.toISOString() : null,
    results_url: null,
  };
}

export const dialects = { openai, anthropic } satisfies Record<string, Dialect>;
