/** `gatehouse batch`: batches of a running gateway, here or anywhere, as its clients see them. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { sleep, stayAlive } from '../base/clock.ts';
import type { Config } from '../base/config.ts';
import { createTransport, outgoingOf } from '../providers/index.ts';
import { checkWritable, type Download, downloadThrough, downloadTo } from './batch/download.ts';
import { ConnectionLost, GatewayApi, Refused, type ShownBatch } from './batch/gateway-api.ts';
import { type Input, readInput } from './batch/input.ts';
import { BatchProblem, EXIT } from './batch/problem.ts';
import { Progress } from './batch/progress.ts';
import { batchOf, isFinal, STATUSES, type WatchParts, watchBatch } from './batch/watch.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';

export const BATCH_HELP = `gatehouse batch submit FILE [--model MODEL] [--endpoint ENDPOINT] [--watch] [--output FILE]
                       [--callback-url URL] [--new]
    submits the requests of a file, one JSON object a line: {"custom_id", "body"}, or OpenAI's with method and url. The same
    file is submitted only once, unless --new is given. --watch shows the progress until the end, --output then downloads
    the results
gatehouse batch status ID [--watch]
    shows a batch, or its progress until the end
gatehouse batch results ID [--output FILE]
    prints the results, one JSON object a line, or downloads them to a file; an interrupted download is resumed
gatehouse batch cancel ID
    cancels a batch: requests that have not begun do not run
gatehouse batch list [--status STATUS] [--limit N]
    lists the newest batches
    All of them: --base-url URL and --key KEY name the gateway and an inference key (GATEHOUSE_URL, GATEHOUSE_API_KEY; by
    default the gateway of this machine), --json prints the batch as JSON, --force overwrites the output file. Exit codes:
    0 done, 1 some requests failed, 2 wrong arguments or input, 3 the batch failed, expired or was cancelled, 4 the gateway
    cannot be reached or refuses, 130 interrupted; the batch keeps running then`;

const OPTIONS = {
  'base-url': { type: 'string' },
  key: { type: 'string' },
  json: { type: 'boolean' },
} as const;
const TO_FILE = { output: { type: 'string' }, force: { type: 'boolean' } } as const;
const WATCH = { watch: { type: 'boolean' } } as const;
const SUBMIT_ATTEMPTS = 4;
const DEFAULT_LISTED = 20;
/** Older than the begin of the command by more than clocks differ. */
const EARLIER_SECONDS = 60;

type Values = Record<string, string | boolean | undefined>;

interface Job extends WatchParts {
  parts: CommandParts;
  values: Values;
}

type Action = (job: Job, target: string) => Promise<number>;

const ACTIONS: Record<string, { options: object; target: string | null; run: Action }> = {
  submit: {
    options: {
      ...{ ...TO_FILE, ...WATCH, model: { type: 'string' }, endpoint: { type: 'string' } },
      ...{ 'callback-url': { type: 'string' }, new: { type: 'boolean' } },
    },
    target: 'file',
    run: submit,
  },
  status: { options: { ...WATCH }, target: 'batch', run: status },
  results: { options: TO_FILE, target: 'batch', run: results },
  cancel: { options: {}, target: 'batch', run: cancel },
  list: { options: { status: { type: 'string' }, limit: { type: 'string' } }, target: null, run: list },
};

export async function batchCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [name, ...rest] = args;
  const action = name === undefined ? undefined : ACTIONS[name];
  if (action === undefined)
    throw new UsageError(
      `${name === undefined ? 'an action is missing' : `unknown action ${name}`}: ${Object.keys(ACTIONS).join(', ')}`,
    );
  const { values, positionals } = parseArguments(rest, { ...OPTIONS, ...action.options }, true);
  if (positionals.length !== (action.target === null ? 0 : 1)) {
    throw new UsageError(action.target === null ? `batch ${name} takes options only` : `name one ${action.target}`);
  }
  const { config, clock, log } = parts;
  const baseUrl = baseUrlOf(values['base-url'] as string | undefined, config);
  const key = (values['key'] as string | undefined) ?? (config.client.key ?? config.firstKeys.inference)?.reveal();
  if (key === undefined) throw new UsageError('an inference key is missing: set --key or GATEHOUSE_API_KEY');
  const transport = createTransport({ clock, log, ...outgoingOf(config) });
  const interruption = new AbortController();
  const interrupt = () => interruption.abort();
  process.on('SIGINT', interrupt);
  const mayEnd = stayAlive();
  const { signal } = interruption;
  const progress = new Progress(screenOf(process.stderr), clock);
  try {
    const api = new GatewayApi({ transport, clock, baseUrl, key, signal });
    return await action.run({ ...{ api, clock, progress, signal }, parts, values }, positionals[0] ?? '');
  } catch (error) {
    if (!(error instanceof BatchProblem)) throw error;
    progress.end();
    console.error(error.message);
    return signal.aborted ? EXIT.interrupted : error.exitCode;
  } finally {
    mayEnd();
    process.off('SIGINT', interrupt);
    await transport.close();
  }
}

