/**
 * The network as the SDK's client uses it: `fetch` through the checked egress, with limits of bytes and time. The client
 * waits for an answer that can no longer come, so a stream that ends also ends the call that it belongs to.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Egress, EgressError } from '../../../egress/index.ts';

/** Of one response, or of the stream of a server of the older transport. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Of that stream, which lasts as long as the request. */
const STREAM_MS = 60 * 60 * 1000;
/** Of ending a session, which delays no request. */
const END_MS = 5_000;

interface Call {
  /** A request has failed, or its stream has broken. */
  fail(error: unknown): void;
  /** A stream has ended. The call may have its answer. */
  ended(error: unknown): void;
}

export class McpNetwork {
  readonly #egress: Egress;
  readonly #timeoutMs: number;
  readonly #over = new AbortController();
  /** The call that a request of the client belongs to. */
  readonly #call = new AsyncLocalStorage<Call>();
  /** Rejects once the only stream of a server of the older transport has ended. */
  readonly #lost = Promise.withResolvers<never>();

  constructor(egress: Egress, timeoutMs: number) {
    this.#egress = egress;
    this.#timeoutMs = timeoutMs;
    this.#lost.promise.catch(() => {});
  }

  /**
   * Runs one call of the client. Rejects with what it throws, or an EgressError.
   * @param requests `one`: the end of its stream ends the call
   */
  within<T>(requests: 'one' | 'several', run: () => Promise<T>): Promise<T> {
    const broken = Promise.withResolvers<never>();
    const fail = broken.reject;
    const call = { fail, ended: requests === 'one' ? fail : () => {} };
    return Promise.race([this.#call.run(call, run), broken.promise, this.#lost.promise]);
  }

  /** Messages that a server sends on its own are not used, so no stream is opened for them. */
  readonly fetchWithoutStream: FetchLike = (url, init) =>
    (init?.method ?? 'GET') === 'GET' ? Promise.resolve(new Response(null, { status: 405 })) : this.fetch(url, init);

  readonly fetch: FetchLike = async (url, init = {}) => {
    const { method = 'GET', body, signal } = init;
    const call = this.#call.getStore();
    try {
      const reply = await this.#egress.open({
        url: String(url),
        method: method as 'GET' | 'POST' | 'DELETE',
        headers: Object.fromEntries(new Headers(init.headers)),
        ...(typeof body === 'string' && { body }),
        maxBytes: MAX_BYTES,
        timeoutMs: method === 'GET' ? STREAM_MS : method === 'DELETE' ? END_MS : this.#timeoutMs,
        signal: signal ? AbortSignal.any([this.#over.signal, signal]) : this.#over.signal,
      });
      const { status, headers } = reply;
      if (status === 204 || status === 205 || status === 304) {
        void reply.body.cancel();
        return new Response(null, { status, headers });
      }
      const isStream = /^text\/event-stream\b/i.test(headers['content-type'] ?? '');
      const owner = method === 'GET' ? { fail: this.#lost.reject, ended: this.#lost.reject } : call;
      return new Response(isStream && owner ? watched(reply.body, owner) : reply.body, { status, headers });
    } catch (error) {
      call?.fail(error);
      throw error;
    }
  };

  /** Ends what is still open. */
  close(): void {
    this.#over.abort();
  }
}

/** Tells the call about the end of a body, once its last bytes could be read. */
function watched(body: ReadableStream<Uint8Array>, call: Call): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(writer) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          writer.enqueue(value);
          return;
        }
        writer.close();
        setImmediate(() => call.ended(new EgressError('network', 'closed the connection without an answer')));
      } catch (error) {
        writer.error(error);
        call.fail(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
