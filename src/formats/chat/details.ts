/**
 * Reasoning in chat messages, decoded and encoded: `reasoning_details`, the plain text in `reasoning` or
 * `reasoning_content`, and Mistral's thinking parts in the content.
 *
 * Reasoning survives a round trip: entries with the same index and id form one part, so a client that sends the details
 * of an answer back unchanged (whole, or collected delta by delta) reproduces the original parts
 * (mnfst/llm-gateway#1658).
 */
import type { OpaquePart, Part, ReasoningOrigin, ReasoningPart } from '../conversation/conversation.ts';
import { type Fields, fieldsOrUndefined, listOf, nonEmptyText, restOf, textOf } from '../conversation/fields.ts';
import { sealBlock, unsealBlock } from '../conversation/sealed-block.ts';

const ORIGINS: ReadonlySet<unknown> = new Set<ReasoningOrigin>([
  'unknown',
  'anthropic-claude-v1',
  'openai-responses-v1',
  'azure-openai-responses-v1',
  'bedrock-openai-responses-v1',
  'bedrock-xai-responses-v1',
  'xai-responses-v1',
  'meta-responses-v1',
  'google-gemini-v1',
]);

export function originOf(format: unknown): ReasoningOrigin {
  return ORIGINS.has(format) ? (format as ReasoningOrigin) : 'unknown';
}

const KNOWN: ReadonlySet<string> = new Set(['type', 'text', 'summary', 'data', 'signature', 'format', 'id', 'index']);

/** One decoded entry. `kind` is undefined for other types of entry (a past server tool call). */
interface Detail {
  kind: 'text' | 'summary' | 'encrypted' | undefined;
  /** Entries with the same key are pieces of one part; '' when the entry is a part on its own. */
  key: string;
  text: string;
  signature?: string;
  encrypted?: string;
  id?: string;
  origin: ReasoningOrigin;
  value: Fields;
}

export function readDetail(entry: unknown): Detail | undefined {
  const value = fieldsOrUndefined(entry);
  if (value === undefined) return undefined;
  const kind = (
    { 'reasoning.text': 'text', 'reasoning.summary': 'summary', 'reasoning.encrypted': 'encrypted' } as const
  )[textOf(value['type'])];
  const id = nonEmptyText(value['id']);
  const index = value['index'];
  const detail: Detail = {
    kind,
    key: typeof index === 'number' ? `${index} ${id ?? ''}` : '',
    text: textOf(kind === 'summary' ? value['summary'] : value['text']),
    origin: originOf(value['format']),
    value,
  };
  if (typeof value['signature'] === 'string') detail.signature = value['signature'];
  if (typeof value['data'] === 'string') detail.encrypted = value['data'];
  if (id !== undefined) detail.id = id;
  return detail;
}

/** The reasoning of a complete message, in order. `signatures` maps call ids to the signatures bound to them. */
export function decodeReasoning(message: Fields, callIds: ReadonlySet<string>) {
  const parts: Part[] = [];
  const signatures = new Map<string, { value: string; origin: ReasoningOrigin }>();
  let key = '';
  let told = false;
  for (const entry of listOf(message['reasoning_details'])) {
    const detail = readDetail(entry);
    if (detail === undefined) continue;
    const block = blockOf(detail);
    if (block !== undefined) {
      parts.push(block);
      key = '';
    } else if (detail.kind === 'encrypted' && detail.id !== undefined && callIds.has(detail.id)) {
      signatures.set(detail.id, { value: detail.encrypted ?? '', origin: detail.origin });
    } else {
      told ||= detail.text !== '';
      const last = parts.at(-1);
      if (last?.type === 'reasoning' && detail.key !== '' && detail.key === key) addDetail(last, detail);
      else parts.push(newPart(detail));
      key = detail.key;
    }
  }
  // `reasoning` repeats the text of the details; it is used only when the details have no text.
  const plain = nonEmptyText(message['reasoning']) ?? nonEmptyText(message['reasoning_content']);
  if (!told && plain !== undefined) parts.unshift({ type: 'reasoning', text: plain, origin: 'unknown' });
  return { parts, signatures };
}

