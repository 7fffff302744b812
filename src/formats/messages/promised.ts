/**
 * Members that this form promises in every answer (wire/messages.md, "yes" in the column of required ones) and that
 * services which speak it leave out, older ones most. A relayed answer gets those it lacks; what is there stays as it is.
 */
import { type Edit, patchMembers, scanMembers } from '../../base/json.ts';
import { scanElements } from '../../base/json-list.ts';
import type { Usage } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isImpossibleCount } from '../conversation/fields.ts';
import { encodeUsage } from './usage.ts';

/** JSON texts of what stands for an absent member. */
type Promised = Readonly<Record<string, string>>;

export const DELTA: Promised = { stop_reason: 'null', stop_sequence: 'null', stop_details: 'null', container: 'null' };

export const MESSAGE: Promised = { type: '"message"', role: '"assistant"', content: '[]', ...DELTA };

const BLOCKS: Readonly<Record<string, Promised>> = {
  // An empty list, although null may stand there: some clients take only a list.
  text: { text: '""', citations: '[]' },
  thinking: { thinking: '""', signature: '""' },
  // Not `caller`: a block's identity is the upstream's to tell, and it would have to be sent back to a service that may not know it.
  tool_use: { input: '{}' },
};

/** A block of a kind that has no name here may be a call as well: what the upstream says of its end stands then. */
export function isStrange(value: unknown): boolean {
  const type = String(fieldsOf(value)['type']);
  return !(type in BLOCKS) && type !== 'redacted_thinking';
}

export function missing(value: Fields, promised: Promised): Edit[] {
  const edits: Edit[] = [];
  for (const [key, json] of Object.entries(promised)) if (value[key] === undefined) edits.push({ key, json });
  return edits;
}

/** The text of a block with what it lacks, of a call with its id here; the same text when that is nothing. */
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

/** The text of a whole answer's content, each block completed; `callIds` are those of its calls in order. */
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

/** Never null. */
const COUNTS = ['input_tokens', 'output_tokens'];
const DETAILS = ['cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens_details', 'server_tool_use'];
/** Those that only a whole answer and an opening event have. */
const OPENING = ['cache_creation', 'inference_geo', 'service_tier'];

/** What a record of counts lacks: taken from what is known, null where nothing is. */
export function missingCounts(value: Fields, usage: Usage | undefined, opening: boolean): Edit[] {
  const known: Fields = encodeUsage(usage);
  if (!usage?.reasoning) known['output_tokens_details'] = null;
  if (usage?.webSearches === undefined && usage?.webFetches === undefined) known['server_tool_use'] = null;
  const edits: Edit[] = [];
  // A count of nothing says nothing where more is known: services that count a prompt at the start end with zeros.
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
