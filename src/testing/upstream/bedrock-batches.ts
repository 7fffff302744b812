/**
 * Bedrock's batch interface and S3 (`batch-vendor.ts`): jobs that read their records from a bucket and write results and a
 * manifest into it. It checks every signature.
 */
import { signatureFault } from './aws-signature.ts';
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

export const AWS_KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'a-secret-of-the-test' };
export const BEDROCK_ROLE = 'arn:aws:iam::123456789012:role/batches';
const REGION = 'eu-central-1';
const BUCKET = 'calls';
/** So small that lists have several pages. */
const PAGE = 2;

const states = {
  running: 'InProgress',
  completed: 'Completed',
  failed: 'Failed',
  expired: 'PartiallyCompleted',
  cancelled: 'Stopped',
};

export const bedrock: Dialect = {
  handle(vendor, request) {
    const { method, body } = request;
    const { pathname, searchParams: query } = new URL(request.path, 'http://aws.invalid');
    const isStorage = pathname === `/${BUCKET}` || pathname.startsWith(`/${BUCKET}/`);
    const keys = { [AWS_KEYS.accessKeyId]: AWS_KEYS.secretAccessKey };
    const scope = { region: REGION, service: isStorage ? 's3' : 'bedrock', isStreamed: isStorage };
    const fault = signatureFault(request, keys, scope);
    if (fault !== null) throw new Error(`${method} ${request.path}: ${fault}`);
    if (isStorage) return stored(vendor, request, decodeURIComponent(pathname.slice(BUCKET.length + 2)), query);
    if (`${method} ${pathname}` === 'POST /model-invocation-job') return created(vendor, JSON.parse(body.toString()));
    if (`${method} ${pathname}` === 'GET /model-invocation-jobs') {
      const named = vendor.batches.filter(({ marker }) => marker?.includes(query.get('nameContains') ?? ''));
      return { invocationJobSummaries: named.toReversed().map(job), nextToken: null };
    }
    const [, arn = '', stop] = /^\/model-invocation-job\/([^/]+)(\/stop)?$/.exec(pathname) ?? [];
    const batch = vendor.batches.find(({ id }) => id === decodeURIComponent(arn));
    if (batch === undefined) return undefined;
    if (stop !== undefined) {
      vendor.finish(batch, 'cancelled', Math.floor(batch.calls.length / 2));
      return {};
    }
    polled(vendor, batch);
    published(vendor, batch);
    return job(batch);
  },
};

/** A token that was seen creates no second job. */
function created(vendor: BatchVendor, asked: Json): Json {
  const seen = vendor.batches.find(({ details }) => details.clientRequestToken === asked.clientRequestToken);
  if (seen !== undefined) return { jobArn: seen.id };
  const { s3Uri } = asked.inputDataConfig.s3InputDataConfig;
  const file = vendor.files.get(s3Uri.slice(`s3://${BUCKET}/`.length));
  const isRight =
    asked.roleArn === BEDROCK_ROLE &&
    asked.timeoutDurationInHours >= 24 &&
    /^[A-Za-z0-9+.-]{1,63}$/.test(asked.jobName);
  if (file === undefined || !isRight || !s3Uri.endsWith('.jsonl')) return undefined;
  const isConverse = asked.modelInvocationType === 'Converse';
  const calls = linesIn(file.content).map(({ recordId: id, modelInput: body }) => {
    if (isConverse ? body.toolConfig !== undefined : body.anthropic_version === undefined)
      throw new Error('a bad record');
    return { id, body };
  });
  const id = `arn:aws:bedrock:${REGION}:123456789012:model-invocation-job/${vendor.id('job')}`;
  return { jobArn: vendor.create({ id, marker: asked.jobName, calls, details: asked }).id };
}

/** Writes the results of a job into its bucket, once. */
function published(vendor: BatchVendor, batch: VendorBatch): void {
  if (batch.state === 'running' || batch.details.published) return;
  batch.details.published = true;
  const { s3Uri } = batch.details.outputDataConfig.s3OutputDataConfig;
  const folder = `${s3Uri.slice(`s3://${BUCKET}/`.length)}${batch.id.split('/').at(-1)}/`;
  const ran = batch.results.filter(({ status }) => status !== 0);
  const lines = ran.map(({ id, status, body }) => ({
    recordId: id,
    modelInput: batch.calls.find((call) => call.id === id)?.body,
    ...(status === 200 ? { modelOutput: body } : { error: { errorCode: status, errorMessage: body.message } }),
  }));
  const put = (name: string, text: string) => vendor.files.set(folder + name, { name, content: Buffer.from(text) });
  put('input.jsonl.out', jsonLines(lines));
  put('manifest.json.out', JSON.stringify({ totalRecordCount: batch.calls.length, processedRecordCount: ran.length }));
}

function job(batch: VendorBatch): Json {
  const { inputDataConfig, outputDataConfig, clientRequestToken } = batch.details;
  return {
    ...{ jobArn: batch.id, jobName: batch.marker, clientRequestToken, inputDataConfig, outputDataConfig },
    ...{ status: states[batch.state], message: batch.message, submitTime: batch.createdAt.toISOString() },
  };
}

/** S3: objects by path, and lists as XML. */
function stored(vendor: BatchVendor, { method, body }: VendorRequest, key: string, query: URLSearchParams): Json {
  if (key === '') {
    const names = [...vendor.files.keys()].filter((name) => name.startsWith(query.get('prefix') ?? '?')).sort();
    const from = Number(query.get('continuation-token') ?? 0);
    const next = from + PAGE < names.length ? `<NextContinuationToken>${from + PAGE}</NextContinuationToken>` : '';
    const keys = names.slice(from, from + PAGE).map((name) => `<Key>${encodeURIComponent(name)}</Key>`);
    return `<?xml version="1.0"?><ListBucketResult>${keys.join('')}${next}</ListBucketResult>`;
  }
  if (method === 'PUT') {
    vendor.files.set(key, { name: key, content: body });
    return {};
  }
  if (method === 'DELETE') {
    vendor.files.delete(key);
    return {};
  }
  return vendor.files.get(key)?.content.toString();
}
