/**
 * The batch interface of OpenAI, which others share: a file of calls, a batch of that file, files of results
 * (platform.openai.com/docs/api-reference/batch).
 */

import { type BatchAccount, BatchRefusal, type BatchService, type UpstreamBatch } from './contract.ts';
import { call, createdId, get, type Json, listIn, post, textIn, unlessStatus } from './exchange.ts';
import { removeFiles, resultsIn, uploadOnce } from './files.ts';
import { callLine } from './lines.ts';

interface Variation {
  /** Paths of calls that it accepts. */
  paths: readonly string[];
  limits: BatchService['limits'];
  pricePercent?: number;
  /** Default `/files`. */
  uploadPath?: string;
  /** Further fields of an upload, and its purpose; default `batch`. */
  uploadFields?(name: string): Readonly<Record<string, string>>;
  /** The batch within a response, if not the response itself. */
  unwrap?(response: Json): Json;
  /** The `url` of a call; default `/v1` before its path. */
  urlOf?(path: string): string;
  /** The `endpoint` of a batch, if not the `url` of its calls. */
  endpoint?: string;
  /** Uploads can be used only when their `status` is `processed`. */
  processesUploads?: boolean;
  lacks?: BatchService['lacks'];
  /** False: it stores no metadata, so its batches are found by their input file alone. */
  hasMetadata?: boolean;
}

const METADATA_KEY = 'gatehouse_batch';
/** Pages of a list that are searched: batches of an account, newest first. */
const MOST_PAGES = 20;
/** Clocks differ. */
const SKEW_MS = 600_000;
const DONE = [400, 404, 409];

const STATES: Readonly<Record<string, UpstreamBatch['state']>> = {
  completed: 'completed',
  failed: 'failed',
  expired: 'expired',
  cancelled: 'cancelled',
};

export function openaiBatches(variation: Variation): BatchService {
  const { paths, limits, pricePercent = 50, uploadPath = '/files', hasMetadata = true } = variation;
  const unwrap = variation.unwrap ?? ((response) => response);
  const urlOf = variation.urlOf ?? ((path) => `/v1${path}`);
  return {
    limits,
    storesMarker: true,
    pricePercent,
    ...(variation.lacks && { lacks: variation.lacks }),
    carries: ({ path }) => paths.includes(path),
    frame: () => ({ head: '', between: '', tail: '' }),
    line: (id, each) => callLine(id, urlOf(each.path), each),
    async submit(submission, account) {
      const { marker, path } = submission;
      const uploadId = await uploadOnce(submission, account, {
        path: uploadPath,
        fields: (name) => variation.uploadFields?.(name) ?? { purpose: 'batch' },
      });
      if (variation.processesUploads) await processed(uploadId, account);
      await submission.creating();
      const made = await post(account, '/batches', {
        input_file_id: uploadId,
        endpoint: variation.endpoint ?? urlOf(path),
        completion_window: '24h',
        ...(hasMetadata && { metadata: { [METADATA_KEY]: marker } }),
      });
      return createdId(unwrap(made));
    },
    async find({ marker, beganAt }, uploadId, account) {
      const found: string[] = [];
      for await (const batch of batchesSince(account, beganAt - SKEW_MS)) {
        const stored = (batch['metadata'] as Json | null | undefined)?.[METADATA_KEY];
        const isOurs = stored === marker || (uploadId !== null && batch['input_file_id'] === uploadId);
        if (isOurs) found.unshift(String(batch['id']));
      }
      return found;
    },
    async poll(id, account) {
      return batchOf(unwrap(await get(account, `/batches/${encodeURIComponent(id)}`)));
    },
    results: ({ outputs }, account) => resultsIn(outputs, account),
    async cancel(id, account) {
      await unlessStatus(DONE, post(account, `/batches/${encodeURIComponent(id)}/cancel`));
    },
    remove: removeFiles,
  };
}

/** Rejects with a passing `BatchRefusal` while the service still reads the upload. */
async function processed(uploadId: string, account: BatchAccount): Promise<void> {
  const status = textIn(await get(account, `/files/${encodeURIComponent(uploadId)}`), 'status');
  if (status === 'processed') return;
  if (status === 'error') throw new BatchRefusal('the provider cannot read the upload', 400);
  throw new BatchRefusal(`the upload is ${status ?? 'not processed'} at the provider`, null);
}

async function* batchesSince(account: BatchAccount, since: number): AsyncGenerator<Json> {
  let after = '';
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const list = await call(account, { path: `/batches?limit=100${after}`, method: 'GET' });
    const batches = Array.isArray(list) ? (list as Json[]) : listIn(list, 'data');
    yield* batches;
    const last = batches.at(-1);
    if (last === undefined || list['has_more'] !== true || createdAt(last) < since) return;
    after = `&after=${encodeURIComponent(String(last['id']))}`;
  }
}

function createdAt({ created_at: at }: Json): number {
  return typeof at === 'number' ? at * 1000 : Date.parse(String(at));
}

function batchOf(batch: Json): UpstreamBatch {
  const outputs = ['output_file_id', 'error_file_id'].flatMap((key) => textIn(batch, key) ?? []);
  const [error] = listIn((batch['errors'] ?? {}) as Json, 'data');
  return {
    id: String(batch['id']),
    state: STATES[String(batch['status']).toLowerCase()] ?? 'running',
    message: (error && textIn(error, 'message')) ?? textIn(batch, 'error'),
    outputs,
  };
}
