/** Decodes a complete answer of an upstream, in any variant of the chat format. */
import type { Choice, Logprobs, Turn } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import {
  type Fields,
  fieldsOf,
  fieldsOrUndefined,
  isTime,
  listOf,
  nonEmptyText,
  restOf,
} from '../conversation/fields.ts';
import { sourceCitations } from './citation.ts';
import { decodeAssistantParts } from './decode-message.ts';
import type { ChatDialect } from './dialect.ts';
import { decodeInBand, malformedFailure } from './failure.ts';
import { isErrorWord, readFinish } from './finish.ts';
import { splitThinking } from './think-tags.ts';
import { decodeUsage } from './usage.ts';

const KNOWN: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'model',
  'provider',
  'choices',
  'usage',
  'service_tier',
  'system_fingerprint',
  'safeguard_results',
]);

export function decodeReply(value: unknown, dialect: ChatDialect = {}): { turn: Turn } | { failure: UpstreamFailure } {
  const reply = fieldsOrUndefined(value);
  if (reply === undefined) return { failure: malformedFailure('an answer that is not a JSON object', value) };
  const choices = listOf(reply['choices']);
  const failure = decodeInBand('', reply) ?? choiceFailure(choices);
  if (failure !== undefined) return { failure };
  if (choices.length === 0)
    return { failure: { ...malformedFailure('an answer without choices', value), kind: 'empty' } };
  const turn: Turn = { choices: [] };
  const id = nonEmptyText(reply['id']);
  const model = nonEmptyText(reply['model']);
  if (id !== undefined) turn.id = id;
  if (model !== undefined) turn.model = model;
  if (isTime(reply['created'])) turn.created = reply['created'];
  if (reply['service_tier'] !== undefined) turn.serviceTier = nonEmptyText(reply['service_tier']) ?? null;
  if (reply['system_fingerprint'] !== undefined) turn.fingerprint = nonEmptyText(reply['system_fingerprint']) ?? null;
  turn.choices = choices.map((choice, index) => decodeChoice(fieldsOf(choice), index, reply, dialect));
  const usage = decodeUsage(reply['usage']) ?? decodeUsage(fieldsOrUndefined(reply['x_groq'])?.['usage']);
  if (usage !== undefined) turn.usage = usage;
  if (Array.isArray(reply['safeguard_results'])) turn.safeguards = reply['safeguard_results'];
  const others = restOf(reply, KNOWN);
  if (others !== undefined) turn.extras = { chat: others };
  return { turn };
}

/** The error inside a choice, for an answer that ended in one. */
export function choiceFailure(choices: readonly unknown[]): UpstreamFailure | undefined {
  for (const entry of choices) {
    const choice = fieldsOf(entry);
    const native = nonEmptyText(choice['finish_reason']) ?? null;
    if (fieldsOrUndefined(choice['error']) !== undefined) return decodeInBand('error', choice);
    if (isErrorWord(native)) {
      return {
        kind: 'server',
        status: null,
        message: 'the upstream ended its answer with an error',
        code: native,
        raw: choice,
      };
    }
  }
  return undefined;
}

function decodeChoice(choice: Fields, position: number, reply: Fields, dialect: ChatDialect): Choice {
  const message = dialect.thinkTags ? withThinking(fieldsOf(choice['message'])) : fieldsOf(choice['message']);
  let invented = 0;
  const parts = decodeAssistantParts(message, () => inventedCallId(reply['id'], position, invented++));
  const sources = sourceCitations(reply, message['annotations']);
  const written = parts.find((part) => part.type === 'text');
  if (sources.length > 0 && written !== undefined) written.citations = sources;
  const native = nonEmptyText(choice['finish_reason']) ?? null;
  const came = { calls: parts.some((part) => part.type === 'toolCall'), content: parts.length > 0 };
  const decoded: Choice = { parts, finish: readFinish(native, came, choice['stop_reason']) };
  const logprobs = decodeLogprobs(choice['logprobs']);
  if (logprobs !== undefined) decoded.logprobs = logprobs;
  return decoded;
}

function withThinking(message: Fields): Fields {
  const told = typeof message['content'] === 'string' ? splitThinking(message['content']) : undefined;
  if (told === undefined || nonEmptyText(message['reasoning'] ?? message['reasoning_content']) !== undefined)
    return message;
  return { ...message, content: told.text, reasoning: told.reasoning };
}

/** An id for a call without one: deterministic, and distinct within and between answers. */
export function inventedCallId(replyId: unknown, choice: number, count: number): string {
  const stem = (nonEmptyText(replyId) ?? '').replace(/[^a-zA-Z0-9]/g, '').slice(-20);
  return ['call', stem, choice === 0 ? '' : choice, count].filter((piece) => piece !== '').join('_');
}

export function decodeLogprobs(value: unknown): Logprobs | undefined {
  const logprobs = fieldsOrUndefined(value);
  if (logprobs === undefined) return undefined;
  const content = Array.isArray(logprobs['content']) ? logprobs['content'] : null;
  const refusal = Array.isArray(logprobs['refusal']) ? logprobs['refusal'] : undefined;
  if (content === null && refusal === undefined) return undefined;
  return refusal === undefined ? { content } : { content, refusal };
}
