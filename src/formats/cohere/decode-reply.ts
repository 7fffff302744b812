/** Decodes a complete reply of an upstream that speaks the cohere format. */
import type { Choice, Part, Turn } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, listOf, restOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { decodeCitation, placeOf } from './citations.ts';
import { failureFromFinish } from './failure.ts';
import { decodeFinish } from './finish.ts';
import { decodeLogprobs } from './logprobs.ts';
import { decodeUsage } from './usage.ts';

const NAMED_MEMBERS = ['finish_reason', 'id', 'logprobs', 'message', 'usage'];

/**
 * Id of the plan before tool calls, which is decoded as reasoning. The id distinguishes it from the reasoning of other
 * Cohere models, so that encoding returns it to its own member.
 */
export const PLAN = 'tool_plan';

/** The turn, or the failure reported inside a status 200 (including a malformed body). */
export function decodeReply(value: unknown): { turn: Turn } | { failure: UpstreamFailure } {
  if (!isFields(value)) return malformed('the answer is not a JSON object');
  const message = value['message'];
  if (!isFields(message)) {
    if (typeof message === 'string') return { failure: { kind: 'server', status: null, message, raw: value } };
    return malformed('the answer has no message');
  }
  const parts = decodeParts(message);
  const calls = parts.filter((part) => part.type === 'toolCall');
  if (calls.some(({ name }) => name === '')) return malformed('a tool call has no name');
  const finish = decodeFinish(value['finish_reason'], calls.length > 0, parts.length > 0);
  if (finish.unified === 'error' && parts.length === 0) {
    return { failure: failureFromFinish(finish.native ?? '', value['error']) };
  }
  const choice: Choice = { parts, finish };
  const logprobs = decodeLogprobs(value['logprobs']);
  if (logprobs !== undefined) choice.logprobs = logprobs;
  const turn: Turn = { choices: [choice] };
  const id = textOrUndefined(value['id']);
  if (id !== undefined) turn.id = id;
  const usage = decodeUsage(value['usage']);
  if (usage !== undefined) turn.usage = usage;
  const rest = restOf(value, NAMED_MEMBERS);
  if (rest !== undefined) turn.extras = { cohere: rest };
  return { turn };
}

/** Plan, content and calls, in the order in which the model produced them. */
function decodeParts(message: Fields): Part[] {
  const parts: Part[] = [];
  const plan = textOf(message['tool_plan']);
  if (plan !== '') parts.push({ type: 'reasoning', text: plan, id: PLAN, origin: 'unknown' });
  const { content } = message;
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content);
  const byIndex = blocks.map((block) => decodeBlock(fieldsOf(block)));
  parts.push(...byIndex);
  for (const citation of listOf(message['citations'])) {
    const place = placeOf(citation);
    const part = place === 'plan' ? undefined : byIndex[place];
    if (part?.type === 'text') part.citations = [...(part.citations ?? []), decodeCitation(citation)];
  }
  for (const call of listOf(message['tool_calls'])) parts.push(decodeCall(fieldsOf(call), parts.length));
  return parts;
}

export function decodeBlock(block: Fields): Part {
  switch (block['type']) {
    case 'text':
      return { type: 'text', text: textOf(block['text']) };
    case 'thinking':
      return { type: 'reasoning', text: textOf(block['thinking']), origin: 'unknown' };
    default:
      return { type: 'opaque', origin: 'cohere', value: block };
  }
}

/** A call without an id gets one that is unique in the reply. */
export function decodeCall(call: Fields, index: number): Part & { type: 'toolCall' } {
  const { name, arguments: written } = fieldsOf(call['function']);
  return {
    type: 'toolCall',
    id: textOf(call['id']) || `call_${index}`,
    name: textOf(name),
    arguments: textOf(written) || '{}',
  };
}

function malformed(message: string): { failure: UpstreamFailure } {
  return { failure: { kind: 'malformed', status: null, message } };
}
