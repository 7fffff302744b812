/**
 * The batch interface of Vertex AI: batch prediction jobs over a bucket of Cloud Storage, for Gemini
 * (cloud.google.com/vertex-ai/generative-ai/docs/multimodal/batch-prediction-from-cloud-storage) and Claude
 * (.../partner-models/claude/batch). The display name of a job is our marker. A result repeats its request; the id of a call
 * of Gemini is a label of it, because its lines have no member for ids.
 */
import { scanMembers } from '../../base/json.ts';
import { patchMembers } from '../../base/json-edits.ts';
import { type BatchBucket, isOfOperator } from './bucket.ts';
import {
  type BatchAccount,
  BatchRefusal,
  type BatchService,
  dataOf,
  type UpstreamBatch,
  type UpstreamResult,
} from './contract.ts';
import {
  createdId,
  forget,
  get,
  type Json,
  listIn,
  nameOf,
  pages,
  post,
  removeAll,
  textIn,
  unlessStatus,
} from './exchange.ts';
import { httpStatusOf } from './grpc-status.ts';
import { objectOf, oneLine, spliced } from './lines.ts';

const LABEL = 'gatehouse_call';
const DONE = [400, 404, 409];
const LONGEST_MESSAGE = 500;
const RESULTS = /\.jsonl$/;
const GEMINI = /^\/models\/[^/:]+:generateContent$/;

const STATES: Readonly<Record<string, UpstreamBatch['state']>> = {
  JOB_STATE_SUCCEEDED: 'completed',
  JOB_STATE_PARTIALLY_SUCCEEDED: 'completed',
  JOB_STATE_FAILED: 'failed',
  JOB_STATE_EXPIRED: 'expired',
  JOB_STATE_CANCELLED: 'cancelled',
};

export function vertexBatches(bucket: BatchBucket): BatchService {
  return {
    limits: { items: 100_000, bytes: 1_000_000_000 },
    storesMarker: true,
    pricePercent: 50,
    lacks: (target) => (isOfOperator(target) ? undefined : 'a bucket of the account of the credential'),
    // A tuned model is deployed at an endpoint, which jobs cannot name. Nor can lines name beta features.
    carries: ({ format, path, model }, clientHeaders) =>
      (format === 'gemini' && GEMINI.test(path) && !model.startsWith('endpoints/')) ||
      (format === 'messages' && path === '/messages' && clientHeaders['anthropic-beta'] === undefined),
    frame: () => ({ head: '', between: '', tail: '' }),
    line: (id, each) =>
      Buffer.concat([each.format === 'messages' ? claudeLine(id, each) : geminiLine(id, each), NEWLINE]),
    async submit(submission, account) {
      const { marker, model, format } = submission;
      const { input, output } = bucket.addressesOf(marker);
      await bucket.uploadOnce(submission, account);
      await submission.creating();
      const publisher = format === 'messages' ? 'anthropic' : 'google';
      const job = await post(account, jobsOf(account), {
        displayName: nameOf(marker),
        model: `publishers/${publisher}/models/${model.replace(/^(google|anthropic)\//, '')}`,
        inputConfig: { instancesFormat: 'jsonl', gcsSource: { uris: [input] } },
        outputConfig: { predictionsFormat: 'jsonl', gcsDestination: { outputUriPrefix: output } },
      });
      return createdId(job, 'name');
    },
    async find({ marker }, _uploadId, account) {
      const filter = encodeURIComponent(`display_name="${nameOf(marker)}"`);
      const found: string[] = [];
      const page = (more: string) => get(account, `${jobsOf(account)}?pageSize=100&filter=${filter}${more}`);
      for await (const list of pages(page, { parameter: 'pageToken', member: 'nextPageToken' })) {
        for (const job of listIn(list, 'batchPredictionJobs')) {
          if (job['displayName'] === nameOf(marker)) found.unshift(String(job['name']));
        }
      }
      return found;
    },
    async poll(id, account) {
      const job = await get(account, pathOf(id));
      const state = STATES[String(job['state'])] ?? 'running';
      const { gcsDestination } = (job['outputConfig'] ?? {}) as { gcsDestination?: Json };
      const output = String(gcsDestination?.['outputUriPrefix'] ?? '');
      const outputs = state === 'running' ? [] : await bucket.outputsAt(output, account);
      const error = job['error'] as Json | undefined;
      return { id, state, message: error && textIn(error, 'message'), outputs };
    },
    results: ({ outputs }, account) =>
      bucket.results(
        outputs.filter((name) => RESULTS.test(name)),
        resultOf,
        account,
      ),
    async cancel(id, account) {
      await unlessStatus(DONE, post(account, `${pathOf(id)}:cancel`));
    },
    async remove(batch, uploadId, account) {
      const data = () => bucket.remove(dataOf(batch, uploadId), account);
      return removeAll(batch === null ? [data] : [data, () => forget(account, pathOf(batch.id))]);
    },
  };
}

const NEWLINE = Buffer.from('\n');

function jobsOf({ target: { provider } }: BatchAccount): string {
  const { project, location } = provider.options;
  return `/projects/${project}/locations/${location}/batchPredictionJobs`;
}

/** The path of a job by its name, which the service has given. */
function pathOf(name: string): string {
  if (!/^projects\/[\w.:-]+\/locations\/[\w-]+\/batchPredictionJobs\/\w+$/.test(name))
    throw new BatchRefusal('the provider named a job in an unknown way', 400);
  return `/${name}`;
}

function claudeLine(id: string, each: { body: Buffer }): Buffer {
  return spliced(['custom_id', JSON.stringify(id)], ['request', oneLine(each)]);
}

/** Labels of the client stay. */
function geminiLine(id: string, each: { body: Buffer }): Buffer {
  const text = oneLine(each).toString('utf8');
  const members = scanMembers(text);
  const given = members.find(({ key }) => key === 'labels');
  const labels = given && (JSON.parse(text.slice(given.valueStart, given.valueEnd)) as Json | null);
  const json = JSON.stringify({ ...labels, [LABEL]: id });
  return spliced(['request', patchMembers(text, members, [{ key: 'labels', json }])]);
}

function resultOf(line: Buffer): UpstreamResult | undefined {
  const object = objectOf(line);
  if (object === undefined) return undefined;
  const labels = objectOf(object.bytes('request'))?.member('labels') as Json | null | undefined;
  const id = object.member('custom_id') ?? labels?.[LABEL];
  if (typeof id !== 'string') return undefined;
  const status = object.member('status');
  if (typeof status === 'string' && status !== '') return failureOf(id, status);
  const body = object.bytes('response');
  if (body === undefined) return { id, kind: 'failed', message: 'the provider gave no response' };
  return { id, kind: 'answered', status: 200, body };
}

/** `Bad Request: {"error": {"code": 400, "message": "..."}}`, or a text alone. */
function failureOf(id: string, status: string): UpstreamResult {
  const from = status.indexOf('{');
  const object = from < 0 ? undefined : objectOf(Buffer.from(status.slice(from)));
  const error = object?.member('error') as { code?: unknown } | null | undefined;
  if (typeof error?.code !== 'number') return { id, kind: 'failed', message: status.slice(0, LONGEST_MESSAGE) };
  return { id, kind: 'answered', status: httpStatusOf(error.code), body: Buffer.from(JSON.stringify({ error })) };
}
