/** Writes the events of a chat response as OpenAI's chunks, with comments while nothing else is written. */
import type { Clock, Timer } from '../../base/clock.ts';
import type { GatewayError } from '../../base/errors.ts';
import { usdFromNano } from '../../base/money.ts';
import { fromWireName, type Namespace } from '../../base/namespace.ts';
import type { RunUsage } from '../work/model-calls.ts';
import type { TextPart } from './run.ts';
import type { Chunk } from './schema.ts';

/** Where a response goes: a client of this process, or of another one. */
export interface ChatSink {
  readonly closed: boolean;
  /** A JSON response instead of a stream. */
  reply(status: number, body: object): void;
  /** Begins the stream. */
  open(): void;
  /** Returns false when the client is slow; `onDrain` follows. */
  write(text: string): boolean;
  end(): void;
  onDrain(run: () => void): void;
  /** Calls `run` once if the client disconnects before the end. */
  onClose(run: () => void): void;
}

export const KEEP_ALIVE_MS = 30_000;
const KEEP_ALIVE = ': keepalive\n\n';

type Choice = Chunk['choices'][number];
type Delta = Choice['delta'];

/** What all chunks of a response have in common. */
export type ChunkIdentity = Pick<Chunk, 'id' | 'created'>;

export const DONE = 'data: [DONE]\n\n';

export class ChunkWriter {
  readonly #sink: ChatSink;
  readonly #namespace: Namespace;
  readonly #identity: ChunkIdentity;
  readonly #timer: Timer;

  /** Opens the stream with the chunk that carries the role. */
  constructor(sink: ChatSink, namespace: Namespace, clock: Clock) {
    this.#sink = sink;
    this.#namespace = namespace;
    this.#identity = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(clock.now() / 1_000) };
    this.#timer = clock.timer(KEEP_ALIVE_MS, () => {
      sink.write(KEEP_ALIVE);
      this.#timer.refresh();
    });
    sink.open();
    this.#delta(null, { role: 'assistant', content: '' });
  }

  /** Returns false when the client is slow. */
  text(part: TextPart, text: string, model: string | null): boolean {
    return this.#delta(model, { [part]: text });
  }

  /** The call, and the end of the response: the run waits for the answer. */
  question(id: string, argumentsJson: string, model: string | null, sessionId: string): void {
    const name = fromWireName('svc.provide_input', this.#namespace);
    const call = { id, index: 0, type: 'function' as const, function: { name, arguments: argumentsJson } };
    this.#delta(model, { tool_calls: [call] });
    this.#finish(model, 'tool_calls');
    this.close(model, sessionId, null);
  }

  /** `close` follows. */
  complete(model: string | null): void {
    this.#finish(model, 'stop');
  }

  /** `close` follows. */
  failed(error: GatewayError): void {
    this.#write(null, failure(error));
  }

  /** The end of the response. */
  close(model: string | null, session_id: string, usage: RunUsage | null): void {
    this.#write(model, { choices: [], session_id, usage: usage && usageReply(usage) });
    this.#timer.cancel();
    this.#sink.write(DONE);
    this.#sink.end();
  }

  /** The client has disconnected. */
  stop(): void {
    this.#timer.cancel();
  }

  #delta(model: string | null, delta: Delta): boolean {
    return this.#write(model, { choices: [{ index: 0, delta, finish_reason: null }] });
  }

  #finish(model: string | null, finish_reason: 'stop' | 'tool_calls'): void {
    this.#write(model, { choices: [{ index: 0, delta: {}, finish_reason }] });
  }

  #write(model: string | null, rest: Members): boolean {
    this.#timer.refresh();
    return this.#sink.write(chunkText(this.#identity, this.#namespace, model, rest));
  }
}

type Members = Pick<Chunk, 'choices'> & Partial<Chunk>;

function chunkText(identity: ChunkIdentity, namespace: Namespace, model: string | null, rest: Members): string {
  const chunk: Chunk = {
    ...{ id: identity.id, object: 'chat.completion.chunk', created: identity.created },
    model: model ?? fromWireName('svc/intern', namespace),
    ...rest,
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

function failure({ status, message, details }: GatewayError): Members {
  const metadata = details.metadata as NonNullable<Chunk['error']>['metadata'];
  const choices = [{ index: 0, delta: {}, finish_reason: 'error' as const }];
  return { choices, error: { code: status, message, metadata } };
}

/** The end of a response whose writer has failed. @param error null: it was written already */
export function endingText(
  identity: ChunkIdentity,
  namespace: Namespace,
  error: GatewayError | null,
  session_id: string,
): string {
  const finish = error === null ? '' : chunkText(identity, namespace, null, failure(error));
  return `${finish}${chunkText(identity, namespace, null, { choices: [], session_id, usage: null })}${DONE}`;
}

function usageReply({ promptTokens, completionTokens, cachedTokens, costNano }: RunUsage): NonNullable<Chunk['usage']> {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    ...(costNano !== null && { cost: usdFromNano(costNano) }),
  };
}
