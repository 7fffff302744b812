/** Requests to a batch interface: JSON in and out, streamed uploads and downloads, and what failures mean. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { deliver } from '../deliver.ts';
import type { Delivery } from '../provider.ts';
import type { UpstreamCall } from '../send/index.ts';
import { type BatchAccount, BatchRefusal } from './contract.ts';

const MOST_REPLY_BYTES = 8 * 1024 * 1024;
const LONGEST_MESSAGE = 500;
/** Uploads take long before the first byte of the response. */
const TIMEOUTS = { connect: 10_000, firstByte: 600_000, idle: 60_000, stall: 600_000, total: 1_800_000 };

export type Json = Readonly<Record<string, unknown>>;
export type BatchRequest = Pick<Delivery, 'path'> &
  Partial<Pick<Delivery, 'method' | 'contentType' | 'streamed' | 'body' | 'url' | 'headers' | 'operation'>>;

/** Sent as a stream, because the transport never repeats those: a repeated request would create a second batch. */
function once(json: string): Pick<Delivery, 'streamed'> {
  const bytes = Buffer.from(json);
  async function* chunks() {
    yield bytes;
  }
  return { streamed: { bytes: bytes.length, chunks: chunks() } };
}

/** Rejects with `BatchRefusal` for every response but a successful one with a JSON object or list. */
export async function call(account: BatchAccount, request: BatchRequest, most = MOST_REPLY_BYTES): Promise<Json> {
  const text = await textOf(await open(account, request), most);
  const value = parsed(text);
  // Some answer a cancellation or a deletion with nothing.
  if (value === undefined && text.trim() === '') return {};
  if (value === undefined) throw new BatchRefusal('the provider answered without JSON', null);
  return value;
}

/** Resolves with the body of a successful response. Rejects with `BatchRefusal` for any other. */
export function open(
  { target: { provider, credential }, clientHeaders, parts }: BatchAccount,
  request: BatchRequest,
): Promise<Readable> {
  const { promise, resolve, reject } = Promise.withResolvers<Readable>();
  let sent: UpstreamCall | undefined;
  const content = new Readable({
    read: () => sent?.resume(),
    destroy(error, done) {
      sent?.abort();
      done(error);
    },
  });
  const refuse = async (status: number, headers: Record<string, string>) =>
    reject(refusalOf(status, parsed(await textOf(content).catch(() => '')), Number(headers['retry-after'])));
  sent = deliver(
    {
      ...{ provider: { ...provider, timeouts: TIMEOUTS }, credential, clientHeaders, operation: 'batches' },
      ...{ format: 'chat', model: '', stream: false, body: '' },
      ...request,
    },
    {
      head(status, headers) {
        if (status >= 200 && status < 300) resolve(content);
        else void refuse(status, headers);
      },
      data(chunk) {
        if (!content.push(chunk)) sent?.pause();
      },
      end: () => void content.push(null),
      failed({ message, kind, status }) {
        const error = new BatchRefusal(`the provider cannot be reached: ${message}`, kind === 'auth' ? 401 : status);
        reject(error);
        content.destroy(error);
      },
    },
    parts,
  );
  // The reader of the content or the promise reports its error.
  content.on('error', () => {});
  return promise;
}

export function post(account: BatchAccount, target: string | BatchRequest, body: unknown = {}): Promise<Json> {
  return call(account, { ...requestOf(target), ...once(JSON.stringify(body)) });
}

function requestOf(target: string | BatchRequest): BatchRequest {
  return typeof target === 'string' ? { path: target } : target;
}

/** @param most bytes of the response */
export function get(account: BatchAccount, path: string, most?: number): Promise<Json> {
  return call(account, { path, method: 'GET' }, most);
}

/** Deletes what may be gone already. False: the provider deletes no such thing. */
export async function forget(account: BatchAccount, target: string | BatchRequest): Promise<boolean> {
  try {
    await call(account, { ...requestOf(target), method: 'DELETE' });
  } catch (error) {
    if (!(error instanceof BatchRefusal) || ![404, 405, 410].includes(error.status ?? 0)) throw error;
    return error.status !== 405;
  }
  return true;
}

