/**
 * The batch interface of xAI: a file of calls, a batch of that file, pages of results
 * (docs.x.ai/developers/advanced-api-usage/batch-api). A batch has a name, our marker, and counts instead of a state.
 */
import type { BatchService, UpstreamBatch, UpstreamResult } from './contract.ts';
import { createdId, forget, get, type Json, listIn, nameOf, pages, post, textIn, unlessStatus } from './exchange.ts';
import { uploadOnce } from './files.ts';
import { CANCELLED, httpStatusOf } from './grpc-status.ts';
import { callLine } from './lines.ts';

/**
 * The models that take batches, all at the same discount (docs.x.ai/developers/pricing#batch-api-pricing): 20 % for every
 * token. Others are refused, or cost as much as single requests.
 */
const MODELS = /^grok-4\.(3|20)(-|$)(?!.*multi-agent)/;
const NEXT = { parameter: 'pagination_token', member: 'pagination_token' };
const PAGE = 100;
/** Its list has no order. */
const MOST_PAGES = 200;
const MOST_PAGE_BYTES = 64 * 1024 * 1024;
const DONE = [400, 404, 409];

export const xaiBatches: BatchService = {
  // The largest file of its Files API.
  limits: { items: 50_000, bytes: 48 * 1024 * 1024 },
  storesMarker: true,
  pricePercent: 80,
  carries: ({ path, model }) => path === '/chat/completions' && MODELS.test(model),
  frame: () => ({ head: '', between: '', tail: '' }),
  line: (id, each) => callLine(id, '/v1/chat/completions', each),
  async submit(submission, account) {
    const uploadId = await uploadOnce(submission, account, { list: `/files?limit=${PAGE}`, fields: () => ({}) });
    await submission.creating();
    const made = await post(account, '/batches', { name: nameOf(submission.marker), input_file_id: uploadId });
    return createdId(made, 'batch_id');
  },
  async find({ marker }, uploadId, account) {
    const found: string[] = [];
    const page = (query: string) => get(account, `/batches?limit=${PAGE}${query}`);
    for await (const list of pages(page, NEXT, MOST_PAGES)) {
      for (const batch of listIn(list, 'batches')) {
        const isOurs = batch['name'] === nameOf(marker) || (uploadId !== null && batch['input_file_id'] === uploadId);
        if (isOurs) found.unshift(String(batch['batch_id']));
      }
    }
    return found;
  },
  async poll(id, account) {
    return batchOf(id, await get(account, pathOf(id)));
  },
  async *results({ id }, account) {
    const page = (query: string) => get(account, `${pathOf(id)}/results?limit=${PAGE}${query}`, MOST_PAGE_BYTES);
    for await (const list of pages(page, NEXT, Number.POSITIVE_INFINITY)) {
      for (const each of listIn(list, 'results')) {
        const result = resultOf(each);
        if (result !== undefined) yield result;
      }
    }
  },
  async cancel(id, account) {
    await unlessStatus(DONE, post(account, `${pathOf(id)}:cancel`));
  },
  async remove(batch, uploadId, account) {
    const isGone = uploadId === null || (await forget(account, `/files/${encodeURIComponent(uploadId)}`));
    // No operation deletes a batch and its results.
    return batch === null && isGone;
  },
};

function pathOf(id: string): string {
  return `/batches/${encodeURIComponent(id)}`;
}

function batchOf(id: string, batch: Json): UpstreamBatch {
  const message = textIn(batch, 'cancel_by_xai_message');
  if (message !== undefined) return { id, state: 'failed', message, outputs: [] };
  const counts = (batch['state'] ?? {}) as Json;
  const [requests, pending, cancelled] = ['num_requests', 'num_pending', 'num_cancelled'].map((key) =>
    Number(counts[key] ?? 0),
  ) as [number, number, number];
  const isCancelled = textIn(batch, 'cancel_time') !== undefined;
  // All counts are zero until it has read the file.
  if (requests === 0) return { id, state: isCancelled ? 'cancelled' : 'running', outputs: [] };
  if (pending > 0) return { id, state: 'running', outputs: [] };
  return { id, state: isCancelled || cancelled > 0 ? 'cancelled' : 'completed', outputs: [id] };
}

function resultOf(each: Json): UpstreamResult | undefined {
  const id = textIn(each, 'batch_request_id');
  if (id === undefined) return undefined;
  const { response, error } = (each['batch_result'] ?? {}) as { response?: Json | null; error?: Json | null };
  const body = response?.['chat_get_completion'];
  if (body != null) return { id, kind: 'answered', status: 200, body: Buffer.from(JSON.stringify(body)) };
  const code = error?.['code'];
  if (code === CANCELLED) return { id, kind: 'cancelled' };
  if (error == null || code == null) {
    const message = (error && textIn(error, 'message')) ?? textIn(each, 'error_message');
    return { id, kind: 'failed', message: message ?? 'the provider gave no response' };
  }
  return { id, kind: 'answered', status: httpStatusOf(code), body: Buffer.from(JSON.stringify({ error })) };
}
