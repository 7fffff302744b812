/**
 * Adapts messages to a service's dialect, for both translated and relayed requests. Each message depends only on
 * earlier ones (except for the mark on the last), so a longer history starts with the same bytes.
 */
import { createHash } from 'node:crypto';
import { inputText, isObjectText } from '../conversation/call-input.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText, textOf } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';
import { boundedId } from '../conversation/tool-ids.ts';
import type { ChatDialect } from './dialect.ts';

/** @returns the same list (the usual case) when nothing changes */
export function adaptMessages(messages: Fields[], dialect: ChatDialect, losses: Losses): Fields[] {
  const { messageFields, prefill, answersTools, documentUrl } = dialect;
  const renameId = callIdRule(messages, dialect);
  const mendsCalls = !dialect.anyArguments && messages.some((message) => listOf(message['tool_calls']).length > 0);
  if (!messageFields && !renameId && !prefill && !answersTools && !documentUrl && !mendsCalls) return messages;
  let changed = false;
  const adapted: Fields[] = [];
  messages.forEach((original, index) => {
    if (answersTools && original['role'] === 'user' && adapted.at(-1)?.['role'] === 'tool') {
      adapted.push({ role: 'assistant', content: BRIDGE });
      changed = true;
    }
    let message = original;
    if (documentUrl) message = withDocumentUrls(message);
    if (messageFields) message = onlyFields(message, messageFields, losses);
    if (messageFields && isSilent(message)) {
      changed = true;
      return;
    }
    if (mendsCalls) message = withObjectArguments(message);
    if (renameId) message = withCallIds(message, renameId);
    if (prefill && index === messages.length - 1) message = marked(message, prefill);
    changed ||= message !== original;
    adapted.push(message);
  });
  return changed ? adapted : messages;
}

/** Services that want an assistant message between a tool and a user message reject an empty one. */
const BRIDGE = 'OK.';

const CALL_FIELDS: readonly string[] = ['id', 'type', 'function', 'custom'];

function onlyFields(message: Fields, fieldsByRole: NonNullable<ChatDialect['messageFields']>, losses: Losses): Fields {
  const fields = fieldsByRole[String(message['role'])];
  if (fields === undefined) return message;
  let kept = only(withSaidTexts(message, fields), fields);
  // Members without content are dropped silently: clients send back `refusal: null` as they received it.
  for (const [key, value] of Object.entries(message)) {
    if (!fields.includes(key) && key !== 'refusal' && saysSomething(value))
      losses.drop(`messages.${key}`, 'the upstream does not accept it');
  }
  const calls = listOf(kept['tool_calls']);
  const plain = calls.map((call) => only(fieldsOf(call), CALL_FIELDS));
  if (plain.some((call, index) => call !== calls[index])) kept = { ...kept, tool_calls: plain };
  return kept;
}

/**
 * Moves text of an assistant message that is outside of its content (a refusal, a transcript of audio) into the
 * content.
 */
function withSaidTexts(message: Fields, fields: readonly string[]): Fields {
  if (message['role'] !== 'assistant') return message;
  const { content } = message;
  const said: string[] = [];
  if (!fields.includes('refusal')) said.push(textOf(message['refusal']));
  if (!fields.includes('audio')) said.push(textOf(fieldsOf(message['audio'])['transcript']));
  const texts = said.filter((text) => text !== '');
  if (Array.isArray(content)) {
    const parts = content.map(plainPart);
    const same = texts.length === 0 && parts.every((part, index) => part === content[index]);
    return same ? message : { ...message, content: [...parts, ...texts.map((text) => ({ type: 'text', text }))] };
  }
  if (texts.length === 0) return message;
  return { ...message, content: [textOf(content), ...texts].filter((text) => text !== '').join('\n\n') };
}

function plainPart(part: unknown): unknown {
  const { type, refusal } = fieldsOf(part);
  return type === 'refusal' ? { type: 'text', text: textOf(refusal) } : part;
}

/** An assistant message without content and calls, which these services reject. */
function isSilent(message: Fields): boolean {
  if (message['role'] !== 'assistant') return false;
  return !saysSomething(message['content']) && !saysSomething(message['tool_calls']) && !message['function_call'];
}

