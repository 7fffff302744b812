/** How vendors spell their batch interfaces (`batch-vendor.ts`), from their documentation and from recordings. */
import {
  type BatchVendor,
  formOf,
  type Json,
  jsonLines,
  linesIn,
  polled,
  type VendorBatch,
  type VendorRequest,
} from './batch-vendor.ts';
import { bedrock } from './bedrock-batches.ts';
import { vertex } from './vertex-batches.ts';
import { xai } from './xai-batches.ts';

export interface Dialect {
  /** JSON, the text of a file, or undefined for an unknown path. */
  handle(vendor: BatchVendor, request: VendorRequest): Json | string | undefined;
}

const seconds = (time: Date) => Math.floor(time.getTime() / 1000);
const byId = (vendor: BatchVendor, id: string | undefined) => vendor.batches.find((batch) => batch.id === id);

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
    if (batch !== undefined && method === 'GET') return openaiBatch(polled(vendor, batch));
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
    return anthropicBatch(action === undefined ? polled(vendor, batch) : batch);
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

/** Mistral: a file of calls, a job of that file, files of results and errors. */
const mistral: Dialect = {
  handle(vendor, request) {
    const { method, path } = request;
    const route = `${method} ${path.replace(/\?.*/, '')}`;
    if (route === 'POST /batch/jobs') {
      const { input_files: files, metadata, model } = JSON.parse(request.body.toString());
      const upload = vendor.files.get(files[0]);
      if (upload === undefined || model === undefined) return undefined;
      const calls = linesIn(upload.content).map(({ custom_id: id, body }) => ({ id, body }));
      return mistralJob(vendor.create({ marker: metadata.gatehouse_batch, calls, uploadId: files[0] }));
    }
    if (route === 'GET /batch/jobs') return { data: vendor.batches.toReversed().map(mistralJob), total: 1 };
    const [, id, action] = /^\/batch\/jobs\/([^/?]+)(\/cancel)?$/.exec(path) ?? [];
    const batch = byId(vendor, id);
    if (batch !== undefined && action !== undefined)
      vendor.finish(batch, 'cancelled', Math.floor(batch.calls.length / 2));
    if (batch !== undefined) return mistralJob(action === undefined ? polled(vendor, batch) : batch);
    return /^\/files/.test(path) ? openai.handle(vendor, request) : undefined;
  },
};

function mistralJob(batch: VendorBatch): Json {
  const { id, output_file_id: output, error_file_id: errors, metadata, created_at: at } = openaiBatch(batch);
  const states = {
    running: 'RUNNING',
    completed: 'SUCCESS',
    failed: 'FAILED',
    expired: 'TIMEOUT_EXCEEDED',
    cancelled: 'CANCELLED',
  };
  return {
    id,
    status: states[batch.state],
    output_file: output,
    error_file: errors,
    metadata,
    created_at: at,
    errors: [],
  };
}

/** Together: as OpenAI, with other paths, another wrapping, and no metadata. */
const together: Dialect = {
  handle(vendor, request) {
    const { method, path } = request;
    if (method === 'POST' && path === '/files') return undefined;
    if (method === 'POST' && path === '/files/upload') {
      const { name, content, fields } = formOf(request);
      if (fields.get('purpose') !== 'batch-api' || fields.get('file_name') !== name) return undefined;
      const id = vendor.id('file-');
      vendor.files.set(id, { name, content });
      return { id, filename: name };
    }
    const answer = openai.handle(vendor, request);
    const shown = (batch: Json) => ({ ...batch, status: String(batch.status).toUpperCase(), metadata: undefined });
    if (method === 'POST' && path === '/batches') return { job: shown(answer), warning: null };
    if (method === 'GET' && path.startsWith('/batches?')) return answer.data.map(shown);
    return method === 'GET' && path.startsWith('/batches/') ? shown(answer) : answer;
  },
};

