/**
 * The batch interface of the Gemini API: a file of calls, a long-running operation, a file of results
 * (ai.google.dev/api/batch-api). Our marker is its display name.
 */
import { randomUUID } from 'node:crypto';
import {
  type BatchAccount,
  BatchRefusal,
  type BatchService,
  dataOf,
  type Submission,
  type UpstreamBatch,
  type UpstreamResult,
} from './contract.ts';
import {
  call,
  createdId,
  forgetAll,
  get,
  type Json,
  listIn,
  nameOf,
  open,
  post,
  textIn,
  unlessStatus,
} from './exchange.ts';
import { CANCELLED, httpStatusOf } from './grpc-status.ts';
import { linesOf, objectOf, oneLine, spliced } from './lines.ts';

const MOST_PAGES = 20;
/** Clocks differ. */
const SKEW_MS = 600_000;
const DONE = [400, 404, 409];
/** The operation without results that it may have inline. */
const FIELDS =
  'fields=name,done,error,metadata(state,displayName,createTime,output(responsesFile)),response(responsesFile)';
const GENERATE = /^\/models\/[^/:]+:generateContent$/;

export const geminiBatches: BatchService = {
  limits: { items: 100_000, bytes: 1024 * 1024 * 1024 },
  storesMarker: true,
  pricePercent: 50,
  carries: ({ format, path }) => format === 'gemini' && GENERATE.test(path),
  frame: () => ({ head: '', between: '', tail: '' }),
  line: (id, each) =>
    Buffer.concat([spliced(['key', JSON.stringify(id)], ['request', oneLine(each)]), Buffer.from('\n')]),
  async submit(submission, account) {
    const { marker, path } = submission;
    let { uploadId } = submission;
    if (uploadId === null) {
      uploadId = await uploaded(submission, account);
      await submission.uploaded(uploadId);
    }
    await submission.creating();
    const made = await post(account, path.replace(/:generateContent$/, ':batchGenerateContent'), {
      batch: { displayName: nameOf(marker), inputConfig: { fileName: uploadId } },
    });
    return createdId(made, 'name');
  },
  async find({ marker, beganAt }, _uploadId, account) {
    const found: string[] = [];
    let token = '';
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const list = await get(account, `/batches?pageSize=100${token}`);
      const operations = listIn(list, 'operations');
      for (const operation of operations) {
        const { displayName } = metadataOf(operation);
        if (displayName === nameOf(marker)) found.unshift(String(operation['name']));
      }
      const next = textIn(list, 'nextPageToken');
      const last = operations.at(-1);
      if (next === undefined || (last && Date.parse(String(metadataOf(last)['createTime'])) < beganAt - SKEW_MS)) break;
      token = `&pageToken=${encodeURIComponent(next)}`;
    }
    return found;
  },
  async poll(id, account) {
    return batchOf(id, await get(account, `/${checked(id)}?${FIELDS}`));
  },
  async *results({ outputs }, account) {
    for (const file of outputs) {
      const url = `${rootOf(account)}/download/${versionOf(account)}/${checked(file)}:download?alt=media`;
      for await (const line of linesOf(await open(account, { path: '', url, method: 'GET' }))) {
        const result = resultOf(line);
        if (result !== undefined) yield result;
      }
    }
  },
  async cancel(id, account) {
    await unlessStatus(DONE, post(account, `/${checked(id)}:cancel`));
  },
  async remove(batch, uploadId, account) {
    const names = [...(batch === null ? [] : [batch.id]), ...dataOf(batch, uploadId)];
    return await forgetAll(
      account,
      names.map((name) => `/${checked(name)}`),
    );
  },
};

/** A name from the service that becomes part of a URL. */
function checked(name: string): string {
  if (!/^(batches|files)\/[\w-]+$/.test(name))
    throw new BatchRefusal('the provider named a resource in an unknown way', 400);
  return name;
}

function rootOf({ target }: BatchAccount): string {
  return target.provider.baseUrl.replace(/\/v\d\w*$/, '');
}

function versionOf({ target }: BatchAccount): string {
  return /\/(v\d\w*)$/.exec(target.provider.baseUrl)?.[1] ?? 'v1beta';
}

/** Files of an earlier attempt expire after two days. */
async function uploaded(submission: Submission, account: BatchAccount): Promise<string> {
  const boundary = `gatehouse-${randomUUID()}`;
  const about = JSON.stringify({ file: { displayName: nameOf(submission.marker) } });
  const head = Buffer.from(
    `--${boundary}\r\ncontent-type: application/json\r\n\r\n${about}\r\n--${boundary}\r\ncontent-type: application/jsonl\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  const calls = await submission.content();
  async function* chunks() {
    yield head;
    yield* calls;
    yield tail;
  }
  const made = await call(account, {
    path: '',
    url: `${rootOf(account)}/upload/${versionOf(account)}/files?uploadType=multipart`,
    contentType: `multipart/related; boundary=${boundary}`,
    streamed: { bytes: head.length + submission.bytes + tail.length, chunks: chunks() },
  });
  return checked(String(((made['file'] ?? made) as Json)['name']));
}

function metadataOf({ metadata }: Json): Json {
  return (metadata ?? {}) as Json;
}

function batchOf(id: string, operation: Json): UpstreamBatch {
  const { state, output } = metadataOf(operation);
  const response = (operation['response'] ?? output ?? {}) as Json;
  const file = textIn(response, 'responsesFile');
  const error = operation['error'] as Json | undefined;
  const known = /^(?:BATCH|JOB)_STATE_(.*)$/.exec(String(state))?.[1] ?? '';
  return {
    id,
    state: STATES[known] ?? (operation['done'] === true ? (error === undefined ? 'completed' : 'failed') : 'running'),
    message: error && textIn(error, 'message'),
    outputs: file === undefined ? [] : [file],
  };
}

const STATES: Readonly<Record<string, UpstreamBatch['state']>> = {
  SUCCEEDED: 'completed',
  PARTIALLY_SUCCEEDED: 'completed',
  FAILED: 'failed',
  EXPIRED: 'expired',
  CANCELLED: 'cancelled',
};

function resultOf(line: Buffer): UpstreamResult | undefined {
  const object = objectOf(line);
  const id = object?.member('key');
  if (object === undefined || typeof id !== 'string') return undefined;
  const response = object.bytes('response');
  if (response !== undefined) return { id, kind: 'answered', status: 200, body: response };
  const error = object.bytes('error');
  if (error === undefined) return { id, kind: 'failed', message: 'the provider gave no response' };
  const { code } = JSON.parse(error.toString('utf8')) as { code?: unknown };
  if (code === CANCELLED) return { id, kind: 'cancelled' };
  return { id, kind: 'answered', status: httpStatusOf(code), body: spliced(['error', error]) };
}
