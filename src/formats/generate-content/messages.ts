/** The contents of a request as chat messages. */
import { invalidField } from '../../base/errors.ts';
import { stringifyJson } from '../../base/json.ts';
import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  nonEmptyText,
  textOf,
  textOrUndefined,
} from '../conversation/fields.ts';
import { dataUrl, mediaPart } from './media.ts';
import { member, objectMember } from './names.ts';
import { callEntry, entryOf, GOOGLE } from './signature.ts';

const ROLES = new Set(['user', 'model', 'function']);

export function messagesOf(contents: readonly unknown[]): Fields[] {
  const calls = new Calls();
  return contents.flatMap((value, index) => {
    const { role = 'user', parts } = fieldsOf(value);
    const at = `contents[${index}]`;
    if (typeof role !== 'string' || !ROLES.has(role)) throw invalidField(`${at}.role`, 'must be user or model');
    const list = listOf(parts).map((part, place) => {
      if (!isFields(part)) throw invalidField(`${at}.parts[${place}]`, 'must be an object');
      return { part, at: `${at}.parts[${place}]` };
    });
    return role === 'model' ? modelMessage(list, calls) : userMessages(list, calls);
  });
}

interface Placed {
  part: Fields;
  at: string;
}

/** Calls without an id get one, and responses without an id belong to the next open call of their name. */
class Calls {
  readonly #open: { id: string; name: string }[] = [];
  #made = 0;

  made(given: unknown, name: string): string {
    const id = nonEmptyText(given) ?? `call_${this.#made}`;
    this.#made += 1;
    this.#open.push({ id, name });
    return id;
  }

  answered(given: unknown, name: string): string | undefined {
    const id = nonEmptyText(given);
    const at = this.#open.findIndex((call) => (id === undefined ? call.name === name : call.id === id));
    if (at === -1) return undefined;
    return this.#open.splice(at, 1)[0]!.id;
  }
}

function modelMessage(parts: readonly Placed[], calls: Calls): Fields[] {
  const content: Fields[] = [];
  const toolCalls: Fields[] = [];
  const details: Fields[] = [];
  const images: Fields[] = [];
  let thought = '';
  for (const { part, at } of parts) {
    const text = textOrUndefined(part['text']);
    const signature = nonEmptyText(member(part, 'thoughtSignature'));
    const call = member(part, 'functionCall');
    const inline = member(part, 'inlineData');
    if (isFields(call)) {
      const name = textOf(call['name']);
      if (name === '') throw invalidField(`${at}.functionCall.name`, 'must be a non-empty string');
      const args = objectMember(call, 'args', `${at}.functionCall.args`);
      const id = calls.made(call['id'], name);
      toolCalls.push({ id, type: 'function', function: { name, arguments: stringifyJson(args) } });
      if (signature !== undefined) details.push(callEntry(signature, id, details.length));
    } else if (text !== undefined) {
      if (part['thought'] === true) thought += text;
      else if (text !== '') content.push({ type: 'text', text });
      // A signature ends the thought before it.
      if (signature !== undefined) {
        details.push(entryOf(signature, part['thought'] === true ? thought : '', details.length));
        thought = '';
      }
    } else if (isFields(inline)) images.push({ type: 'image_url', image_url: { url: dataUrl(inline) } });
    else throw invalidField(at, `cannot be sent back to a model: ${kindsOf(part)}`);
  }
  // Only Google signs calls and texts after an unsigned thought.
  const format = details.some((entry) => entry['format'] === GOOGLE) ? GOOGLE : 'unknown';
  if (thought !== '') details.unshift({ ...entryOf(undefined, thought, details.length), format });
  const message = {
    role: 'assistant',
    content: content.length === 0 ? null : content.length === 1 ? content[0]!['text'] : content,
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    ...(images.length > 0 && { images }),
    ...(details.length > 0 && { reasoning_details: details }),
  };
  return message.content === null && Object.keys(message).length === 2 ? [] : [message];
}

/** First the results, which must directly follow their calls, then the rest. */
function userMessages(parts: readonly Placed[], calls: Calls): Fields[] {
  const results: Fields[] = [];
  const content: Fields[] = [];
  for (const { part, at } of parts) {
    const response = member(part, 'functionResponse');
    if (isFields(response)) results.push(resultOf(response, at, calls));
    else if (typeof part['text'] === 'string') {
      if (part['text'] !== '') content.push({ type: 'text', text: part['text'] });
    } else content.push(mediaPart(part, at));
  }
  const only = content.length === 1 && content[0]!['type'] === 'text' ? content[0]!['text'] : undefined;
  return content.length === 0 ? results : [...results, { role: 'user', content: only ?? content }];
}

function resultOf(response: Fields, at: string, calls: Calls): Fields {
  const path = `${at}.functionResponse`;
  const id = calls.answered(response['id'], textOf(response['name']));
  if (id === undefined) throw invalidField(path, 'answers no function call of the contents before it');
  const more = listOf(response['parts']).map((part, index) => mediaPart(fieldsOf(part), `${path}.parts[${index}]`));
  const said = resultText(response['response']);
  return {
    role: 'tool',
    tool_call_id: id,
    content: more.length === 0 ? said : [{ type: 'text', text: said }, ...more],
  };
}

/** `output` alone is the result itself. */
function resultText(response: unknown): string {
  const { output, ...others } = fieldsOf(response);
  const value = output !== undefined && Object.keys(others).length === 0 ? output : (response ?? {});
  return typeof value === 'string' ? value : stringifyJson(value);
}

function kindsOf(part: Fields): string {
  return Object.keys(part).slice(0, 5).join(', ') || 'it is empty';
}
