/** The contents of a client's request as messages. */
import { invalidField } from '../../base/errors.ts';
import { stringifyJson } from '../../base/json.ts';
import type { Message, Part, ReasoningPart, ToolCallPart, ToolResultPart } from '../conversation/conversation.ts';
import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  nonEmptyText,
  textOf,
  textOrUndefined,
} from '../conversation/fields.ts';
import { decodeMedium } from './decode-media.ts';
import { camelCase, listMember, member, objectMember } from './names.ts';
import { GOOGLE, unseal } from './thought-seal.ts';

const ROLES = new Set(['user', 'model', 'function']);
/** The contents that a part may hold; it has exactly one, as at Google. */
const CONTENTS = new Set([
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
]);

/** @throws GatewayError 400 with the path of the invalid field */
export function decodeContents(contents: readonly unknown[]): Message[] {
  const calls = new Calls(contents);
  const messages: Message[] = [];
  contents.forEach((value, index) => {
    const at = `contents[${index}]`;
    if (!isFields(value)) throw invalidField(at, 'must be an object');
    const role = value['role'] ?? 'user';
    if (typeof role !== 'string' || !ROLES.has(role)) throw invalidField(`${at}.role`, 'must be user or model');
    const parts = listMember(value, 'parts', `${at}.parts`).map((part, place) => {
      const path = `${at}.parts[${place}]`;
      if (!isFields(part)) throw invalidField(path, 'must be an object');
      checkPart(part, path);
      return { part, at: path };
    });
    if (role === 'model') addModelTurn(messages, parts, calls);
    else messages.push(...userMessages(parts, calls));
  });
  return messages;
}

interface Placed {
  part: Fields;
  at: string;
}

/** @throws GatewayError 400 for a second content, which would be lost, and for a text that is not a string */
export function checkPart(part: Fields, at: string): void {
  let content: string | undefined;
  for (const [name, value] of Object.entries(part)) {
    if (value === null || value === '' || !CONTENTS.has(camelCase(name))) continue;
    if (content !== undefined) throw invalidField(`${at}.${name}`, `cannot be used together with ${content}`);
    if (name === 'text' && typeof value !== 'string') throw invalidField(`${at}.text`, 'must be a string');
    content = name;
  }
}

/**
 * Calls without an id get one, and responses without an id belong to the next open call of their name. No two open
 * calls have the same id.
 */
class Calls {
  readonly #open: { id: string; given: string | undefined; name: string }[] = [];
  readonly #given: ReadonlySet<string>;
  #made = 0;

  constructor(contents: readonly unknown[]) {
    this.#given = new Set(callIds(contents));
  }

  made(value: unknown, name: string): string {
    const given = nonEmptyText(value);
    const id = given === undefined || this.#open.some((call) => call.id === given) ? this.#newId() : given;
    this.#made += 1;
    this.#open.push({ id, given, name });
    return id;
  }

  answered(value: unknown, name: string): string | undefined {
    const given = nonEmptyText(value);
    const isNamed = (call: { name: string }) => call.name === name;
    const isGiven = (call: { given: string | undefined }) => call.given === given;
    const exact = this.#open.findIndex((call) => isNamed(call) && isGiven(call));
    const at = exact === -1 ? this.#open.findIndex(given === undefined ? isNamed : isGiven) : exact;
    if (at === -1) return undefined;
    return this.#open.splice(at, 1)[0]!.id;
  }

  #newId(): string {
    let id = `call_${this.#made}`;
    while (this.#given.has(id)) id += '_';
    return id;
  }
}

/** Ids that the client gave to calls. */
export function callIds(contents: readonly unknown[]): string[] {
  return contents.flatMap(partsOf).flatMap((part) => nonEmptyText(fieldsOf(member(part, 'functionCall'))['id']) ?? []);
}

/** The parts of a content, whatever is wrong with them. */
export function partsOf(content: unknown): Fields[] {
  const { parts } = fieldsOf(content);
  return isFields(parts) ? [parts] : listOf(parts).map(fieldsOf);
}

/** Clients keep each event of a stream as a content of its own, so contents of the model in a row are one message. */
function addModelTurn(messages: Message[], placed: readonly Placed[], calls: Calls): void {
  const before = messages.at(-1);
  const parts = before?.role === 'assistant' ? before.parts : [];
  for (const { part, at } of placed) addModelPart(parts, part, at, calls);
  // Only Google signs calls and texts, after thoughts that have no signature of their own.
  const isGoogles = parts.some(
    (part) =>
      (part.type === 'reasoning' && part.origin === GOOGLE) ||
      (part.type === 'toolCall' && part.signature?.origin === GOOGLE),
  );
  if (isGoogles) for (const part of parts) if (isOpen(part)) part.origin = GOOGLE;
  if (before?.parts !== parts && parts.length > 0) messages.push({ role: 'assistant', parts });
}

function addModelPart(parts: Part[], part: Fields, at: string, calls: Calls): void {
  const text = textOrUndefined(part['text']);
  const signature = nonEmptyText(member(part, 'thoughtSignature'));
  const call = member(part, 'functionCall');
  const isThought = part['thought'] === true;
  if (call !== undefined) {
    parts.push(decodeCall(call, signature, at, calls));
  } else if (text !== undefined) {
    if (text !== '') addText(parts, text, isThought);
    if (signature !== undefined) addSignature(parts, signature, isThought);
  } else {
    const medium = isThought ? undefined : decodeMedium(part, at);
    parts.push(medium ?? { type: 'opaque', origin: 'gemini', value: part });
    if (medium !== undefined && signature !== undefined) addSignature(parts, signature, false);
  }
}

