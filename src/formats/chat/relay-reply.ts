/** Relays a complete answer: the upstream's text with the gateway's members, repaired where it violates the format. */
import { type Member, scanMembers, stringifyJson } from '../../base/json.ts';
import { type Edit, type Splice, spliced, splicesOf } from '../../base/json-edits.ts';
import { scanElements } from '../../base/json-list.ts';
import type { Choice, Part } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, isTime, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { RelayedAnswer } from '../conversation/format.ts';
import { joinedText } from './content.ts';
import { shownFinish } from './finish.ts';
import { NEVER_NULL } from './nulls.ts';
import { relayedUsage } from './usage.ts';

export function relayReply({ text, value, turn, stamp, closing }: RelayedAnswer): string {
  const reply = fieldsOf(value);
  const members = scanMembers(text);
  const edits: Edit[] = [
    { key: 'id', json: JSON.stringify(stamp.id) },
    { key: 'object', json: '"chat.completion"' },
    { key: 'model', json: JSON.stringify(stamp.model) },
    { key: 'provider', json: JSON.stringify(stamp.provider) },
  ];
  const created = reply['created'];
  if (!isTime(created)) edits.push({ key: 'created', json: String(turn.created ?? stamp.created) });
  // Clients always get this member, null if need be.
  if (reply['system_fingerprint'] === undefined) edits.push({ key: 'system_fingerprint', json: 'null' });
  const usage = relayedUsage(closing);
  if (usage !== undefined) edits.push({ key: 'usage', json: stringifyJson(usage) });
  if (closing.metadata !== undefined) {
    edits.push({ key: closing.metadata.key, json: stringifyJson(closing.metadata.value) });
  }
  const splices = splicesOf(text, members, edits);
  const choices = members.findLast((member) => member.key === 'choices');
  if (choices === undefined) return spliced(text, splices);
  const inside = choicesSplices(text, choices, listOf(reply['choices']), turn.choices);
  return spliced(text, inOrder(splices, choices, inside));
}

/** Orders the splices: those before the member, those inside it, then those after it. */
function inOrder(around: Splice[], { valueEnd }: Member, inside: readonly Splice[]): Splice[] {
  if (inside.length === 0) return around;
  let at = 0;
  while (at < around.length && around[at]!.start < valueEnd) at += 1;
  around.splice(at, 0, ...inside);
  return around;
}

function choicesSplices(
  text: string,
  { valueStart, valueEnd }: Member,
  values: readonly unknown[],
  choices: readonly Choice[],
): Splice[] {
  const splices: Splice[] = [];
  const elements = scanElements(text, values.length, valueStart, valueEnd);
  for (let index = 0; index < elements.length; index += 1) {
    const value = fieldsOrUndefined(values[index]);
    const choice = choices[index];
    if (value === undefined || choice === undefined) continue;
    splices.push(...choiceSplices(text, elements[index]!, value, choice, index));
  }
  return splices;
}

/** The repairs of the choice between two offsets. */
function choiceSplices(
  text: string,
  { start: from, end }: { start: number; end: number },
  value: Fields,
  choice: Choice,
  position: number,
): Splice[] {
  const shown = shownFinish(choice.finish);
  const edits: Edit[] = [];
  if (!Number.isInteger(value['index'])) edits.push({ key: 'index', json: String(position) });
  if (value['finish_reason'] !== shown) edits.push({ key: 'finish_reason', json: JSON.stringify(shown) });
  if (value['native_finish_reason'] === undefined) {
    edits.push({ key: 'native_finish_reason', json: JSON.stringify(choice.finish.native) });
  }
  if (value['logprobs'] === undefined) edits.push({ key: 'logprobs', json: 'null' });
  const told = fieldsOrUndefined(value['message']);
  if (told === undefined) {
    edits.push({ key: 'message', json: '{"role":"assistant","content":null,"refusal":null}' });
    return splicesOf(text, scanMembers(text, from), edits, from);
  }
  const repairs = messageEdits(told, choice.parts);
  if (repairs.length === 0 && edits.every(({ key }) => value[key] === undefined)) return additions(text, end, edits);
  const members = scanMembers(text, from);
  const message = members.findLast((member) => member.key === 'message')!;
  const inside = splicesOf(text, scanMembers(text, message.valueStart), repairs, message.valueStart);
  return inOrder(splicesOf(text, members, edits, from), message, inside);
}

