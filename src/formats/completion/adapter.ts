/**
 * Adapters for services with a text completion operation: one with dialects, and Mistral, which answers in the chat
 * format.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { decodeFailure, decodeInBand } from '../chat/failure.ts';
import { GATEWAY_FIELDS } from '../chat/fields.ts';
import { decodeUsage } from '../chat/usage.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import {
  type DirectTarget,
  type EventStep,
  estimatedTokens,
  type Reply,
  type ReplyEvents,
  type Step,
} from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import {
  type CompletionAbility,
  type CompletionAdapter,
  type CompletionAnswer,
  type CompletionRequest,
  chunkEvent,
} from './native.ts';
import { DEFAULT_MAX_TOKENS } from './schema.ts';
import { type CompletionShape, CompletionStream, completionOf } from './through-chat.ts';

export interface CompletionDialect {
  /** Supported abilities; absent: unknown, and everything is sent. */
  able?: readonly CompletionAbility[];
  /** The models that support the operation. Default: all. */
  models?: RegExp;
  path?: string;
  /** The complete URL, if it is not below the base URL. */
  url?(baseUrl: string): string;
  /** Default `user`. */
  userField?: 'user' | 'none';
  /** Accepts `stream_options.include_usage`. Default true. */
  streamUsage?: boolean;
  /** Renamed parameters. */
  renames?: Readonly<Record<string, string>>;
  /** The answer is in the chat format. */
  chatReply?: true;
}

export function completionAdapter(dialect: CompletionDialect = {}): CompletionAdapter {
  return {
    start(request, target) {
      refuseUnable(request, target, dialect);
      const path = dialect.path ?? '/completions';
      const url = dialect.url?.(target.baseUrl);
      const shape: CompletionShape | undefined = dialect.chatReply && { echo: '' };
      return {
        call: { path, body: stringifyJson(bodyOf(request, target, dialect)), ...(url !== undefined && { url }) },
        read: (reply) => readWhole(reply, shape, Number(request.document.structure['best_of'] ?? 1) > 1),
        ...(target.stream && { events: () => new CompletionEvents(target, shape) }),
      };
    },
    decodeFailure,
    able: dialect.able,
    withStreamUsage: (streamUsage) => completionAdapter({ ...dialect, streamUsage }),
  };
}

/** @throws Uncarried with the name of the unsupported member */
function refuseUnable(request: CompletionRequest, { model }: DirectTarget, { able, models }: CompletionDialect): void {
  if (models !== undefined && !models.test(model))
    throw new Uncarried('prompt', 'the model supports only conversations');
  if (able === undefined) return;
  const wants = [
    ['suffix', 'suffix', request.suffix !== ''],
    ['prompts', 'prompt', request.prompts > 1],
    ['tokens', 'prompt', request.tokenIds],
    ['echo', 'echo', request.echo],
    ['best_of', 'best_of', request.bestOf > 1],
  ] as const;
  for (const [ability, field, wanted] of wants) {
    if (wanted && !able.includes(ability)) throw new Uncarried(field, 'the service does not support it');
  }
}

function bodyOf({ document }: CompletionRequest, target: DirectTarget, dialect: CompletionDialect): Fields {
  const body: Fields = {};
  for (const [key, value] of Object.entries(document.exact as Fields)) {
    if (GATEWAY_FIELDS.has(key) || key === 'stream' || key === 'stream_options') continue;
    const name = key === 'max_completion_tokens' ? 'max_tokens' : (dialect.renames?.[key] ?? key);
    if (value !== null) body[name] = value;
  }
  body['model'] = target.model;
  body['max_tokens'] ??= DEFAULT_MAX_TOKENS;
  if (dialect.userField !== 'none') body['user'] = target.user;
  if (target.stream) {
    body['stream'] = true;
    if (dialect.streamUsage !== false) body['stream_options'] = { include_usage: true };
  }
  return body;
}

/** @param best the service generated more text than it returns (`best_of`) */
function readWhole(reply: Reply, shape: CompletionShape | undefined, best: boolean): Step<CompletionAnswer> {
  const read = readObject(reply);
  if ('failure' in read) return read;
  const { value } = read;
  if (!Array.isArray(value['choices'])) return { failure: malformed('no choices') };
  const json = shape === undefined ? reply.body.toString('utf8') : stringifyJson(completionOf(value, shape));
  return { answer: { json }, ...(!best && { shownTokens: estimatedTokens(textBytes(value)) }), ...figuresOf(value) };
}

function textBytes({ choices }: Fields): number {
  return listOf(choices).reduce<number>((sum, choice) => sum + Buffer.byteLength(textIn(fieldsOf(choice))), 0);
}

/** The text of a choice: of a text completion, a chat answer, or a streamed piece of either. */
function textIn({ text, message, delta }: Fields): string {
  return textOf(text) || textOf(fieldsOf(message)['content']) || textOf(fieldsOf(delta)['content']);
}

function figuresOf(value: Fields): Pick<EventStep<unknown>, 'usage' | 'upstreamId'> {
  const usage = decodeUsage(value['usage']);
  const upstreamId = textOrUndefined(value['id']);
  return { ...(usage && { usage }), ...(upstreamId !== undefined && { upstreamId }) };
}

/** Relays chunk by chunk. Only the end marker distinguishes a complete stream from a cut one. */
class CompletionEvents implements ReplyEvents<CompletionAnswer> {
  readonly #target: DirectTarget;
  readonly #stream: CompletionStream | undefined;
  /** Size of the text so far. */
  #bytes = 0;

  constructor(target: DirectTarget, shape: CompletionShape | undefined) {
    this.#target = target;
    this.#stream = shape && new CompletionStream(shape);
  }

  read(name: string, data: string): EventStep<CompletionAnswer> {
    if (data.trim() === '[DONE]') return { answer: { json: '' } };
    let value: unknown;
    try {
      value = parseJson(data);
    } catch {
      return { failure: malformed('an event that is not JSON', data) };
    }
    if (!isFields(value)) return { failure: malformed('an event that is not an object', data) };
    const failure = decodeInBand(name, value);
    if (failure !== undefined) return { failure };
    const choices = fieldsOf(value)['choices'];
    this.#bytes += textBytes(value);
    const step = { ...figuresOf(value), shownTokens: estimatedTokens(this.#bytes) };
    if (!Array.isArray(choices) || choices.length === 0) return step;
    const json = this.#stream === undefined ? data : this.#older(data);
    return json === undefined ? step : { ...step, text: chunkEvent(json, this.#target.stamp) };
  }

  #older(data: string): string | undefined {
    const text = this.#stream!.rewrite(`data: ${data}`);
    return text.startsWith('data: ') ? text.slice('data: '.length) : undefined;
  }
}
