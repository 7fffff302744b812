import { createHash } from 'node:crypto';
import { joinedBody } from '../../base/body.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { FailureKind } from '../../formats/conversation/failure.ts';
import type { UpstreamCall, UpstreamReceiver, UpstreamRequest } from '../send/transport.ts';
import { answer, type ChatRequest, lastUserText, parseRequest, promptTokensOf, sampleOf } from './answer.ts';
import { type Envelope, errorBody, type Frame, frames, wholeBody } from './frames.ts';
import { parseScript, type Script } from './script.ts';
import { hear, speak } from './speech.ts';
import { videoBytes, videoJob } from './video.ts';

/** Context and output limits of the simulated models, by upstream name. */
export const SIMULATED_LIMITS: Readonly<Record<string, { contextTokens: number; outputTokens: number }>> = {
  echo: { contextTokens: 1_000_000, outputTokens: 100_000 },
  script: { contextTokens: 100_000_000, outputTokens: 50_000_000 },
};

/** Largest unstreamed reply. */
const WHOLE_BYTES = 64 * 1024 * 1024;
/** Chunk size of whole bodies, so that pauses and cuts can happen in between. */
const BODY_CHUNK_BYTES = 64 * 1024;

interface Reply {
  status: number;
  headers: Record<string, string>;
  frames: Iterator<Frame>;
  delayMs: { headers: number; chunks: number };
}

/** One exchange with a simulated model, with the lifecycle of a network exchange, including timeouts. */
export class SimulatedCall implements UpstreamCall {
  readonly #clock: Clock;
  readonly #request: UpstreamRequest;
  readonly #receiver: UpstreamReceiver;
  readonly #reply: Reply;
  readonly #total: Timer;
  #wait: Timer | undefined;
  #turn: NodeJS.Immediate | undefined;
  #headSent = false;
  #bodySent = false;
  /** Time spent so far waiting for the first body byte. */
  #waitedMs = 0;
  #paused = false;
  /** Whether a delivery became due during the pause. */
  #held = false;
  #over = false;

  constructor(clock: Clock, request: UpstreamRequest, receiver: UpstreamReceiver) {
    this.#clock = clock;
    this.#request = request;
    this.#receiver = receiver;
    this.#reply = replyTo(request, Math.floor(clock.now() / 1000));
    this.#total = clock.timer(request.timeouts.total, () =>
      this.#fail('timeout', 'the answer exceeded the total timeout'),
    );
    this.#after(this.#reply.delayMs.headers, () => this.#head());
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    if (!this.#held || this.#over) return;
    this.#held = false;
    this.#soon(() => this.#deliver());
  }

  abort(): void {
    this.#finish();
  }

  #head(): void {
    this.#headSent = true;
    this.#receiver.head(this.#reply.status, this.#reply.headers);
    this.#next();
  }

  #next(): void {
    if (this.#over) return;
    if (this.#reply.delayMs.chunks > 0) this.#after(this.#reply.delayMs.chunks, () => this.#deliver());
    else this.#soon(() => this.#deliver());
  }

  #deliver(): void {
    if (this.#over) return;
    if (this.#paused) {
      this.#held = true;
      return;
    }
    const { done, value: frame } = this.#reply.frames.next();
    if (done === true || ('fault' in frame && frame.fault === 'end')) {
      this.#finish();
      this.#receiver.end();
    } else if ('bytes' in frame) {
      this.#bodySent = true;
      this.#receiver.data(typeof frame.bytes === 'string' ? Buffer.from(frame.bytes) : frame.bytes);
      this.#next();
    } else if (frame.fault === 'cut') {
      this.#fail('cut', 'the connection broke before the answer was complete');
    } else {
      this.#after(Number.POSITIVE_INFINITY, () => {});
    }
  }

  /** Runs after a delay, or fails if a timeout comes first. */
  #after(delayMs: number, run: () => void): void {
    const { firstByte, idle } = this.#request.timeouts;
    const patienceMs = this.#bodySent ? idle : firstByte - this.#waitedMs;
    const late = delayMs > patienceMs;
    this.#waitedMs += delayMs;
    if (delayMs === 0) {
      this.#soon(run);
      return;
    }
    this.#wait = this.#clock.timer(late ? patienceMs : delayMs, () => {
      this.#wait = undefined;
      if (late) this.#fail('timeout', 'no data arrived within the timeout');
      else run();
    });
  }

  /**
   * Runs in a separate turn of the event loop, like bytes from a socket, so that the caller can pause and abort in
   * between.
   */
  #soon(run: () => void): void {
    this.#turn = setImmediate(() => {
      this.#turn = undefined;
      run();
    });
  }

  #fail(kind: FailureKind, message: string): void {
    if (this.#over) return;
    this.#finish();
    this.#receiver.failed({ kind, status: this.#headSent ? this.#reply.status : null, message }, true);
  }

  #finish(): void {
    this.#over = true;
    this.#total.cancel();
    this.#wait?.cancel();
    if (this.#turn !== undefined) clearImmediate(this.#turn);
  }
}

