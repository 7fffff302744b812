/**
 * Computes the reply of a simulated model: pure, from request body and script to the pieces of a reply with token
 * counts. A token is four bytes of UTF-8, rounded up; every message costs one more.
 */
import type { Script } from './script.ts';

export interface ChatRequest {
  model: string;
  messages: readonly Record<string, unknown>[];
  tools: readonly unknown[];
  stream: boolean;
  includeUsage: boolean;
  maxTokens: number | undefined;
  choices: number;
  /** Of the output, if it must be JSON of a schema. */
  schema: Record<string, unknown> | undefined;
}

export interface Answer {
  reasoning: string;
  /** `text` is repeated `repeat` times and followed by `rest`, so a long reply is never in memory as a whole. */
  text: string;
  repeat: number;
  rest: string;
  refusal: string;
  toolCalls: { id: string; name: string; arguments: string }[];
  finishReason: string;
  /** Null: no usage is reported. */
  usage: Record<string, unknown> | null;
}

const BYTES_PER_TOKEN = 4;

function tokensOf(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** Parses a chat completions body; a string describes the problem. */
export function parseRequest(body: Buffer | string): ChatRequest | string {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    return 'the body must be JSON';
  }
  const request = record(value);
  const { model, messages, stream, n } = request;
  const maxTokens = request['max_completion_tokens'] ?? request['max_tokens'] ?? undefined;
  if (typeof model !== 'string') return 'model must be a string';
  if (!Array.isArray(messages) || messages.length === 0) return 'messages must be a non-empty array';
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && Number(maxTokens) > 0)) {
    return 'max_tokens must be a positive integer';
  }
  if (n !== undefined && n !== null && !(Number.isInteger(n) && Number(n) >= 1 && Number(n) <= 128)) {
    return 'n must be an integer from 1 to 128';
  }
  return {
    model,
    messages: messages.map(record),
    tools: Array.isArray(request['tools']) ? request['tools'] : [],
    stream: stream === true,
    includeUsage: record(request['stream_options'])['include_usage'] === true,
    maxTokens: maxTokens as number | undefined,
    choices: typeof n === 'number' ? n : 1,
    schema: schemaOf(record(request['response_format'])),
  };
}

function schemaOf({ type, json_schema: named }: Record<string, unknown>): Record<string, unknown> | undefined {
  const { schema } = record(named);
  return type === 'json_schema' && typeof schema === 'object' && schema !== null ? record(schema) : undefined;
}

const DEEPEST_SAMPLE = 20;

/** A simple value of a JSON schema: first options, least numbers, empty lists, and `text` for strings. */
export function sampleOf(schema: Record<string, unknown>, text: string, depth = 0): unknown {
  const { type, enum: options, const: only, properties, minimum } = schema;
  if (only !== undefined) return only;
  if (Array.isArray(options)) return options[0] ?? null;
  if (type === 'object' && depth < DEEPEST_SAMPLE) {
    const members = Object.entries(record(properties));
    return Object.fromEntries(members.map(([name, member]) => [name, sampleOf(record(member), text, depth + 1)]));
  }
  if (type === 'array') return [];
  if (type === 'number' || type === 'integer') return typeof minimum === 'number' ? minimum : 0;
  if (type === 'boolean') return false;
  return type === 'string' ? text : null;
}

/** The text of the last user message; '' if there is none. */
export function lastUserText({ messages }: ChatRequest): string {
  const message = messages.findLast(({ role }) => role === 'user');
  return message ? textOf(message['content']) : '';
}

export function promptTokensOf({ messages, tools }: ChatRequest): number {
  let tokens = tools.length === 0 ? 0 : tokensOf(JSON.stringify(tools));
  for (const message of messages) {
    tokens += 1 + tokensOf(textOf(message['content']));
    if (message['tool_calls'] !== undefined) tokens += tokensOf(JSON.stringify(message['tool_calls']));
  }
  return tokens;
}

/** Replies according to the script, within the output cap: longer output is truncated with finish reason `length`. */
export function answer(request: ChatRequest, script: Script, limit: number): Answer {
  const budget = new Budget(Math.min(request.maxTokens ?? limit, limit));
  const reasoning = budget.take(script.reasoning ?? '');
  const reasoningTokens = budget.spent;
  const text = budget.takeRepeated(script.text ?? '', script.repeat ?? 1);
  const refusal = budget.take(script.refusal ?? '');
  const toolCalls: Answer['toolCalls'] = [];
  for (const [index, call] of (script.tool_calls ?? []).entries()) {
    if (budget.exhausted) break;
    const name = budget.take(call.name);
    const json = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {});
    toolCalls.push({ id: call.id ?? `call_${index}`, name, arguments: budget.take(json) });
  }
  const natural = budget.exhausted ? 'length' : toolCalls.length > 0 ? 'tool_calls' : 'stop';
  return {
    reasoning,
    ...text,
    refusal,
    toolCalls,
    finishReason: budget.exhausted ? 'length' : (script.finish_reason ?? natural),
    usage: usageOf(request, script, budget.spent * request.choices, reasoningTokens * request.choices),
  };
}

function usageOf(request: ChatRequest, { usage }: Script, completion: number, reasoning: number): Answer['usage'] {
  if (usage === null) return null;
  const prompt = usage?.prompt_tokens ?? promptTokensOf(request);
  const completionTokens = usage?.completion_tokens ?? completion;
  return {
    prompt_tokens: prompt,
    completion_tokens: completionTokens,
    total_tokens: prompt + completionTokens,
    prompt_tokens_details: {
      cached_tokens: usage?.cached_tokens ?? 0,
      ...(usage?.cache_write_tokens !== undefined && { cache_write_tokens: usage.cache_write_tokens }),
    },
    completion_tokens_details: { reasoning_tokens: usage?.reasoning_tokens ?? reasoning },
  };
}

/** The remaining output cap. */
class Budget {
  spent = 0;
  exhausted = false;
  readonly #tokens: number;

  constructor(tokens: number) {
    this.#tokens = tokens;
  }

  take(text: string): string {
    if (this.exhausted || text === '') return '';
    const tokens = tokensOf(text);
    const left = this.#tokens - this.spent;
    if (tokens <= left) {
      this.spent += tokens;
      return text;
    }
    this.exhausted = true;
    const kept = head(text, left * BYTES_PER_TOKEN);
    this.spent += tokensOf(kept);
    return kept;
  }

  takeRepeated(text: string, repeat: number): Pick<Answer, 'text' | 'repeat' | 'rest'> {
    if (repeat === 1 || this.exhausted) return { text: this.take(text), repeat: 1, rest: '' };
    const each = tokensOf(text);
    const whole = each === 0 ? 0 : Math.min(repeat, Math.floor((this.#tokens - this.spent) / each));
    this.spent += each * whole;
    return { text, repeat: whole, rest: whole < repeat ? this.take(text) : '' };
  }
}

/** The longest prefix within the byte limit that ends between characters. */
function head(text: string, bytes: number): string {
  const buffer = Buffer.from(text);
  let end = bytes;
  while (end > 0 && (buffer[end]! & 0xc0) === 0x80) end -= 1;
  return buffer.toString('utf8', 0, end);
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => record(part)['text'])
    .filter((text) => typeof text === 'string')
    .join('');
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
