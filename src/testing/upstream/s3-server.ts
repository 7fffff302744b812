/**
 * A strict S3 server in memory, for tests: checks every signature and checksum, honours conditional requests, and fails
 * where a test wants it to. Written by the documentation of the S3 API; shares no code with the gateway.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { signatureFault } from './aws-signature.ts';

export const S3_KEYS = { id: 'TESTKEYTESTKEY', secret: 'a-secret-of-the-test-bucket' };
const REGION = 'eu-test-1';
const SMALLEST_PART = 5 * 1024 * 1024;
/** So small that lists have several pages. */
const UPLOADS_PER_PAGE = 2;

export type S3Fault =
  /** The connection ends without a response, before or after the request has taken effect. */
  | 'reset'
  | 'reset after effect'
  /** No response ever comes. */
  | 'silence'
  /** The response ends after this many bytes of its body. */
  | { cutAfter: number }
  | { status: number; code: string };

export interface S3Request {
  /** As the API names it, such as `PutObject`. */
  operation: string;
  key: string;
  headers: IncomingMessage['headers'];
  bytes: number;
}

interface StoredObject {
  body: Buffer;
  etag: string;
  metadata: Record<string, string>;
}

interface Upload {
  id: string;
  key: string;
  begun: Date;
  metadata: Record<string, string>;
  parts: Map<number, Buffer>;
}

export interface S3Server {
  endpoint: string;
  region: string;
  bucket: string;
  objects: Map<string, StoredObject>;
  uploads: Map<string, Upload>;
  /** Accepted requests, in order. */
  requests: S3Request[];
  /** Every request that was not as it must be; a test expects none. */
  violations: string[];
  /** Whether it honours conditional writes, as it must. */
  conditional: boolean;
  /** The next request of this operation fails so; several are taken one after the other. */
  fail(operation: string, ...faults: S3Fault[]): void;
  close(): Promise<void>;
}

