/** One call of the model: a streamed chat completion of the gateway. */
import { type Clock, sleep } from '../base/clock.ts';
import { EventReader } from '../http/sse.ts';
import { type AssistantMessage, type Message, NO_USAGE, type ToolCall, type Usage } from './message.ts';

interface ModelRequest {
  /** Tells the gateway which calls belong together. */
  readonly session: string;
  readonly model: string | null;
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly object[];
}

/** Called while the reply arrives. */
interface ReplyListener {
  content(text: string): void;
  reasoning(text: string): void;
}

export interface Reply {
  readonly message: AssistantMessage;
  readonly model: string | null;
  readonly finishReason: string | null;
  readonly usage: Usage;
}

/** The gateway's error, or what kept it from answering. */
export class ModelError extends Error {
  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  readonly retryAfterMs: number | null;

  constructor(message: string, status = 0, retryAfterMs: number | null = null) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** The conversation is longer than the model accepts. */
  get tooLong(): boolean {
    return (this.status === 400 || this.status === 413) && /context|too (?:long|large|many tokens)/i.test(this.message);
  }

  get mayPass(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

const MOST_TRIES = 4;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 60_000;
const LONGEST_ERROR = 64 * 1024;

export class Model {
  readonly #url: string;
  readonly #clock: Clock;

  /** @param gateway base URL of the inference operations */
  constructor(gateway: string, clock: Clock) {
    this.#url = `${gateway}/chat/completions`;
    this.#clock = clock;
  }

  /** Retries what may pass, as long as nothing of the reply was shown. Rejects with ModelError, or the reason of `signal`. */
  async call(request: ModelRequest, listener: ReplyListener, signal: AbortSignal): Promise<Reply> {
    for (let tried = 1; ; tried++) {
      const collector = new ReplyCollector(listener);
      try {
        return await this.#try(request, collector, signal);
      } catch (error) {
        signal.throwIfAborted();
        const failure = error instanceof ModelError ? error : new ModelError(reasonOf(error));
        if (tried === MOST_TRIES || !failure.mayPass || collector.shown) throw failure;
        const delay = failure.retryAfterMs ?? FIRST_DELAY_MS * 2 ** (tried - 1);
        await Promise.race([sleep(this.#clock, Math.min(delay, LONGEST_DELAY_MS)), aborted(signal)]);
        signal.throwIfAborted();
      }
    }
  }

  async #try(
    { session, model, system, messages, tools }: ModelRequest,
    collector: ReplyCollector,
    signal: AbortSignal,
  ) {
    const response = await fetch(this.#url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-session-id': session },
      body: JSON.stringify({
        ...(model === null ? {} : { model }),
        messages: [{ role: 'system', content: system }, ...messages],
        ...(tools.length === 0 ? {} : { tools }),
        stream: true,
        stream_options: { include_usage: true },
      }),
      signal,
    });
    if (!response.ok || response.body === null) throw await refusalOf(response);
    const reader = new EventReader((_name, data) => collector.take(data));
    for await (const chunk of response.body) reader.push(Buffer.from(chunk));
    reader.end();
    return collector.reply();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

async function refusalOf(response: Response): Promise<ModelError> {
  const text = (await response.text().catch(() => '')).slice(0, LONGEST_ERROR);
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  let message = text.slice(0, 500);
  try {
    message = (JSON.parse(text) as { error: { message: string } }).error.message;
  } catch {
    // Not the gateway's JSON: the text itself says more than a guess.
  }
  return new ModelError(message || `status ${response.status}`, response.status, seconds >= 0 ? seconds * 1_000 : null);
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

interface Chunk {
  model?: string;
  error?: { message?: string; code?: number };
  choices?: { delta?: Delta; finish_reason?: string | null }[];
  usage?: {
    prompt_tokens?: number;
    completion_tokens?: number;
    prompt_tokens_details?: { cached_tokens?: number } | null;
  } | null;
}

interface Delta {
  content?: string | null;
  reasoning?: string | null;
  reasoning_details?: ReasoningDetail[] | null;
  tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

type ReasoningDetail = { index?: number; type?: string } & Record<string, unknown>;

/** Joins the chunks of a stream. */
class ReplyCollector {
  /** Whether the listener has heard anything. */
  shown = false;
  readonly #listener: ReplyListener;
  #content = '';
  #model: string | null = null;
  #finishReason: string | null = null;
  #usage = NO_USAGE;
  #complete = false;
  readonly #calls: { id: string; name: string; arguments: string }[] = [];
  readonly #details: ReasoningDetail[] = [];

  constructor(listener: ReplyListener) {
    this.#listener = listener;
  }

  /** @param data of one event */
  take(data: string): void {
    if (data === '[DONE]') {
      this.#complete = true;
      return;
    }
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw new ModelError(chunk.error.message ?? 'the answer broke off', chunk.error.code ?? 0);
    this.#model = chunk.model ?? this.#model;
    if (chunk.usage) {
      this.#usage = {
        input: chunk.usage.prompt_tokens ?? 0,
        output: chunk.usage.completion_tokens ?? 0,
        cached: chunk.usage.prompt_tokens_details?.cached_tokens ?? 0,
      };
    }
    const choice = chunk.choices?.[0];
    this.#finishReason = choice?.finish_reason ?? this.#finishReason;
    if (choice?.delta) this.#takeDelta(choice.delta);
  }

  #takeDelta({ content, reasoning, reasoning_details, tool_calls }: Delta): void {
    if (content) {
      this.shown = true;
      this.#content += content;
      this.#listener.content(content);
    }
    if (reasoning) {
      this.shown = true;
      this.#listener.reasoning(reasoning);
    }
    for (const detail of reasoning_details ?? []) this.#takeDetail(detail);
    for (const { index, id, function: called } of tool_calls ?? []) {
      this.#calls[index] ??= { id: '', name: '', arguments: '' };
      const call = this.#calls[index];
      call.id ||= id ?? '';
      call.name ||= called?.name ?? '';
      call.arguments += called?.arguments ?? '';
    }
  }

  /** Details of one index arrive in parts: texts continue, everything else comes once. */
  #takeDetail(part: ReasoningDetail): void {
    const known = this.#details.find(
      ({ index, type }) => index !== undefined && index === part.index && type === part.type,
    );
    if (known === undefined) {
      this.#details.push({ ...part });
      return;
    }
    for (const [name, value] of Object.entries(part)) {
      const continues = name === 'text' || name === 'summary' || name === 'data';
      if (continues && typeof value === 'string') known[name] = `${(known[name] as string | undefined) ?? ''}${value}`;
      else if (value !== null) known[name] = value;
    }
  }

  /** Throws if the stream ended before it was complete. */
  reply(): Reply {
    if (!this.#complete) throw new ModelError('the answer broke off');
    const calls = this.#calls
      .filter(Boolean)
      .map(
        ({ id, name, arguments: text }): ToolCall => ({ id, type: 'function', function: { name, arguments: text } }),
      );
    return {
      message: {
        role: 'assistant',
        content: this.#content === '' ? null : this.#content,
        ...(calls.length === 0 ? {} : { tool_calls: calls }),
        ...(this.#details.length === 0 ? {} : { reasoning_details: this.#details }),
      },
      model: this.#model,
      finishReason: this.#finishReason,
      usage: this.#usage,
    };
  }
}
