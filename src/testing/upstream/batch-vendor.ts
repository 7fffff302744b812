/**
 * A provider with a batch interface, for tests: keeps uploads and batches, runs them when the test says so, and fails where the
 * test wants it to. One class plays every vendor; `dialects` say how each spells it.
 */
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Dialect, dialects } from './batch-dialects.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
export type Json = any;

export interface VendorBatch {
  id: string;
  marker: string | undefined;
  /** The calls in the order of the upload: the vendor's id of each and its body. */
  calls: { id: string; body: Json }[];
  createdAt: Date;
  state: 'running' | 'completed' | 'failed' | 'expired' | 'cancelled';
  message?: string;
  uploadId?: string;
  /** What else its creation said. */
  details: Json;
  /** What a line of the results says of each call, in any order. */
  results: VendorResult[];
}

export interface VendorResult {
  id: string;
  status: number;
  /** Undefined: the call was not run. */
  body?: Json;
}

export interface VendorRequest {
  method: string;
  path: string;
  body: Buffer;
  headers: http.IncomingHttpHeaders;
}

/**
 * Instead of the vendor's own answer. `refuse` closes the connection, `stall` never answers; `drop` and `hang` do the same after
 * the work is done, and `half` sends half of the answer.
 */
export type Fault =
  | { status: number; body?: Json; headers?: Record<string, string> }
  | 'refuse'
  | 'stall'
  | 'drop'
  | 'hang'
  | 'half'
  | undefined;

export class BatchVendor {
  readonly dialect: Dialect;
  readonly requests: VendorRequest[] = [];
  readonly batches: VendorBatch[] = [];
  readonly files = new Map<string, { name: string; content: Buffer }>();
  /** Called before each request is handled; may wait. */
  fault: (request: VendorRequest) => Fault | Promise<Fault> = () => undefined;
  /** What the vendor answers to a call. */
  answer: (call: { id: string; body: Json }, batch: VendorBatch) => Omit<VendorResult, 'id'> = () => ({ status: 500 });
  /** Batches are done when they are first polled. */
  finishes = true;
  /** Changes the text of results before it is sent. */
  garble: (text: string) => string = (text) => text;
  url = '';
  #next = 1;
  readonly #server = http.createServer((request, response) => void this.#handle(request, response));

  constructor(dialect: keyof typeof dialects) {
    this.dialect = dialects[dialect];
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  id(prefix: string): string {
    return `${prefix}${this.#next++}`;
  }

  /** Adds a batch, as the vendor does when it is created. */
  create(batch: Pick<VendorBatch, 'marker' | 'calls'> & Partial<VendorBatch>): VendorBatch {
    const made: VendorBatch = {
      id: this.id('batch-'),
      createdAt: new Date(),
      state: 'running',
      details: {},
      results: [],
      ...batch,
    };
    this.batches.push(made);
    return made;
  }

  /** Runs the calls of a batch; `ran` of them, all by default. The others are expired or cancelled with it. */
  finish(batch: VendorBatch, state: VendorBatch['state'] = 'completed', ran = batch.calls.length): void {
    if (batch.state !== 'running') return;
    batch.state = state;
    const results = batch.calls.map((call, index) =>
      index < ran ? { id: call.id, ...this.answer(call, batch) } : { id: call.id, status: 0 },
    );
    // Results come in any order.
    batch.results = results.toReversed();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const { method = '', url: path = '', headers } = request;
    const asked: VendorRequest = { method, path, headers, body: Buffer.concat(chunks) };
    this.requests.push(asked);
    const fault = await this.fault(asked);
    if (fault === 'stall') return;
    if (fault === 'refuse') {
      response.destroy();
      return;
    }
    if (typeof fault === 'object') {
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(JSON.stringify(fault.body ?? { error: { message: `status ${fault.status}` } }));
      return;
    }
    const answer = this.dialect.handle(this, asked);
    if (fault === 'hang') return;
    if (fault === 'half') {
      const text = this.garble(String(answer));
      response.writeHead(200, { 'content-length': text.length }).write(text.slice(0, text.length / 2));
      return;
    }
    if (fault === 'drop') {
      response.destroy();
      return;
    }
    if (answer === undefined)
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"no such path"}}');
    else if (typeof answer === 'string')
      response.writeHead(200, { 'content-type': 'application/jsonl' }).end(this.garble(answer));
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }
}

/** The file of a multipart form and its fields. */
export function formOf({ body, headers }: VendorRequest): {
  name: string;
  content: Buffer;
  fields: Map<string, string>;
} {
  const boundary = /boundary=(\S+)/.exec(headers['content-type'] ?? '')?.[1] ?? '';
  const fields = new Map<string, string>();
  let file: { name: string; content: Buffer } = { name: '', content: Buffer.alloc(0) };
  let at = body.indexOf(`--${boundary}`);
  for (;;) {
    const start = at + boundary.length + 4;
    const end = body.indexOf(`\r\n--${boundary}`, start);
    if (end < 0) break;
    const split = body.indexOf('\r\n\r\n', start);
    const head = body.subarray(start, split).toString();
    const content = body.subarray(split + 4, end);
    const filename = /filename="([^"]*)"/.exec(head)?.[1];
    if (filename === undefined) fields.set(/name="([^"]*)"/.exec(head)?.[1] ?? '', content.toString());
    else file = { name: filename, content };
    at = end + 2;
  }
  return { ...file, fields };
}

/** The batch as a poll finds it. */
export function polled(vendor: BatchVendor, batch: VendorBatch): VendorBatch {
  if (vendor.finishes) vendor.finish(batch);
  return batch;
}

export function jsonLines(values: readonly Json[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

export function linesIn(content: Buffer): Json[] {
  return content
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