/** Adds members to the object that ends at `end` and has others. Most answers need no other change, and no search for members. */
function additions(text: string, end: number, edits: readonly Edit[]): Splice[] {
  if (edits.length === 0) return [];
  let at = end - 1;
  while (text.charCodeAt(at - 1) <= 0x20) at -= 1;
  let added = '';
  for (const { key, json } of edits) added += `,"${key}":${json}`;
  return [{ start: at, end: at, text: added }];
}

function messageEdits(message: Fields, parts: readonly Part[]): Edit[] {
  const edits: Edit[] = [];
  if (message['role'] !== 'assistant') edits.push({ key: 'role', json: '"assistant"' });
  const { content } = message;
  const tagged = typeof content === 'string' && content.includes('</think>') && joinedText(parts) !== content;
  if (tagged || (content !== null && content !== undefined && typeof content !== 'string')) {
    edits.push({ key: 'content', json: JSON.stringify(joinedText(parts)) });
  }
  // Clients always get both members, null if need be; many services leave one out.
  for (const key of ['content', 'refusal']) if (message[key] === undefined) edits.push({ key, json: 'null' });
  const reasoning = parts.reduce((joined, part) => (part.type === 'reasoning' ? joined + part.text : joined), '');
  if (reasoning !== '' && nonEmptyText(message['reasoning']) === undefined) {
    edits.push({ key: 'reasoning', json: JSON.stringify(reasoning) });
  }
  for (const key of NEVER_NULL) if (key !== 'role' && message[key] === null) edits.push({ key, json: undefined });
  const calls = listOf(message['tool_calls']);
  if (calls.length > 0 && (!calls.every(isStandardCall) || !haveIdsOf(calls, parts)))
    edits.push({ key: 'tool_calls', json: stringifyJson(mendedCalls(calls, parts)) });
  return edits;
}

function isStandardCall(value: unknown): boolean {
  const call = fieldsOf(value);
  if (nonEmptyText(call['id']) === undefined) return false;
  if (call['type'] === 'custom') return true;
  const body = fieldsOrUndefined(call['function']);
  return (
    call['type'] === 'function' &&
    nonEmptyText(body?.['name']) !== undefined &&
    nonEmptyText(body?.['arguments']) !== undefined
  );
}

/** Whether the decoder kept the calls' ids: it changes ids that are not distinct. */
function haveIdsOf(calls: readonly unknown[], parts: readonly Part[]): boolean {
  const ids = parts.flatMap((part) => (part.type === 'toolCall' ? part.id : []));
  return calls.every((call, index) => fieldsOrUndefined(call)?.['id'] === ids[index]);
}

/** Completes calls with a missing id, type or arguments text. */
function mendedCalls(calls: readonly unknown[], parts: readonly Part[]): Fields[] {
  const read = parts.filter((part) => part.type === 'toolCall');
  // The decoder skipped calls without a name.
  const named = calls.filter((value) => {
    const call = fieldsOrUndefined(value);
    return (
      nonEmptyText((fieldsOrUndefined(call?.['function']) ?? fieldsOrUndefined(call?.['custom']))?.['name']) !==
      undefined
    );
  });
  return named.flatMap((value, index) => {
    const call = fieldsOrUndefined(value);
    const part = read[index];
    if (call === undefined || part === undefined) return [];
    if (part.custom) return [{ ...call, id: part.id }];
    const body = { ...fieldsOrUndefined(call['function']), name: part.name, arguments: part.arguments || '{}' };
    return [{ ...call, id: part.id, type: 'function', function: body }];
  });
}
