/** Decodes a complete reply from an upstream that speaks the responses format. */
import type { Choice, ReasoningOrigin, Turn } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, listOf, restOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { Dialect } from '../conversation/format.ts';
import { decodeItems } from './decode-item.ts';
import { failureOfResponse } from './failure.ts';
import { decodeFinish } from './finish.ts';
import { ECHOED } from './response.ts';
import { noted } from './served-calls.ts';
import { decodeUsage } from './usage.ts';

const KNOWN = [
  ...Object.keys(ECHOED),
  'completed_at',
  'created_at',
  'error',
  'id',
  'incomplete_details',
  'model',
  'object',
  'output',
  'provider',
  'service_tier',
  'status',
  'usage',
];

export function decodeReply(value: unknown, dialect: Dialect): { turn: Turn } | { failure: UpstreamFailure } {
  if (!isFields(value)) return malformed('an answer that is not a JSON object', value);
  const failure = failureOfResponse(value);
  if (failure !== undefined) return { failure };
  // The gateway never polls for the remainder.
  if (value['status'] === 'in_progress' || value['status'] === 'queued') {
    return malformed('an answer that is not finished', value);
  }
  const output = value['output'];
  if (!Array.isArray(output)) return malformed('an answer without output', value);
  const turn: Turn = { choices: [decodeChoice(value, output, dialect.responses?.origin)] };
  const id = textOrUndefined(value['id']);
  const model = textOrUndefined(value['model']);
  if (id !== undefined) turn.id = id;
  if (model !== undefined) turn.model = model;
  const created = timeOf(value['created_at']);
  if (created !== undefined) turn.created = created;
  if (value['service_tier'] !== undefined) turn.serviceTier = textOrUndefined(value['service_tier']) ?? null;
  const usage = decodeUsage(value);
  if (usage !== undefined) turn.usage = usage;
  const rest = restOf(value, KNOWN);
  if (rest !== undefined) turn.extras = { responses: rest };
  return { turn };
}

function decodeChoice(response: Fields, output: unknown[], origin: ReasoningOrigin = 'openai-responses-v1'): Choice {
  const items = output.map(fieldsOf);
  const parts = decodeItems(items, origin)
    .filter((part) => part.type !== 'toolCall' || part.name !== '')
    .map(noted);
  let calls = 0;
  for (const part of parts) {
    if (part.type !== 'toolCall') continue;
    if (part.id === '') part.id = inventedCallId(response['id'], calls);
    calls += 1;
  }
  const choice: Choice = { parts, finish: decodeFinish(response, calls > 0, parts.length > 0) };
  const logprobs = items.flatMap((item) =>
    item['type'] === 'message' ? listOf(item['content']).flatMap((part) => listOf(fieldsOf(part)['logprobs'])) : [],
  );
  if (logprobs.length > 0) choice.logprobs = { content: logprobs };
  return choice;
}

/** Unix seconds. Some services send fractions, or 0 for unknown. */
export function timeOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 1 && value <= Number.MAX_SAFE_INTEGER ? Math.trunc(value) : undefined;
}

/** An id for a call that came without one. Deterministic for a reply, distinct within it and between replies. */
export function inventedCallId(responseId: unknown, count: number): string {
  const stem = textOf(responseId)
    .replace(/[^a-zA-Z0-9]/g, '')
    .slice(-20);
  return ['call', stem, count].filter((piece) => piece !== '').join('_');
}

function malformed(what: string, raw: unknown): { failure: UpstreamFailure } {
  return { failure: { kind: 'malformed', status: null, message: `the upstream sent ${what}`, raw } };
}
