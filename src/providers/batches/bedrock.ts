/**
 * The batch interface of Amazon Bedrock: model invocation jobs over a bucket of S3
 * (docs.aws.amazon.com/bedrock/latest/userguide/batch-inference.html). The name of a job is our marker, and so is its client
 * request token, by which Bedrock ignores a repeated creation.
 */
import { createHash } from 'node:crypto';
import { isKeyDocument } from '../auth/bedrock-credentials.ts';
import { type BatchBucket, isOfOperator } from './bucket.ts';
import { type BatchService, dataOf, type UpstreamBatch, type UpstreamResult } from './contract.ts';
import { call, createdId, type Json, listIn, nameOf, pages, post, textIn, unlessStatus } from './exchange.ts';
import { objectOf, oneLine, spliced } from './lines.ts';

interface BedrockJobs {
  bucket: BatchBucket;
  /** ARN of the role that Bedrock takes to use the bucket. */
  role: string;
  /** Address of the control plane. */
  address: string;
  /** The fewest records of a job. */
  least: number;
}

/** Clocks differ. */
const SKEW_MS = 600_000;
const DONE = [400, 404, 409];
const RESULTS = /\.jsonl\.out$/;

const STATES: Readonly<Record<string, UpstreamBatch['state']>> = {
  Completed: 'completed',
  PartiallyCompleted: 'expired',
  Expired: 'expired',
  Failed: 'failed',
  Stopped: 'cancelled',
};

export function bedrockBatches({ bucket, role, address, least }: BedrockJobs): BatchService {
  const at = (path: string) => ({ path: '', url: `${address}${path}` });
  const pathOf = (arn: string) => `/model-invocation-job/${encodeURIComponent(arn)}`;
  return {
    limits: { items: 50_000, bytes: 1_000_000_000, least },
    storesMarker: true,
    pricePercent: 50,
    lacks: (target) => {
      if (!isOfOperator(target)) return 'a bucket of the account of the credential';
      return target.credential === null || isKeyDocument(target.credential) ? undefined : 'AWS keys, which S3 needs';
    },
    // Jobs of the type Converse refuse tools.
    carries: ({ format, path, body }) =>
      (format === 'messages' && path === '/messages') ||
      (format === 'converse' && path.endsWith('/converse') && objectOf(body)?.bytes('toolConfig') === undefined),
    frame: () => ({ head: '', between: '', tail: '' }),
    line: (id, each) =>
      Buffer.concat([spliced(['recordId', JSON.stringify(id)], ['modelInput', oneLine(each)]), Buffer.from('\n')]),
    async submit(submission, account) {
      const { marker, model, format } = submission;
      const { input, output } = bucket.addressesOf(marker);
      await bucket.uploadOnce(submission, account);
      await submission.creating();
      const job = {
        jobName: nameOf(marker),
        clientRequestToken: marker,
        roleArn: role,
        modelId: model,
        modelInvocationType: format === 'converse' ? 'Converse' : 'InvokeModel',
        inputDataConfig: { s3InputDataConfig: { s3InputFormat: 'JSONL', s3Uri: input } },
        outputDataConfig: { s3OutputDataConfig: { s3Uri: output } },
        timeoutDurationInHours: 24,
      };
      // A signature covers the body, which is streamed.
      const headers = { 'x-amz-content-sha256': sha256(JSON.stringify(job)) };
      return createdId(await post(account, { ...at('/model-invocation-job'), headers }, job), 'jobArn');
    },
    async find({ marker, beganAt }, _uploadId, account) {
      const since = new Date(beganAt - SKEW_MS).toISOString();
      const found: string[] = [];
      const query = `maxResults=100&nameContains=${nameOf(marker)}&submitTimeAfter=${encodeURIComponent(since)}`;
      const page = (more: string) => call(account, { ...at(`/model-invocation-jobs?${query}${more}`), method: 'GET' });
      for await (const list of pages(page, { parameter: 'nextToken', member: 'nextToken' })) {
        for (const job of listIn(list, 'invocationJobSummaries')) {
          if (job['jobName'] === nameOf(marker)) found.unshift(String(job['jobArn']));
        }
      }
      return found;
    },
    async poll(id, account) {
      const job = await call(account, { ...at(pathOf(id)), method: 'GET' });
      const state = STATES[String(job['status'])] ?? 'running';
      const outputs = state === 'running' ? [] : await bucket.outputsAt(outputOf(job), account);
      return { id, state, message: textIn(job, 'message'), outputs };
    },
    results: ({ outputs }, account) =>
      bucket.results(
        outputs.filter((name) => RESULTS.test(name)),
        resultOf,
        account,
      ),
    async cancel(id, account) {
      await unlessStatus(DONE, call(account, { ...at(`${pathOf(id)}/stop`), body: '' }));
    },
    async remove(batch, uploadId, account) {
      return bucket.remove(dataOf(batch, uploadId), account);
    },
  };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function outputOf(job: Json): string {
  const { s3OutputDataConfig } = (job['outputDataConfig'] ?? {}) as { s3OutputDataConfig?: Json };
  return String(s3OutputDataConfig?.['s3Uri'] ?? '');
}

function resultOf(line: Buffer): UpstreamResult | undefined {
  const object = objectOf(line);
  const id = object?.member('recordId');
  if (object === undefined || typeof id !== 'string') return undefined;
  const body = object.bytes('modelOutput');
  if (body !== undefined) return { id, kind: 'answered', status: 200, body };
  const { errorCode, errorMessage } = (object.member('error') ?? {}) as { errorCode?: unknown; errorMessage?: unknown };
  const message = typeof errorMessage === 'string' ? errorMessage : 'the provider gave no response';
  const status = Number(errorCode);
  if (!(status >= 400 && status < 600)) return { id, kind: 'failed', message };
  return { id, kind: 'answered', status, body: Buffer.from(JSON.stringify({ message })) };
}
