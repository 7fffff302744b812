/** Decodes a complete reply of an upstream that speaks the converse format. */
import type { Choice, Turn } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { fieldsOf, isFields, listOf, restOf, textOrUndefined } from '../conversation/fields.ts';
import { completeCall, decodeBlock } from './decode-blocks.ts';
import { failureFromException } from './failure.ts';
import { decodeFinish } from './finish.ts';
import { decodeUsage } from './usage.ts';

const NAMED_MEMBERS = ['additionalModelResponseFields', 'output', 'serviceTier', 'stopReason', 'usage'];

/** The turn, or the failure reported inside a status 200 (including a malformed body). */
export function decodeReply(value: unknown): { turn: Turn } | { failure: UpstreamFailure } {
  if (!isFields(value)) return malformed('the answer is not a JSON object');
  const message = fieldsOf(value['output'])['message'];
  if (!isFields(message)) {
    const told = value['message'] ?? value['Message'] ?? value['__type'];
    if (typeof told === 'string') return { failure: failureFromException('', value, null) };
    return malformed('the answer has no message');
  }
  const parts = listOf(message['content']).map((block) => decodeBlock(fieldsOf(block)));
  if (!parts.every(completeCall)) return malformed('a tool call has no name');
  const calls = parts.some((part) => part.type === 'toolCall');
  const choice: Choice = {
    parts,
    finish: decodeFinish(value['stopReason'], value['additionalModelResponseFields'], calls, parts.length > 0),
  };
  const turn: Turn = { choices: [choice] };
  const tier = textOrUndefined(fieldsOf(value['serviceTier'])['type']);
  if (tier !== undefined) turn.serviceTier = tier;
  const usage = decodeUsage(value['usage']);
  if (usage !== undefined) turn.usage = usage;
  const rest = restOf(value, NAMED_MEMBERS);
  if (rest !== undefined) turn.extras = { converse: rest };
  return { turn };
}

function malformed(message: string): { failure: UpstreamFailure } {
  return { failure: { kind: 'malformed', status: null, message } };
}