/** The Gemini API: an upload, an operation with our name, a file of results. */
const google: Dialect = {
  handle(vendor, { method, path, body, headers }) {
    const route = `${method} ${path.replace(/\?.*/, '')}`;
    if (route === 'POST /upload/v1beta/files') {
      const boundary = /boundary=(\S+)/.exec(headers['content-type'] ?? '')?.[1];
      const [, about = '', content = ''] = body.toString().split(`--${boundary}`);
      const text = (part: string) => part.slice(part.indexOf('\r\n\r\n') + 4).replace(/\r\n$/, '');
      const name = `files/${vendor.id('f')}`;
      vendor.files.set(name, { name: JSON.parse(text(about)).file.displayName, content: Buffer.from(text(content)) });
      return { file: { name, uri: `https://example.invalid/${name}`, state: 'ACTIVE' } };
    }
    if (/^POST \/v1beta\/models\/.*:batchGenerateContent$/.test(route)) {
      const { batch } = JSON.parse(body.toString());
      const upload = vendor.files.get(batch.inputConfig.fileName);
      if (upload === undefined) return undefined;
      const calls = linesIn(upload.content).map(({ key: id, request }) => ({ id, body: request }));
      return operation(vendor.create({ id: `batches/${vendor.id('b')}`, marker: batch.displayName, calls }));
    }
    if (route === 'GET /v1beta/batches') return { operations: vendor.batches.toReversed().map(operation) };
    const [, id = '', action] = /^\/v1beta\/(batches\/\w+)(:cancel)?/.exec(path) ?? [];
    const batch = byId(vendor, id);
    if (batch !== undefined && action !== undefined)
      vendor.finish(batch, 'cancelled', Math.floor(batch.calls.length / 2));
    if (batch !== undefined) return method === 'GET' ? operation(polled(vendor, batch)) : {};
    const [, file] = /^\/download\/v1beta\/files\/out-(\w+):download/.exec(path) ?? [];
    const done = byId(vendor, `batches/${file}`);
    if (done !== undefined) return jsonLines(done.results.filter(({ status }) => status !== 0).map(geminiResult));
    if (method !== 'DELETE') return undefined;
    vendor.files.delete(path.replace('/v1beta/', ''));
    return {};
  },
};

function geminiResult({ id, status, body }: VendorBatch['results'][number]): Json {
  return status === 200 ? { key: id, response: body } : { key: id, error: body.error };
}

function operation(batch: VendorBatch): Json {
  const states = {
    running: 'RUNNING',
    completed: 'SUCCEEDED',
    failed: 'FAILED',
    expired: 'EXPIRED',
    cancelled: 'CANCELLED',
  };
  const done = batch.state !== 'running';
  return {
    name: batch.id,
    metadata: {
      state: `BATCH_STATE_${states[batch.state]}`,
      displayName: batch.marker,
      createTime: batch.createdAt.toISOString(),
    },
    ...(done && { done, response: { responsesFile: batch.id.replace('batches/', 'files/out-') } }),
  };
}

/**
 * Azure: OpenAI's interface below the v1 API, or with a dated version without `/v1` anywhere. An upload is read first, the
 * endpoint is a constant, and states begin with a capital.
 */
const azure: Dialect = {
  handle(vendor, request) {
    const { pathname, searchParams } = new URL(request.path, 'http://azure.invalid');
    const isDated = /^\d/.test(searchParams.get('api-version') ?? '');
    searchParams.delete('api-version');
    const root = isDated ? '/openai' : '/openai/v1';
    if (request.headers['api-key'] === undefined || !pathname.startsWith(`${root}/`)) return undefined;
    const path = pathname.slice(root.length) + (searchParams.size > 0 ? `?${searchParams}` : '');
    const [, file = ''] = /^\/files\/([^/?]+)$/.exec(path) ?? [];
    if (request.method === 'GET' && vendor.files.has(file)) {
      const isRead = vendor.requests.filter((each) => each.method === 'GET' && each.path === request.path).length > 1;
      return { id: file, object: 'file', purpose: 'batch', status: isRead ? 'processed' : 'pending' };
    }
    let { body } = request;
    if (request.method === 'POST' && path === '/batches') {
      const asked = JSON.parse(body.toString());
      const urls = new Set(linesIn(vendor.files.get(asked.input_file_id)!.content).map(({ url }) => url));
      const known = isDated ? ['/chat/completions'] : ['/v1/chat/completions', '/v1/responses'];
      const [url] = urls;
      if (asked.endpoint !== '/chat/completions' || urls.size !== 1 || !known.includes(url)) return undefined;
      body = Buffer.from(JSON.stringify({ ...asked, endpoint: url }));
    }
    const answer = openai.handle(vendor, { ...request, path, body });
    const status: string | undefined = answer?.status;
    if (status === undefined) return answer;
    return { ...answer, status: status[0]!.toUpperCase() + status.slice(1) };
  },
};

/** Groq has OpenAI's interface. */
export const dialects = {
  openai,
  azure,
  groq: openai,
  anthropic,
  mistral,
  together,
  google,
  vertex,
  bedrock,
  xai,
} satisfies Record<string, Dialect>;