function screenOf(stream: NodeJS.WriteStream) {
  return {
    isTTY: stream.isTTY === true,
    // 0: a terminal that does not know its width.
    columns: stream.columns > 0 ? stream.columns : 80,
    write: (text: string) => void stream.write(text),
  };
}

/** With `/api/v1`, unless it names a path of its own. */
function baseUrlOf(given: string | undefined, config: Config): string {
  const text = given ?? config.client.url ?? localAddress(config);
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '') {
    throw new UsageError(`${JSON.stringify(text)} is not an http or https URL of a gateway`);
  }
  const pathname = url.pathname.replace(/\/+$/, '');
  return url.origin + (pathname === '' ? '/api/v1' : pathname);
}

function localAddress({ host, port, tls }: Config): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${tls === null ? 'http' : 'https'}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

async function submit(job: Job, file: string): Promise<number> {
  const { values, progress, parts } = job;
  const output = await outputOf(values);
  const input = await readInput({
    file,
    model: values['model'] as string | undefined,
    endpoint: endpointOf(values['endpoint'] as string | undefined),
    callbackUrl: values['callback-url'] as string | undefined,
  });
  const startedAt = Math.floor(job.clock.now() / 1000);
  const batch = await upload(job, input);
  const isEarlier = batch.created_at < startedAt - EARLIER_SECONDS;
  progress.say(
    isEarlier
      ? `these requests were submitted before (${batch.status} now); --new submits them again`
      : `${input.requests} requests submitted`,
  );
  const isDone = values['watch'] !== true && output === undefined;
  if (values['json'] !== true) parts.out.print(batch.id);
  else if (isDone) parts.out.print(JSON.stringify(batch));
  if (isDone) return 0;
  const final = await watchBatch(job, batch.id);
  if (output !== undefined && final.request_counts.completed + final.request_counts.failed > 0) {
    await download(job, final, output);
  }
  return ended(job, final);
}

/** The same body under the same key is one batch, so that an upload whose answer was lost can be repeated. */
async function upload({ api, values, progress, clock, signal }: Job, input: Input): Promise<ShownBatch> {
  const key = values['new'] === true ? randomUUID() : `file-${input.sha256}`;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await api.json<ShownBatch>({
        method: 'POST',
        path: '/batches',
        headers: { 'idempotency-key': key },
        streamed: { bytes: input.bytes, chunks: counted(input, progress) },
      });
    } catch (error) {
      if (error instanceof Refused) throw new Refused(error.status, explained(error.message, input));
      if (!(error instanceof ConnectionLost)) throw error;
      if (signal.aborted) {
        throw new BatchProblem('interrupted; the same command again submits the file only once', EXIT.interrupted);
      }
      if (attempt === SUBMIT_ATTEMPTS) throw error;
      progress.say(`${error.message}; trying again`);
      await sleep(clock, 1_000 * 2 ** (attempt - 1));
    }
  }
}

async function* counted(input: Input, progress: Progress): AsyncGenerator<Buffer> {
  let sent = 0;
  for await (const chunk of input.chunks()) {
    yield chunk;
    sent += chunk.length;
    if (input.bytes > 1024 * 1024) progress.show('uploading', sent, input.bytes, `of ${megabytes(input.bytes)}`);
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** The gateway counts requests from 0. */
function explained(message: string, input: Input): string {
  const [, request] = /^requests\[(\d+)\]/.exec(message) ?? [];
  return request === undefined ? message : `line ${input.lineOf(Number(request))}: ${message}`;
}

function endpointOf(text: string | undefined): string | undefined {
  if (text === undefined || text.startsWith('/v1/')) return text;
  return `/v1/${text.replace(/^\//, '')}`;
}

async function status(job: Job, id: string): Promise<number> {
  if (job.values['watch'] === true) return ended(job, await watchBatch(job, id));
  show(job, await batchOf(job, id));
  return 0;
}

async function results(job: Job, id: string): Promise<number> {
  const output = await outputOf(job.values);
  const batch = await batchOf(job, id);
  if (!isFinal(batch)) throw new BatchProblem(`the batch has no results while it is ${batch.status}`, EXIT.gateway);
  if (output === undefined) {
    // A reader that has seen enough, such as head, is no failure.
    process.stdout.on('error', () => {});
    const isRead = await downloadThrough(printed, downloadOf(job, batch)).then(() => true, ignoreClosedPipe);
    if (!isRead) return 0;
    return batch.request_counts.failed > 0 ? EXIT.requestsFailed : 0;
  }
  await download(job, batch, output);
  return ended(job, batch);
}

/** Resolves when the reader of the output has taken it. */
function printed(lines: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(lines, (error) => (error ? reject(error) : resolve()));
  });
}