/** What the server refuses with a code of S3. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, code: string) {
    super(code);
    this.status = status;
  }
}

interface Call extends S3Request {
  query: URLSearchParams;
  body: Buffer;
}

export async function startS3(t: Pick<TestContext, 'after'>): Promise<S3Server> {
  const faults = new Map<string, S3Fault[]>();
  const state: S3Server = {
    endpoint: '',
    region: REGION,
    bucket: 'test-bucket',
    objects: new Map(),
    uploads: new Map(),
    requests: [],
    violations: [],
    conditional: true,
    fail: (operation, ...more) => void faults.set(operation, [...(faults.get(operation) ?? []), ...more]),
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  const server = createServer(async (request, response) => {
    try {
      const call = await received(state, request);
      const fault = faults.get(call.operation)?.shift();
      if (fault === 'silence') return;
      if (fault === 'reset') return void request.socket.destroy();
      if (typeof fault === 'object' && 'status' in fault) throw new Refusal(fault.status, fault.code);
      state.requests.push(call);
      const cut = typeof fault === 'object' ? fault.cutAfter : undefined;
      const reply = answer(state, call);
      if (fault === 'reset after effect') return void request.socket.destroy();
      send(response, request.method === 'HEAD', reply, cut);
    } catch (error) {
      // The client has given up in the middle of its request.
      if (request.errored !== null) return;
      if (!(error instanceof Refusal)) throw error;
      send(response, request.method === 'HEAD', {
        status: error.status,
        xml: `<Error><Code>${error.message}</Code></Error>`,
      });
    }
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  state.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.after(() => state.close());
  return state;
}

async function received(state: S3Server, request: IncomingMessage): Promise<Call> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const { method = '', url = '', headers } = request;
  const fault = signatureFault(
    { method, path: url, headers, body },
    { [S3_KEYS.id]: S3_KEYS.secret },
    {
      region: REGION,
      service: 's3',
    },
  );
  if (fault !== null) {
    state.violations.push(`${method} ${url}: ${fault}`);
    throw new Refusal(403, 'SignatureDoesNotMatch');
  }
  const { pathname, searchParams: query } = new URL(url, state.endpoint);
  const [, bucket, key = ''] = /^\/([^/]+)(?:\/(.*))?$/.exec(decodeURIComponent(pathname)) ?? [];
  if (bucket !== state.bucket) throw new Refusal(404, 'NoSuchBucket');
  const operation = operationOf(method, key, query);
  const checksum = headers['x-amz-checksum-sha256'];
  if (/^(?:PutObject|UploadPart)$/.test(operation) && checksum !== sha256(body)) {
    state.violations.push(`${operation} ${key}: missing or wrong checksum`);
    throw new Refusal(400, 'BadDigest');
  }
  return { operation, key, headers, bytes: body.length, query, body };
}

function operationOf(method: string, key: string, query: URLSearchParams): string {
  if (key === '') return method === 'HEAD' ? 'HeadBucket' : query.has('uploads') ? 'ListMultipartUploads' : '?';
  if (query.has('uploads')) return 'CreateMultipartUpload';
  if (query.has('uploadId')) {
    return { PUT: 'UploadPart', POST: 'CompleteMultipartUpload', DELETE: 'AbortMultipartUpload' }[method] ?? '?';
  }
  return { PUT: 'PutObject', GET: 'GetObject', HEAD: 'HeadObject', DELETE: 'DeleteObject' }[method] ?? '?';
}

interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: Buffer;
  xml?: string;
}

function answer(state: S3Server, call: Call): Reply {
  const { key } = call;
  switch (call.operation) {
    case 'HeadBucket':
      return { status: 200 };
    case 'PutObject':
      return written(state, call, call.body, metadataOf(call));
    case 'HeadObject':
    case 'GetObject':
      return read(state, call);
    case 'DeleteObject':
      state.objects.delete(key);
      return { status: 204 };
    case 'CreateMultipartUpload': {
      if (call.headers['x-amz-checksum-algorithm'] !== 'SHA256')
        state.violations.push(`${key}: parts without checksums`);
      const upload = { id: randomUUID(), key, begun: new Date(), metadata: metadataOf(call), parts: new Map() };
      state.uploads.set(upload.id, upload);
      return { status: 200, xml: tagged('InitiateMultipartUploadResult', { UploadId: upload.id }) };
    }
    case 'UploadPart': {
      uploadOf(state, call).parts.set(Number(call.query.get('partNumber')), call.body);
      return { status: 200, headers: { etag: etagOf(call.body) } };
    }
    case 'CompleteMultipartUpload':
      return completed(state, call);
    case 'AbortMultipartUpload':
      state.uploads.delete(uploadOf(state, call).id);
      return { status: 204 };
    case 'ListMultipartUploads':
      return listed(state, call);
    default:
      throw new Refusal(501, 'NotImplemented');
  }
}

function written(state: S3Server, call: Call, body: Buffer, metadata: Record<string, string>): Reply {
  if (state.conditional && call.headers['if-none-match'] === '*' && state.objects.has(call.key))
    throw new Refusal(412, 'PreconditionFailed');
  if (call.headers['if-none-match'] !== '*') state.violations.push(`${call.key}: written without a condition`);
  const etag = etagOf(body);
  state.objects.set(call.key, { body, etag, metadata });
  return { status: 200, headers: { etag } };
}

function read({ objects }: S3Server, { key, headers }: Call): Reply {
  const object = objects.get(key);
  if (object === undefined) throw new Refusal(404, 'NoSuchKey');
  const { body, etag, metadata } = object;
  if (headers['if-match'] !== undefined && headers['if-match'] !== etag) throw new Refusal(412, 'PreconditionFailed');
  const shown = Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`x-amz-meta-${name}`, value]));
  const range = /^bytes=(\d+)-(\d+)$/.exec(String(headers['range'] ?? ''));
  if (range === null) return { status: 200, headers: { ...shown, etag }, body };
  const [start, last] = [Number(range[1]), Number(range[2])];
  if (start >= body.length) throw new Refusal(416, 'InvalidRange');
  const part = body.subarray(start, last + 1);
  const contentRange = `bytes ${start}-${start + part.length - 1}/${body.length}`;
  return { status: 206, headers: { ...shown, etag, 'content-range': contentRange }, body: part };
}

function completed(state: S3Server, call: Call): Reply {
  const upload = uploadOf(state, call);
  const named = [...call.body.toString().matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = '']) => ({
    number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
    etag: /<ETag>(.*?)</.exec(part)?.[1]?.replaceAll('&quot;', '"'),
    checksum: /<ChecksumSHA256>(.*?)</.exec(part)?.[1],
  }));
  const parts = named.map(({ number, etag, checksum }, at) => {
    const body = upload.parts.get(number);
    if (body === undefined || number !== at + 1 || etag !== etagOf(body) || checksum !== sha256(body)) {
      throw new Refusal(400, 'InvalidPart');
    }
    if (at < named.length - 1 && body.length < SMALLEST_PART) throw new Refusal(400, 'EntityTooSmall');
    return body;
  });
  const reply = written(state, call, Buffer.concat(parts), upload.metadata);
  state.uploads.delete(upload.id);
  return { ...reply, xml: tagged('CompleteMultipartUploadResult', { ETag: reply.headers!['etag']! }) };
}

function listed(state: S3Server, { query }: Call): Reply {
  const matching = [...state.uploads.values()]
    .filter(({ key }) => key.startsWith(query.get('prefix') ?? ''))
    .toSorted((a, b) => (a.key + a.id < b.key + b.id ? -1 : 1));
  const after = (query.get('key-marker') ?? '') + (query.get('upload-id-marker') ?? '');
  const rest = matching.filter(({ key, id }) => key + id > after);
  const page = rest.slice(0, UPLOADS_PER_PAGE);
  const last = page.at(-1);
  const rows = page.map(({ key, id, begun }) =>
    tagged('Upload', { Key: key, UploadId: id, Initiated: begun.toISOString() }),
  );
  const more: Record<string, string> =
    rest.length > page.length && last !== undefined
      ? { IsTruncated: 'true', NextKeyMarker: last.key, NextUploadIdMarker: last.id }
      : { IsTruncated: 'false' };
  return { status: 200, xml: tagged('ListMultipartUploadsResult', more, rows.join('')) };
}

function uploadOf({ uploads }: S3Server, { query, key }: Call): Upload {
  const upload = uploads.get(query.get('uploadId') ?? '');
  if (upload === undefined || upload.key !== key) throw new Refusal(404, 'NoSuchUpload');
  return upload;
}

function metadataOf({ headers }: Call): Record<string, string> {
  const own = Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-'));
  return Object.fromEntries(own.map(([name, value]) => [name.slice('x-amz-meta-'.length), String(value)]));
}

function send(response: ServerResponse, isHead: boolean, reply: Reply, cutAfter?: number): void {
  const { status, headers = {}, xml } = reply;
  const body = xml === undefined ? (reply.body ?? Buffer.alloc(0)) : Buffer.from(`<?xml version="1.0"?>${xml}`);
  const type = xml === undefined ? {} : { 'content-type': 'application/xml' };
  response.writeHead(status, { ...headers, ...type, 'content-length': String(body.length) });
  if (isHead) response.end();
  else if (cutAfter === undefined) response.end(body);
  else response.write(body.subarray(0, cutAfter), () => response.destroy());
}

function tagged(name: string, members: Record<string, string>, rest = ''): string {
  const inner = Object.entries(members).map(([member, value]) => `<${member}>${value}</${member}>`);
  return `<${name}>${inner.join('')}${rest}</${name}>`;
}

function sha256(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64');
}

function etagOf(body: Buffer): string {
  return `"${createHash('md5').update(body).digest('hex')}"`;
}
