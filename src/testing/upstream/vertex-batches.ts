/**
 * Vertex AI's batch interface, Cloud Storage and the sign-in (`batch-vendor.ts`): jobs that read their requests from a bucket
 * and write them back with their responses.
 */
import type { Dialect } from './batch-dialects.ts';
import {
  type BatchVendor,
  type Json,
  jsonLines,
  linesIn,
  polled,
  type VendorBatch,
  type VendorRequest,
} from './batch-vendor.ts';

const BUCKET = 'calls';
const PARENT = '/projects/cloud-project/locations/us-east5/batchPredictionJobs';
const OBJECTS = `/storage/v1/b/${BUCKET}/o`;
/** So small that lists have several pages. */
const PAGE = 1;

const states = {
  running: 'JOB_STATE_RUNNING',
  completed: 'JOB_STATE_SUCCEEDED',
  failed: 'JOB_STATE_FAILED',
  expired: 'JOB_STATE_EXPIRED',
  cancelled: 'JOB_STATE_CANCELLED',
};

export const vertex: Dialect = {
  handle(vendor, request) {
    const { method, headers, body } = request;
    const { pathname, searchParams: query } = new URL(request.path, 'http://google.invalid');
    if (pathname === '/token') return { access_token: 'token-of-the-test', expires_in: 3600, token_type: 'Bearer' };
    if (headers.authorization !== 'Bearer token-of-the-test') throw new Error(`no token: ${method} ${pathname}`);
    if (pathname.includes(OBJECTS)) return stored(vendor, request, pathname, query);
    if (`${method} ${pathname}` === `POST ${PARENT}`) return created(vendor, JSON.parse(body.toString()));
    if (`${method} ${pathname}` === `GET ${PARENT}`) {
      const name = /^display_name="(.*)"$/.exec(query.get('filter') ?? '')?.[1];
      return { batchPredictionJobs: vendor.batches.filter(({ marker }) => marker === name).map(job) };
    }
    const [, id = '', action] = /^\/(projects\/.*?)(:cancel)?$/.exec(pathname) ?? [];
    const batch = vendor.batches.find((each) => each.id === id);
    if (batch === undefined) return undefined;
    if (action !== undefined) vendor.finish(batch, 'cancelled', Math.floor(batch.calls.length / 2));
    else if (method === 'GET') polled(vendor, batch);
    published(vendor, batch);
    if (method === 'DELETE') batch.details.deleted = true;
    return method === 'GET' ? job(batch) : {};
  },
};

function created(vendor: BatchVendor, asked: Json): Json {
  const [uri = ''] = asked.inputConfig.gcsSource.uris;
  const file = vendor.files.get(uri.slice(`gs://${BUCKET}/`.length));
  const publisher = /^publishers\/(google|anthropic)\/models\/[\w@.-]+$/.exec(asked.model)?.[1];
  if (file === undefined || publisher === undefined) return undefined;
  const calls = linesIn(file.content).map((line) => {
    const id = publisher === 'anthropic' ? line.custom_id : line.request.labels.gatehouse_call;
    const isLabel = Object.entries(line.request.labels ?? {})
      .flat()
      .every((text) => /^[a-z0-9_-]{1,63}$/.test(String(text)));
    if (!isLabel || (publisher === 'anthropic' && line.request.anthropic_version === undefined))
      throw new Error('a bad line');
    return { id, body: line.request };
  });
  const id = `projects/1234/locations/us-east5/batchPredictionJobs/${vendor.id('9')}`;
  return job(vendor.create({ id, marker: asked.displayName, calls, details: { ...asked, publisher } }));
}

/** Writes the results of a job into its bucket, once. */
function published(vendor: BatchVendor, batch: VendorBatch): void {
  if (batch.state === 'running' || batch.details.published) return;
  batch.details.published = true;
  const ran = batch.results.filter(({ status }) => status !== 0);
  const lines = ran.map(({ id, status, body }) => ({
    ...(batch.details.publisher === 'anthropic' && { custom_id: id }),
    status: status === 200 ? '' : `Bad Request: ${JSON.stringify(body)}`,
    processed_time: batch.createdAt.toISOString(),
    request: batch.calls.find((call) => call.id === id)?.body,
    response: status === 200 ? body : {},
  }));
  const { outputUriPrefix } = batch.details.outputConfig.gcsDestination;
  const folder = `${outputUriPrefix.slice(`gs://${BUCKET}/`.length)}prediction-model-2026-01-01T00:00:00Z/`;
  const content = Buffer.from(jsonLines(lines));
  vendor.files.set(`${folder}predictions.jsonl`, { name: 'predictions.jsonl', content });
  vendor.files.set(`${folder}stats.json`, { name: 'stats.json', content: Buffer.from('{}') });
}

function job(batch: VendorBatch): Json {
  const { displayName, model, inputConfig, outputConfig } = batch.details;
  const error = batch.message === undefined ? undefined : { code: 3, message: batch.message };
  return { name: batch.id, displayName, model, inputConfig, outputConfig, state: states[batch.state], error };
}

/** Cloud Storage: uploads, lists, objects. */
function stored(vendor: BatchVendor, { method, body }: VendorRequest, pathname: string, query: URLSearchParams): Json {
  if (pathname === `/upload${OBJECTS}`) {
    const name = query.get('name') ?? '';
    vendor.files.set(name, { name, content: body });
    return { name, size: String(body.length) };
  }
  if (pathname === OBJECTS) {
    const names = [...vendor.files.keys()].filter((name) => name.startsWith(query.get('prefix') ?? '?')).sort();
    const from = Number(query.get('pageToken') ?? 0);
    const next = from + PAGE < names.length && { nextPageToken: String(from + PAGE) };
    return { items: names.slice(from, from + PAGE).map((name) => ({ name })), ...next };
  }
  const name = decodeURIComponent(pathname.slice(OBJECTS.length + 1));
  if (method === 'DELETE') return vendor.files.delete(name) ? {} : undefined;
  return query.get('alt') === 'media' ? vendor.files.get(name)?.content.toString() : undefined;
}