function ignoreClosedPipe(error: NodeJS.ErrnoException): false {
  if (error.code === 'EPIPE') return false;
  throw error;
}

async function download(job: Job, batch: ShownBatch, output: string): Promise<void> {
  await downloadTo(output, downloadOf(job, batch));
  job.progress.say(`results written to ${output}`);
}

function downloadOf({ api, clock, progress, signal }: Job, { id, request_counts: counts }: ShownBatch): Download {
  return {
    ...{ api, clock, batchId: id },
    advanced: (lines) => progress.show('downloading', lines, counts.total, `${lines}/${counts.total}`),
    cut(problem) {
      if (signal.aborted) throw new BatchProblem('interrupted; the same command again resumes', EXIT.interrupted);
      progress.say(`${problem.message}; resuming`);
    },
  };
}

/** A file that does not exist, or may be overwritten. */
async function outputOf(values: Values): Promise<string | undefined> {
  const given = values['output'] as string | undefined;
  if (given === undefined) return undefined;
  const file = path.resolve(given);
  if (values['force'] !== true && existsSync(file)) throw new UsageError(`${given} exists; --force overwrites it`);
  await checkWritable(file);
  return file;
}

async function cancel(job: Job, id: string): Promise<number> {
  show(job, await job.api.json<ShownBatch>({ method: 'POST', path: `/batches/${encodeURIComponent(id)}/cancel` }));
  return 0;
}

async function list({ api, values, parts }: Job): Promise<number> {
  const query = new URLSearchParams({ limit: (values['limit'] as string | undefined) ?? String(DEFAULT_LISTED) });
  const state = values['status'];
  if (typeof state === 'string') {
    if (!STATUSES.includes(state)) throw new UsageError(`--status ${state} is not one of ${STATUSES.join(', ')}`);
    query.set('status', state);
  }
  const { data } = await api.json<{ data: ShownBatch[] }>({ method: 'GET', path: `/batches?${query}` });
  if (values['json'] === true) {
    for (const batch of data) parts.out.print(JSON.stringify(batch));
    return 0;
  }
  for (const { id, status: state, request_counts: counts, created_at: created, model } of data) {
    const done = `${counts.completed + counts.failed}/${counts.total}${counts.failed > 0 ? `, ${counts.failed} failed` : ''}`;
    parts.out.print(`${id}  ${timeText(created)}  ${state.padEnd(11)}  ${done.padEnd(20)}  ${model ?? ''}`.trimEnd());
  }
  return 0;
}

function timeText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');
}

function show({ parts, values }: Job, batch: ShownBatch): void {
  if (values['json'] === true) {
    parts.out.print(JSON.stringify(batch));
    return;
  }
  const { completed, failed, total } = batch.request_counts;
  parts.out.print(`${batch.id}  ${batch.status}`);
  parts.out.print(
    `${batch.model ?? 'models of the requests'} at ${batch.endpoint}, created ${timeText(batch.created_at)}`,
  );
  parts.out.print(`${total} requests: ${completed} completed, ${failed} failed`);
  if (batch.usage) parts.out.print(`${batch.usage.total_tokens} tokens${costOf(batch)}`);
  if (batch.error) parts.out.print(batch.error.message);
}

function costOf({ usage }: ShownBatch): string {
  return usage?.cost === undefined ? '' : `, ${usage.cost} USD`;
}

/** Says how a batch ended. Returns the exit code. */
function ended(job: Job, batch: ShownBatch): number {
  const { completed, failed, total } = batch.request_counts;
  const why = batch.error ? `: ${batch.error.message}` : '';
  if (job.values['json'] === true) job.parts.out.print(JSON.stringify(batch));
  job.progress.say(
    `${batch.status}${why}; ${completed} of ${total} requests completed, ${failed} failed${costOf(batch)}`,
  );
  if (batch.status !== 'completed') return EXIT.batchFailed;
  return failed > 0 ? EXIT.requestsFailed : 0;
}
