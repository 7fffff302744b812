/** Calls to a gateway that may run anywhere, with the outgoing settings of this machine. */
import { Readable } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import type { StreamedBody, Transport, UpstreamCall } from '../../providers/index.ts';
import { BatchProblem, EXIT } from './problem.ts';

/** As the API shows it, without results. */
export interface ShownBatch {
  id: string;
  endpoint: string;
  model?: string | null;
  status: string;
  created_at: number;
  request_counts: { total: number; completed: number; failed: number };
  /** Batches of OpenAI's SDKs have no cost. */
  usage?: { cost?: number; total_tokens: number } | null;
  error?: { message: string } | null;
}

interface ApiOptions {
  transport: Transport;
  clock: Clock;
  /** With `/api/v1`, without a slash at its end. */
  baseUrl: string;
  key: string;
  signal: AbortSignal;
}

interface Call {
  method: 'GET' | 'POST';
  path: string;
  headers?: Record<string, string>;
  streamed?: StreamedBody;
}

/** The answer did not come or was cut: the call may be made again. */
export class ConnectionLost extends BatchProblem {
  constructor(message: string) {
    super(message, EXIT.gateway);
  }
}

/** The gateway answered with an error. */
export class Refused extends BatchProblem {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message, EXIT.gateway);
    this.status = status;
  }
}

const HOUR_MS = 3_600_000;
/** An upload is answered when its last byte has been read and stored. */
const TIMEOUTS = { connect: 10_000, firstByte: HOUR_MS, idle: 60_000, stall: 24 * HOUR_MS, total: 24 * HOUR_MS };
const MOST_REPLY_BYTES = 4 * 1024 * 1024;
const RETRIABLE = new Set([429, 502, 503, 504, 529]);

export class GatewayApi {
  readonly #options: ApiOptions;

  constructor(options: ApiOptions) {
    this.#options = options;
  }

  /** @throws ConnectionLost, Refused */
  async json<T>(call: Call): Promise<T> {
    const { content } = await this.#open(call);
    const text = await textOf(content).catch((error: unknown) => {
      throw error instanceof BatchProblem ? error : new ConnectionLost(String(error));
    });
    try {
      return JSON.parse(text) as T;
    } catch {
      throw new Refused(200, `${this.#options.baseUrl} does not answer like a gateway: is the base URL right?`);
    }
  }

  /** A body that may be large. It rejects with ConnectionLost when it is cut. @throws ConnectionLost, Refused */
  async stream(path: string): Promise<AsyncIterable<Buffer>> {
    return (await this.#open({ method: 'GET', path })).content;
  }

  #open({ method, path, headers, streamed }: Call): Promise<{ content: Readable }> {
    const { transport, baseUrl, key, signal } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<{ content: Readable }>();
    let call: UpstreamCall | undefined;
    let isOver = false;
    const content = new Readable({
      read: () => call?.resume(),
      destroy(error, done) {
        if (!isOver) call?.abort();
        done(error);
      },
    });
    // The reader of `content` or the promise reports its error.
    content.on('error', () => {});
    const lost = (message: string) => {
      isOver = true;
      signal.removeEventListener('abort', interrupt);
      const error = new ConnectionLost(message);
      reject(error);
      content.destroy(error);
    };
    const interrupt = () => {
      call?.abort();
      lost('interrupted');
    };
    call = transport.send(
      {
        url: baseUrl + path,
        headers: { authorization: `Bearer ${key}`, accept: 'application/json', ...headers },
        body: '',
        timeouts: TIMEOUTS,
        ...(method === 'GET' && { method }),
        ...(streamed && { streamed }),
      },
      {
        head(status, received) {
          if (status >= 200 && status < 300) resolve({ content });
          else void refusal(status, received['retry-after'], content, baseUrl).then(reject);
        },
        data(chunk) {
          if (!content.push(chunk)) call?.pause();
        },
        end() {
          isOver = true;
          signal.removeEventListener('abort', interrupt);
          content.push(null);
        },
        failed: ({ message }) => lost(`the gateway at ${baseUrl} cannot be reached: ${message}`),
      },
    );
    signal.addEventListener('abort', interrupt, { once: true });
    if (signal.aborted) interrupt();
    return promise;
  }
}

async function refusal(
  status: number,
  retryAfter: string | undefined,
  content: Readable,
  baseUrl: string,
): Promise<BatchProblem> {
  const text = await textOf(content).catch(() => '');
  const message = messageOf(text) ?? `status ${status} of ${baseUrl}`;
  if (RETRIABLE.has(status)) {
    return new ConnectionLost(`${message}${retryAfter === undefined ? '' : ` (retry after ${retryAfter} s)`}`);
  }
  const advice = status === 401 ? ' (give an inference key with --key or GATEHOUSE_API_KEY)' : '';
  return new Refused(status, message + advice);
}

function messageOf(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    return typeof error?.message === 'string' ? error.message : undefined;
  } catch {
    return undefined;
  }
}

async function textOf(content: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of content as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_REPLY_BYTES) throw new Refused(200, 'the answer is too large for one of a gateway');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