function newPart(detail: Detail): ReasoningPart {
  const part: ReasoningPart = { type: 'reasoning', text: '', origin: detail.origin };
  if (detail.id !== undefined) part.id = detail.id;
  const others = restOf(detail.value, KNOWN);
  if (others !== undefined) part.extras = { chat: others };
  addDetail(part, detail);
  return part;
}

function addDetail(part: ReasoningPart, detail: Detail): void {
  part.text += detail.text;
  if (detail.kind === 'summary') part.summary = true;
  if (detail.signature !== undefined) part.signature = (part.signature ?? '') + detail.signature;
  if (detail.encrypted !== undefined) part.encrypted = (part.encrypted ?? '') + detail.encrypted;
}

/** The entries of one part; two when it has both text and encrypted content. */
export function encodeDetails(part: ReasoningPart, index: number): Fields[] {
  const entries: Fields[] = [];
  const common: Fields = { format: part.origin, index };
  if (part.id !== undefined) common['id'] = part.id;
  if (part.text !== '' || part.signature !== undefined || part.encrypted === undefined) {
    const entry: Fields = part.summary
      ? { type: 'reasoning.summary', summary: part.text, ...common }
      : { type: 'reasoning.text', text: part.text, ...common };
    if (part.signature !== undefined) entry['signature'] = part.signature;
    entries.push({ ...entry, ...part.extras?.chat });
  }
  if (part.encrypted !== undefined) {
    const extras = entries.length === 0 ? part.extras?.chat : undefined;
    entries.push({ type: 'reasoning.encrypted', data: part.encrypted, ...common, ...extras });
  }
  return entries;
}

/** The entry that carries a call's signature (Gemini's thought signature). */
export function encodeCallSignature(
  callId: string,
  signature: { value: string; origin: ReasoningOrigin },
  index: number,
) {
  return { type: 'reasoning.encrypted', data: signature.value, format: signature.origin, index, id: callId };
}

/** The block in an entry that is not reasoning: one of the chat format, or a sealed block of another format. */
export function blockOf(detail: Detail): OpaquePart | undefined {
  if (detail.kind === undefined) return { type: 'opaque', origin: 'chat', value: detail.value };
  return detail.encrypted === undefined ? undefined : unsealBlock(detail.encrypted);
}

/** The entry that carries a block, sealed if it is of another format; undefined for blocks that belong elsewhere. */
export function encodeBlock(part: OpaquePart, index: number): Fields | undefined {
  if (part.value === undefined) return undefined;
  if (part.origin !== 'chat') return { type: 'reasoning.encrypted', data: sealBlock(part), format: 'unknown', index };
  if (!isDetailEntry(part.value)) return undefined;
  const entry = part.value as Fields;
  return entry['type'] === 'reasoning.server_tool_call' && !('index' in entry) ? { ...entry, index } : entry;
}

/** Whether an opaque part's value is an entry of `reasoning_details` (a past server tool call). */
export function isDetailEntry(value: unknown): boolean {
  return textOf(fieldsOrUndefined(value)?.['type']).startsWith('reasoning.');
}

/** Mistral's `{type: 'thinking', thinking: [{type: 'text', text}] | string}`. */
export function decodeThinking(part: Fields): ReasoningPart[] {
  const thinking = part['thinking'];
  let told = textOf(thinking);
  for (const piece of listOf(thinking))
    told += typeof piece === 'string' ? piece : textOf(fieldsOrUndefined(piece)?.['text']);
  const signature = nonEmptyText(part['signature']);
  if (told === '' && signature === undefined) return [];
  return [{ type: 'reasoning', text: told, origin: 'unknown', ...(signature !== undefined && { signature }) }];
}
