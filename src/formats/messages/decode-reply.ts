/** Decodes a complete answer of an upstream that speaks the messages format. */
import type { Choice, Turn } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { fieldsOf, isFields, restOf, textOrUndefined } from '../conversation/fields.ts';
import { completeCall, decodeBlocks } from './decode-blocks.ts';
import { failureFromError } from './failure.ts';
import { decodeFinish } from './finish.ts';
import { decodeUsage } from './usage.ts';

const NAMED_MEMBERS = [
  'content',
  'id',
  'model',
  'role',
  'safeguard_results',
  'stop_details',
  'stop_reason',
  'stop_sequence',
  'type',
  'usage',
];

/** The turn, or the failure that a response with status 200 reports or amounts to. */
export function decodeReply(value: unknown): { turn: Turn } | { failure: UpstreamFailure } {
  if (!isFields(value)) return malformed('the answer is not a JSON object');
  if (value['type'] === 'error' || (value['error'] !== undefined && value['content'] === undefined)) {
    return { failure: failureFromError(value, null) };
  }
  if (!Array.isArray(value['content'])) return malformed('the answer has no content');
  const parts = decodeBlocks(value['content'], 'vendor');
  const id = textOrUndefined(value['id']);
  if (!parts.every((part, index) => completeCall(part, id ?? '', index))) return malformed('a tool call has no name');
  const choice: Choice = {
    parts,
    finish: decodeFinish(
      value,
      parts.some((part) => part.type === 'toolCall'),
      parts.length > 0,
    ),
  };
  const turn: Turn = { choices: [choice] };
  if (id !== undefined) turn.id = id;
  const model = textOrUndefined(value['model']);
  if (model !== undefined) turn.model = model;
  const tier = textOrUndefined(fieldsOf(value['usage'])['service_tier']);
  if (tier !== undefined) turn.serviceTier = tier;
  const usage = decodeUsage(value['usage']);
  if (usage !== undefined) turn.usage = usage;
  if (Array.isArray(value['safeguard_results'])) turn.safeguards = value['safeguard_results'];
  const rest = restOf(value, NAMED_MEMBERS);
  if (rest !== undefined) turn.extras = { messages: rest };
  return { turn };
}

function malformed(message: string): { failure: UpstreamFailure } {
  return { failure: { kind: 'malformed', status: null, message } };
}