function replyTo({ url, body: sent }: UpstreamRequest, created: number): Reply {
  const body = joinedBody(sent);
  if (url.includes('/videos')) return filmed(url, Buffer.from(body));
  if (url.endsWith('/audio/speech')) return spoken(body);
  if (/\/audio\/(?:transcriptions|translations)$/.test(url)) return written(body);
  const request = parseRequest(body);
  if (typeof request === 'string') return failure(400, request);
  const limits = SIMULATED_LIMITS[request.model];
  if (limits === undefined) {
    return failure(404, 'there is no such simulated model', 'model_not_found');
  }
  if (promptTokensOf(request) > limits.contextTokens) {
    return failure(400, `the context of this model is ${limits.contextTokens} tokens`, 'context_length_exceeded');
  }
  const script: Script | string =
    request.model === 'script' ? parseScript(lastUserText(request)) : { text: echoOf(request) };
  if (typeof script === 'string') return failure(400, script);
  return scripted(request, script, limits.outputTokens, {
    id: `chatcmpl-${createHash('sha256').update(body).digest('hex').slice(0, 24)}`,
    created,
    model: request.model,
  });
}

function echoOf(request: ChatRequest): string {
  const text = lastUserText(request) || '(no text)';
  return request.schema === undefined ? text : JSON.stringify(sampleOf(request.schema, text));
}

function filmed(url: string, body: Buffer): Reply {
  if (!url.endsWith('/content')) return json(200, JSON.stringify(videoJob(url, body)));
  return { ...json(200, ''), headers: { 'content-type': 'video/mp4' }, frames: sliced(videoBytes(url)) };
}

function written(body: Buffer | string): Reply {
  const heard = hear(Buffer.from(body));
  return typeof heard === 'string' ? failure(400, heard) : json(200, JSON.stringify(heard));
}

function spoken(body: Buffer | string): Reply {
  const speech = speak(body);
  if (typeof speech === 'string') return failure(400, speech);
  const { contentType, bytes, pieces } = speech;
  return {
    status: 200,
    headers: { 'content-type': contentType, 'content-length': String(bytes) },
    frames: pieces,
    delayMs: { headers: 0, chunks: 0 },
  };
}

function scripted(request: ChatRequest, script: Script, outputTokens: number, envelope: Envelope): Reply {
  const delayMs = { headers: script.delay_ms?.headers ?? 0, chunks: script.delay_ms?.chunks ?? 0 };
  if (script.error) {
    const { status, body, headers } = script.error;
    const value =
      body ?? errorBody('the simulated model refused', status >= 500 ? 'server_error' : 'invalid_request_error', null);
    return { ...json(status, typeof value === 'string' ? value : JSON.stringify(value), headers), delayMs };
  }
  const said = answer(request, script, outputTokens);
  if (request.stream) {
    const headers = { 'content-type': 'text/event-stream; charset=utf-8' };
    return { status: 200, headers, frames: frames(envelope, request, said, script), delayMs };
  }
  if (Buffer.byteLength(said.text) * said.repeat * request.choices > WHOLE_BYTES) {
    return failure(400, 'an answer of this length must be streamed');
  }
  const body = Buffer.from(wholeBody(envelope, request, said));
  return { ...json(200, ''), frames: withFaults(body, script), delayMs };
}

/** A whole body has no events to count, so the script's faults occur in its middle. */
function* withFaults(body: Buffer, script: Script): Generator<Frame> {
  if (script.malformed_after !== undefined) {
    yield { bytes: '<html>this is not JSON</html>' };
    return;
  }
  const half = body.subarray(0, body.length / 2);
  if (script.stall_after !== undefined) yield* [...sliced(half), { fault: 'stall' } as const];
  if (script.cut_after !== undefined) yield* [...sliced(half), { fault: 'cut' } as const];
  if (script.end_after !== undefined) yield* [...sliced(half), { fault: 'end' } as const];
  yield* sliced(body);
}

function failure(status: number, message: string, code: string | null = null): Reply {
  return json(status, JSON.stringify(errorBody(message, 'invalid_request_error', code)));
}

function json(status: number, body: string, headers: Record<string, string> = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    frames: sliced(Buffer.from(body)),
    delayMs: { headers: 0, chunks: 0 },
  };
}

function* sliced(body: Buffer): Generator<{ bytes: Buffer }> {
  for (let start = 0; start < body.length; start += BODY_CHUNK_BYTES) {
    yield { bytes: body.subarray(start, start + BODY_CHUNK_BYTES) };
  }
}