/** False: some of it is kept. Throws what the first failure threw, after all were tried. */
export async function removeAll(removals: readonly (() => Promise<boolean>)[]): Promise<boolean> {
  let isGone = true;
  const failures: unknown[] = [];
  for (const remove of removals) {
    try {
      isGone = (await remove()) && isGone;
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return isGone;
}

export function forgetAll(account: BatchAccount, paths: readonly string[]): Promise<boolean> {
  return removeAll(paths.map((path) => () => forget(account, path)));
}

/** Pages of a list that are searched for a batch. */
const MOST_PAGES = 20;

/**
 * The pages of a list.
 * @param read reads a page; its parameter is empty, or continues a query (`&pageToken=...`)
 * @param keys the parameter with the token of a page, and the member with that of the next
 */
export async function* pages(
  read: (query: string) => Promise<Json>,
  keys: { parameter: string; member: string },
  most = MOST_PAGES,
): AsyncGenerator<Json> {
  let token: string | undefined;
  for (let page = 0; page < most; page += 1) {
    const list = await read(token === undefined ? '' : `&${keys.parameter}=${encodeURIComponent(token)}`);
    yield list;
    const next = textIn(list, keys.member);
    if (next === undefined) return;
    if (next === token) throw new BatchRefusal('the provider repeats a page of a list', 400);
    token = next;
  }
}

/** Our name for a batch, for providers that store one. */
export function nameOf(marker: string): string {
  return `gatehouse-${marker}`;
}

export async function unlessStatus(statuses: readonly number[], pending: Promise<unknown>): Promise<void> {
  await pending.catch((error: unknown) => {
    if (!(error instanceof BatchRefusal) || error.status === null || !statuses.includes(error.status)) throw error;
  });
}

/** Uploads content as a file of a multipart form. */
export function upload(
  account: BatchAccount,
  path: string,
  file: { name: string; bytes: number; content: AsyncIterable<Buffer> },
  fields: Readonly<Record<string, string>>,
): Promise<Json> {
  const boundary = `gatehouse-${randomUUID()}`;
  const simple = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const head = Buffer.from(
    `${simple.join('')}--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${file.name}"\r\n` +
      'content-type: application/jsonl\r\n\r\n',
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  async function* chunks() {
    yield head;
    yield* file.content;
    yield tail;
  }
  return call(account, {
    path,
    contentType: `multipart/form-data; boundary=${boundary}`,
    streamed: { bytes: head.length + file.bytes + tail.length, chunks: chunks() },
  });
}

/** @throws BatchRefusal when it is longer */
export async function textOf(content: Readable, most = MOST_REPLY_BYTES): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of content as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > most) throw new BatchRefusal('the answer of the provider is too large', 400);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

function refusalOf(status: number, body: Json | undefined, retryAfterSeconds: number): BatchRefusal {
  const retryAfterMs = retryAfterSeconds > 0 ? retryAfterSeconds * 1000 : undefined;
  // The text may repeat a part of the credential.
  if (status === 401 || status === 403) {
    return new BatchRefusal('the provider refuses the credential or its access to batches', status, retryAfterMs);
  }
  return new BatchRefusal(messageIn(body) ?? `the provider answered with ${status}`, status, retryAfterMs);
}

function messageIn(body: Json | undefined): string | undefined {
  const { error, message, detail } = body ?? {};
  const found = [(error as Json | undefined)?.['message'], error, message, detail].find(
    (text) => typeof text === 'string' && text !== '',
  );
  return (found as string | undefined)?.slice(0, LONGEST_MESSAGE);
}

/** The id of what was created. Without one it has to be searched for. */
export function createdId(made: Json, key = 'id'): string {
  const id = textIn(made, key);
  if (id === undefined) throw new BatchRefusal('the provider did not name what it created', null);
  return id;
}

export function textIn(value: Json, key: string): string | undefined {
  const found = value[key];
  return typeof found === 'string' && found !== '' ? found : undefined;
}

export function listIn(value: Json, key: string): Json[] {
  const found = value[key];
  return Array.isArray(found) ? found.filter((each): each is Json => typeof each === 'object' && each !== null) : [];
}