/** The format marks no boundaries between parts: pieces of one kind are one part. */
function addText(parts: Part[], text: string, isThought: boolean): void {
  const last = parts.at(-1);
  if (isThought) {
    if (last !== undefined && isOpen(last)) last.text += text;
    else parts.push({ type: 'reasoning', text, origin: 'unknown' });
  } else if (last?.type === 'text') last.text += text;
  else parts.push({ type: 'text', text });
}

/** A thought that a later signature may belong to. */
function isOpen(part: Part): part is ReasoningPart {
  return part.type === 'reasoning' && part.signature === undefined && part.encrypted === undefined;
}

function addSignature(parts: Part[], signature: string, isThought: boolean): void {
  const sealed = unseal(signature);
  if (sealed !== undefined && 'block' in sealed) {
    parts.push(sealed.block);
    return;
  }
  const last = parts.at(-1);
  const thought = isThought && last !== undefined && isOpen(last) ? last : undefined;
  if (sealed !== undefined) {
    const { reasoning } = sealed;
    if (thought === undefined) parts.push(reasoning);
    else parts[parts.length - 1] = { ...reasoning, text: reasoning.text || thought.text };
  } else if (thought !== undefined) Object.assign(thought, { signature, origin: GOOGLE });
  else parts.push({ type: 'reasoning', text: '', signature, origin: GOOGLE });
}

function decodeCall(value: unknown, signature: string | undefined, at: string, calls: Calls): ToolCallPart {
  if (!isFields(value)) throw invalidField(`${at}.functionCall`, 'must be an object');
  const name = textOf(value['name']);
  if (name === '') throw invalidField(`${at}.functionCall.name`, 'must be a non-empty string');
  const args = objectMember(value, 'args', `${at}.functionCall.args`);
  const part: ToolCallPart = {
    type: 'toolCall',
    id: calls.made(value['id'], name),
    name,
    arguments: stringifyJson(args),
  };
  if (signature === undefined) return part;
  const sealed = unseal(signature);
  if (sealed === undefined) part.signature = { value: signature, origin: GOOGLE };
  else if ('reasoning' in sealed && sealed.reasoning.signature !== undefined) {
    part.signature = { value: sealed.reasoning.signature, origin: sealed.reasoning.origin };
  }
  return part;
}

/** First the results, which must directly follow their calls, then the rest. */
function userMessages(placed: readonly Placed[], calls: Calls): Message[] {
  const results: Part[] = [];
  const parts: Part[] = [];
  for (const { part, at } of placed) {
    const response = member(part, 'functionResponse');
    if (response !== undefined) results.push(decodeResult(response, at, calls));
    else if (typeof part['text'] === 'string') {
      if (part['text'] !== '') parts.push({ type: 'text', text: part['text'] });
    } else parts.push(decodeMedium(part, at) ?? unknownPart(part, at));
  }
  return [
    ...(results.length > 0 ? [{ role: 'tool' as const, parts: results }] : []),
    ...(parts.length > 0 ? [{ role: 'user' as const, parts }] : []),
  ];
}

function unknownPart(part: Fields, at: string): Part {
  if (Object.keys(part).length === 0) {
    throw invalidField(at, 'must have text, inlineData, fileData or functionResponse');
  }
  return { type: 'opaque', origin: 'gemini', value: part };
}

function decodeResult(value: unknown, at: string, calls: Calls): ToolResultPart {
  const path = `${at}.functionResponse`;
  if (!isFields(value)) throw invalidField(path, 'must be an object');
  const callId = calls.answered(value['id'], textOf(value['name']));
  if (callId === undefined) throw invalidField(path, 'answers no function call of the contents before it');
  const response = objectMember(value, 'response', `${path}.response`);
  const media = listOf(value['parts']).map((part, index) => {
    // Google has none here, but the gateway puts the text of a document in its place.
    const text = textOrUndefined(fieldsOf(part)['text']);
    if (text !== undefined) return { type: 'text' as const, text };
    const medium = decodeMedium(fieldsOf(part), `${path}.parts[${index}]`);
    if (medium === undefined) throw invalidField(`${path}.parts[${index}]`, 'must have inlineData or fileData');
    return medium;
  });
  const { error, isPlain, text } = saidIn(response);
  return {
    type: 'toolResult',
    callId,
    parts: [{ type: 'text', text }, ...media],
    ...(error && { isError: true }),
    // A service of this format gets the object, all others its text.
    ...(!isPlain && { extras: { gemini: { response } } }),
  };
}

/** `output` alone is the result itself; `error` alone means that the call failed. */
function saidIn(response: Fields): { text: string; error: boolean; isPlain: boolean } {
  const [name, ...others] = Object.keys(response);
  const alone = others.length === 0 && (name === 'output' || name === 'error') ? name : undefined;
  const value = alone === undefined ? response : response[alone];
  const isPlain = alone !== undefined && typeof value === 'string';
  return { text: isPlain ? (value as string) : stringifyJson(value), error: alone === 'error', isPlain };
}
