/**
 * The batch interface of Anthropic: all calls inline, results as JSON lines (docs.anthropic.com/en/api/creating-message-batches).
 * It stores nothing of ours except the ids of the calls, which come back with the results.
 */

import type { BatchAccount, BatchService, UpstreamResult } from './contract.ts';
import { call, createdId, forget, get, type Json, listIn, open, unlessStatus } from './exchange.ts';
import { linesOf, objectOf, oneLine, spliced } from './lines.ts';

const PATH = '/messages/batches';
const MOST_PAGES = 10;
/** Clocks differ. */
const SKEW_MS = 60_000;
const DONE = [400, 404, 409];
/** The status of a call's error, for the decoder of its format. */
const STATUS: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  overloaded_error: 529,
};

export const anthropicBatches: BatchService = {
  // Leaves some room for the text around the calls.
  limits: { items: 100_000, bytes: 255 * 1024 * 1024 },
  storesMarker: false,
  pricePercent: 50,
  carries: ({ path }) => path === '/messages',
  frame: () => ({ head: '{"requests":[', between: ',', tail: ']}' }),
  line: (id, each) => spliced(['custom_id', JSON.stringify(id)], ['params', oneLine(each)]),
  async submit(submission, account) {
    const chunks = await submission.content();
    const streamed = { bytes: submission.bytes, chunks };
    await submission.creating();
    return createdId(await call(account, { path: PATH, streamed }));
  },
  async find({ beganAt, items }, _uploadId, account) {
    const found: string[] = [];
    for await (const batch of batchesSince(account, beganAt - SKEW_MS)) {
      const counts = Object.values((batch['request_counts'] ?? {}) as Record<string, number>);
      if (counts.reduce((sum, count) => sum + count, 0) === items) found.unshift(String(batch['id']));
    }
    return found;
  },
  async poll(id, account) {
    const batch = await get(account, pathOf(id));
    const counts = (batch['request_counts'] ?? {}) as Record<string, number>;
    const ended = batch['processing_status'] === 'ended';
    const state = !ended
      ? 'running'
      : batch['cancel_initiated_at'] != null && counts['canceled']! > 0
        ? 'cancelled'
        : counts['expired']! > 0
          ? 'expired'
          : 'completed';
    return { id, state, outputs: ended ? [id] : [] };
  },
  async *results({ id }, account) {
    const content = await open(account, { path: `${pathOf(id)}/results`, method: 'GET' });
    for await (const line of linesOf(content)) {
      const result = resultOf(line);
      if (result !== undefined) yield result;
    }
  },
  async cancel(id, account) {
    await unlessStatus(DONE, call(account, { path: `${pathOf(id)}/cancel`, body: '' }));
  },
  async remove(batch, _uploadId, account) {
    return batch === null || (await forget(account, pathOf(batch.id)));
  },
};

function pathOf(id: string): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}

/** Newest first. */
async function* batchesSince(account: BatchAccount, since: number): AsyncGenerator<Json> {
  let after = '';
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const list = await get(account, `${PATH}?limit=100${after}`);
    for (const batch of listIn(list, 'data')) {
      if (Date.parse(String(batch['created_at'])) < since) return;
      yield batch;
    }
    if (list['has_more'] !== true) return;
    after = `&after_id=${encodeURIComponent(String(list['last_id']))}`;
  }
}

function resultOf(line: Buffer): UpstreamResult | undefined {
  const object = objectOf(line);
  const id = object?.member('custom_id');
  const result = objectOf(object?.bytes('result'));
  if (typeof id !== 'string' || result === undefined) return undefined;
  switch (result.member('type')) {
    case 'succeeded':
      return { id, kind: 'answered', status: 200, body: result.bytes('message') ?? Buffer.from('null') };
    case 'errored': {
      // The error is wrapped in the body of a failed call.
      const body = result.bytes('error') ?? Buffer.from('{}');
      const { error, type } = JSON.parse(body.toString('utf8')) as { error?: { type?: string }; type?: string };
      return { id, kind: 'answered', status: STATUS[error?.type ?? type ?? ''] ?? 500, body };
    }
    case 'expired':
      return { id, kind: 'expired' };
    case 'canceled':
      return { id, kind: 'cancelled' };
    default:
      return { id, kind: 'failed', message: 'the provider gave no response' };
  }
}
