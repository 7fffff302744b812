/** A relayed whole answer: the upstream's text with our members, and with the parts mended that break the form. */
import { type Edit, patchMembers, scanMembers, stringifyJson } from '../../base/json.ts';
import { scanElements } from '../../base/json-list.ts';
import type { Choice, Part, Turn } from '../conversation/conversation.ts';
import type { Closing, Stamp } from '../conversation/format.ts';
import { joinedText } from './content.ts';
import { shownFinish } from './finish.ts';
import { NEVER_NULL } from './nulls.ts';
import { isTime, type JsonObject, list, object, someText } from './read.ts';
import { relayedUsage } from './usage.ts';

export function relayReply(text: string, value: unknown, turn: Turn, stamp: Stamp, closing: Closing): string {
  const reply = object(value) ?? {};
  const members = scanMembers(text);
  const edits: Edit[] = [
    { key: 'id', json: JSON.stringify(stamp.id) },
    { key: 'object', json: '"chat.completion"' },
    { key: 'model', json: JSON.stringify(stamp.model) },
    { key: 'provider', json: JSON.stringify(stamp.provider) },
  ];
  const created = reply['created'];
  if (!isTime(created)) edits.push({ key: 'created', json: String(turn.created ?? stamp.created) });
  // Promised to every client, if as null.
  if (reply['system_fingerprint'] === undefined) edits.push({ key: 'system_fingerprint', json: 'null' });
  const usage = relayedUsage(closing);
  if (usage !== undefined) edits.push({ key: 'usage', json: stringifyJson(usage) });
  const choices = members.findLast((member) => member.key === 'choices');
  if (choices !== undefined) {
    const json = patchChoices(text.slice(choices.valueStart, choices.valueEnd), list(reply['choices']), turn.choices);
    edits.push({ key: 'choices', json });
  }
  if (closing.metadata !== undefined) {
    edits.push({ key: closing.metadata.key, json: stringifyJson(closing.metadata.value) });
  }
  return patchMembers(text, members, edits);
}

function patchChoices(text: string, values: readonly unknown[], choices: readonly Choice[]): string {
  let result = '';
  let from = 0;
  scanElements(text, values.length).forEach(({ start, end }, index) => {
    const value = object(values[index]);
    const choice = choices[index];
    if (value === undefined || choice === undefined) return;
    result += text.slice(from, start) + patchChoice(text.slice(start, end), value, choice, index);
    from = end;
  });
  return result + text.slice(from);
}

function patchChoice(text: string, value: JsonObject, choice: Choice, position: number): string {
  const members = scanMembers(text);
  const shown = shownFinish(choice.finish);
  const edits: Edit[] = [];
  if (!Number.isInteger(value['index'])) edits.push({ key: 'index', json: String(position) });
  if (value['finish_reason'] !== shown) edits.push({ key: 'finish_reason', json: JSON.stringify(shown) });
  if (value['native_finish_reason'] === undefined) {
    edits.push({ key: 'native_finish_reason', json: JSON.stringify(choice.finish.native) });
  }
  if (value['logprobs'] === undefined) edits.push({ key: 'logprobs', json: 'null' });
  const message = members.findLast((member) => member.key === 'message');
  const told = object(value['message']);
  if (message === undefined || told === undefined) {
    edits.push({ key: 'message', json: '{"role":"assistant","content":null,"refusal":null}' });
  } else {
    const json = patchMessage(text.slice(message.valueStart, message.valueEnd), told, choice.parts);
    edits.push({ key: 'message', json });
  }
  return patchMembers(text, members, edits);
}

function patchMessage(text: string, message: JsonObject, parts: readonly Part[]): string {
  const edits: Edit[] = [];
  if (message['role'] !== 'assistant') edits.push({ key: 'role', json: '"assistant"' });
  const { content } = message;
  const tagged = typeof content === 'string' && content.includes('</think>') && joinedText(parts) !== content;
  if (tagged || (content !== null && content !== undefined && typeof content !== 'string')) {
    edits.push({ key: 'content', json: JSON.stringify(joinedText(parts)) });
  }
  // Clients are promised both, if as null; many services leave one out.
  for (const key of ['content', 'refusal']) if (message[key] === undefined) edits.push({ key, json: 'null' });
  const reasoning = parts.reduce((joined, part) => (part.type === 'reasoning' ? joined + part.text : joined), '');
  if (reasoning !== '' && someText(message['reasoning']) === undefined) {
    edits.push({ key: 'reasoning', json: JSON.stringify(reasoning) });
  }
  for (const key of NEVER_NULL) if (key !== 'role' && message[key] === null) edits.push({ key, json: undefined });
  const calls = list(message['tool_calls']);
  if (!calls.every(isStandardCall)) edits.push({ key: 'tool_calls', json: stringifyJson(mendedCalls(calls, parts)) });
  return edits.length === 0 ? text : patchMembers(text, scanMembers(text), edits);
}

function isStandardCall(value: unknown): boolean {
  const call = object(value) ?? {};
  if (someText(call['id']) === undefined) return false;
  if (call['type'] === 'custom') return true;
  const body = object(call['function']);
  return (
    call['type'] === 'function' && someText(body?.['name']) !== undefined && someText(body?.['arguments']) !== undefined
  );
}

/** Calls with what they lack: an id, a type, arguments that are a JSON text. */
function mendedCalls(calls: readonly unknown[], parts: readonly Part[]): JsonObject[] {
  const read = parts.filter((part) => part.type === 'toolCall');
  // Those without a name were not read either.
  const named = calls.filter((value) => {
    const call = object(value);
    return someText((object(call?.['function']) ?? object(call?.['custom']))?.['name']) !== undefined;
  });
  return named.flatMap((value, index) => {
    const call = object(value);
    const part = read[index];
    if (call === undefined || part === undefined) return [];
    if (part.custom) return [{ ...call, id: part.id }];
    const body = { ...object(call['function']), name: part.name, arguments: part.arguments || '{}' };
    return [{ ...call, id: part.id, type: 'function', function: body }];
  });
}
