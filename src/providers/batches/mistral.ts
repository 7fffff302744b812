/** The batch interface of Mistral: a file of calls, a job, files of results (docs.mistral.ai/api/endpoint/batch). */

import type { BatchService, UpstreamBatch } from './contract.ts';
import { createdId, get, type Json, listIn, post, textIn, unlessStatus } from './exchange.ts';
import { removeFiles, resultsIn, uploadOnce } from './files.ts';
import { oneLine, spliced } from './lines.ts';

const METADATA_KEY = 'gatehouse_batch';
const MOST_PAGES = 20;
/** Clocks differ. */
const SKEW_MS = 600_000;
const DONE = [400, 404, 409, 422];

const STATES: Readonly<Record<string, UpstreamBatch['state']>> = {
  SUCCESS: 'completed',
  FAILED: 'failed',
  TIMEOUT_EXCEEDED: 'expired',
  CANCELLED: 'cancelled',
};

export const mistralBatches: BatchService = {
  limits: { items: 100_000, bytes: 500 * 1024 * 1024 },
  storesMarker: true,
  pricePercent: 50,
  carries: ({ path }) => path === '/chat/completions' || path === '/embeddings',
  frame: () => ({ head: '', between: '', tail: '' }),
  line: (id, each) =>
    Buffer.concat([spliced(['custom_id', JSON.stringify(id)], ['body', oneLine(each)]), Buffer.from('\n')]),
  async submit(submission, account) {
    const { marker, model, path } = submission;
    const uploadId = await uploadOnce(submission, account);
    await submission.creating();
    const job = await post(account, '/batch/jobs', {
      input_files: [uploadId],
      ...{ model, endpoint: `/v1${path}`, timeout_hours: 24, metadata: { [METADATA_KEY]: marker } },
    });
    return createdId(job);
  },
  async find({ marker, beganAt }, _uploadId, account) {
    const since = encodeURIComponent(new Date(beganAt - SKEW_MS).toISOString());
    const found: string[] = [];
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const list = await get(account, `/batch/jobs?page=${page}&page_size=100&created_after=${since}`);
      const jobs = listIn(list, 'data');
      for (const job of jobs) {
        if ((job['metadata'] as Json | null | undefined)?.[METADATA_KEY] === marker) found.unshift(String(job['id']));
      }
      if (jobs.length < 100) break;
    }
    return found;
  },
  async poll(id, account) {
    const job = await get(account, `/batch/jobs/${encodeURIComponent(id)}`);
    const [error] = listIn(job, 'errors');
    return {
      id,
      state: STATES[String(job['status'])] ?? 'running',
      message: error && textIn(error, 'message'),
      outputs: ['output_file', 'error_file'].flatMap((key) => textIn(job, key) ?? []),
    };
  },
  results: ({ outputs }, account) => resultsIn(outputs, account),
  async cancel(id, account) {
    await unlessStatus(DONE, post(account, `/batch/jobs/${encodeURIComponent(id)}/cancel`));
  },
  remove: removeFiles,
};
