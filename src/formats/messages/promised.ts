/**
 * Members that are required in every answer of this format but that compatible services, especially older versions,
 * leave out. A relayed answer gets the missing ones; present members stay unchanged.
 */
import { scanMembers } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import { scanElements } from '../../base/json-list.ts';
import type { Usage } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isImpossibleCount } from '../conversation/fields.ts';
import { encodeUsage } from './usage.ts';

/** JSON texts of the defaults for absent members. */
type Promised = Readonly<Record<string, string>>;

export const DELTA: Promised = { stop_reason: 'null', stop_sequence: 'null', stop_details: 'null', container: 'null' };

export const MESSAGE: Promised = { type: '"message"', role: '"assistant"', content: '[]', ...DELTA };

const BLOCKS: Readonly<Record<string, Promised>> = {
  // An empty list although null is allowed: some clients accept only a list.
  text: { text: '""', citations: '[]' },
  thinking: { thinking: '""', signature: '""' },
  // Not `caller`: only the upstream knows it, and clients would return it to services that may not accept it.
  tool_use: { input: '{}' },
};

/** Whether the block's type is unknown. It may be a call as well, so the upstream's stop reason is then kept. */
export function isStrange(value: unknown): boolean {
  const type = String(fieldsOf(value)['type']);
  return !(type in BLOCKS) && type !== 'redacted_thinking';
}

export function missing(value: Fields, promised: Promised): Edit[] {
  const edits: Edit[] = [];
  for (const [key, json] of Object.entries(promised)) if (value[key] === undefined) edits.push({ key, json });
  return edits;
}

/**
 * The text of a block with missing members added, and a call's id replaced by ours; unchanged if nothing is missing.
 */
export function completeBlock(text: string, value: unknown, callId: string | undefined): string {
  const block = fieldsOf(value);
  const edits = missing(block, BLOCKS[String(block['type'])] ?? {});
  if (callId !== undefined && callId !== block['id'] && isCall(block)) {
    edits.push({ key: 'id', json: JSON.stringify(callId) });
  }
  return edits.length === 0 ? text : patchMembers(text, scanMembers(text), edits);
}

function isCall({ type }: Fields): boolean {
  return type === 'tool_use';
}

/** The text of an answer's content with each block completed; `callIds` are the ids of its calls in order. */
export function completeContent(text: string, values: readonly unknown[], callIds: readonly string[] = []): string {
  let calls = 0;
  const idOf = (value: unknown) => (isCall(fieldsOf(value)) ? callIds[calls++] : undefined);
  let result = '';
  let from = 0;
  scanElements(text, values.length).forEach(({ start, end }, index) => {
    result += text.slice(from, start) + completeBlock(text.slice(start, end), values[index], idOf(values[index]));
    from = end;
  });
  return result + text.slice(from);
}

/** These counts are never null. */
const COUNTS = ['input_tokens', 'output_tokens'];
const DETAILS = ['cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens_details', 'server_tool_use'];
/** Members that only complete answers and opening events have. */
const OPENING = ['cache_creation', 'inference_geo', 'service_tier'];

/** Adds missing counts: from `usage` where known, otherwise null. */
export function missingCounts(value: Fields, usage: Usage | undefined, opening: boolean): Edit[] {
  const known: Fields = encodeUsage(usage);
  if (!usage?.reasoning) known['output_tokens_details'] = null;
  if (usage?.webSearches === undefined && usage?.webFetches === undefined) known['server_tool_use'] = null;
  const edits: Edit[] = [];
  // A zero is ignored where more is known: services that count the prompt at the start send zeros at the end.
  const stands = (key: string): boolean => value[key] !== 0 || !known[key];
  for (const key of COUNTS) {
    const count = value[key];
    const told = typeof count === 'number' && !isImpossibleCount(count) && stands(key);
    if (!told) edits.push({ key, json: JSON.stringify(known[key]) });
  }
  for (const key of opening ? [...DETAILS, ...OPENING] : DETAILS) {
    if (value[key] === undefined || !stands(key)) edits.push({ key, json: JSON.stringify(known[key] ?? null) });
  }
  return edits;
}