/** Arguments that are no JSON object, such as those of a call that was cut off, make these services reject a history. */
function withObjectArguments(message: Fields): Fields {
  const calls = listOf(message['tool_calls']);
  let changed = false;
  const mended = calls.map((call) => {
    const called = fieldsOrUndefined(fieldsOrUndefined(call)?.['function']);
    const written = called?.['arguments'];
    if (typeof written !== 'string' || isObjectText(written)) return call;
    changed = true;
    const text = inputText({ type: 'toolCall', id: '', name: '', arguments: written });
    return { ...fieldsOf(call), function: { ...called, arguments: text } };
  });
  return changed ? { ...message, tool_calls: mended } : message;
}

function saysSomething(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

function only(value: Fields, fields: readonly string[]): Fields {
  const keys = Object.keys(value);
  if (keys.every((key) => fields.includes(key))) return value;
  return Object.fromEntries(keys.filter((key) => fields.includes(key)).map((key) => [key, value[key]]));
}

/** The longest call id that OpenAI accepts ("Expected a string with maximum length 40"). */
const LONGEST_ID = 40;

type IdRule = (id: string) => string;

/** How to rewrite call ids; undefined (the usual case) when they stay unchanged. */
function callIdRule(messages: readonly Fields[], dialect: ChatDialect): IdRule | undefined {
  if (dialect.nineCharacterIds) return nineCharacters;
  // Such a service translates ids itself, and its reasoning details refer to calls by id.
  if (dialect.reasoningDetails || !messages.some(hasLongId)) return undefined;
  return (id) => boundedId(id, LONGEST_ID, dialect.strictCallIds === true);
}

function hasLongId(message: Fields): boolean {
  const { tool_call_id: answered, tool_calls: calls } = message;
  if (typeof answered === 'string' && answered.length > LONGEST_ID) return true;
  return (
    Array.isArray(calls) &&
    calls.some((call) => (nonEmptyText(fieldsOrUndefined(call)?.['id']) ?? '').length > LONGEST_ID)
  );
}

function withCallIds(message: Fields, rename: IdRule): Fields {
  const answered = nonEmptyText(message['tool_call_id']);
  if (answered !== undefined) {
    const id = rename(answered);
    return id === answered ? message : { ...message, tool_call_id: id };
  }
  const calls = listOf(message['tool_calls']);
  let changed = false;
  const renamed = calls.map((call) => {
    const given = nonEmptyText(fieldsOrUndefined(call)?.['id']);
    if (given === undefined) return call;
    const id = rename(given);
    if (id === given) return call;
    changed = true;
    return { ...fieldsOrUndefined(call), id };
  });
  return changed ? { ...message, tool_calls: renamed } : message;
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Keeps an id that fits. Rewritten ids collide only with a probability of 62^-9. */
function nineCharacters(id: string): string {
  if (/^[A-Za-z0-9]{9}$/.test(id)) return id;
  let number = createHash('sha256').update(id).digest().readBigUInt64BE();
  let short = '';
  for (let count = 0; count < 9; count++) {
    short += DIGITS[Number(number % 62n)];
    number /= 62n;
  }
  return short;
}

function marked(message: Fields, mark: 'prefix' | 'partial'): Fields {
  if (message['role'] !== 'assistant' || mark in message || listOf(message['tool_calls']).length > 0) return message;
  return { ...message, [mark]: true };
}

function withDocumentUrls(message: Fields): Fields {
  const parts = listOf(message['content']);
  let changed = false;
  const rewritten = parts.map((part) => {
    const url = nonEmptyText(fieldsOrUndefined(fieldsOrUndefined(part)?.['file'])?.['file_data']);
    if (url === undefined) return part;
    changed = true;
    const name = nonEmptyText(fieldsOrUndefined(fieldsOrUndefined(part)?.['file'])?.['filename']);
    return { type: 'document_url', document_url: url, ...(name !== undefined && { document_name: name }) };
  });
  return changed ? { ...message, content: rewritten } : message;
}
