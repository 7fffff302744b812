/**
 * Every text of a request's body that reaches a model, whatever the form: all strings and all keys, unknown members
 * included, except for those that cannot be read as text (ids, sealed reasoning, media). Texts that stand inside of texts
 * (arguments in JSON, attachments in base64) are visited as what they say.
 */
import { isUtf8 } from 'node:buffer';
import { parseJson, stringifyJson } from '../../base/json.ts';

export interface TextVisitor {
  /**
   * One text. Returns what is to stand in its place, the same text for no change.
   * @param byUser false for what is certainly not written by the user (instructions, tools, the model's own turns)
   */
  text(text: string, byUser: boolean): string;
  /** Texts that a model reads as one; the same number comes back. Called before each of them is visited by itself. */
  neighbours(texts: readonly string[], byUser: boolean): readonly string[];
}

/** Members that say how to answer and are never part of what a model reads. */
const CONTROL = new Set(['model', 'models', 'provider', 'user', 'safety_identifier', 'service_tier']);
const IDS = new Set(['id', 'tool_call_id', 'tool_use_id', 'call_id', 'item_id', 'previous_response_id']);
const ID = /^[\w.:|=/+-]{1,256}$/;
/** Reasoning and media as their makers sealed or encoded them. */
const SEALED = new Set([
  'signature',
  'encrypted_content',
  'thought_signature',
  'thoughtSignature',
  'data',
  'file_data',
]);
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
/** Where the words of the forms themselves stand. */
const WORDED = new Set(['type', 'role', 'status', 'phase', 'object', 'format', 'detail']);
const WORDS = new Set(
  (
    'user assistant system developer tool function model text image_url input_text input_image input_file input_audio ' +
    'output_text refusal file image document audio_url video_url input_video tool_use tool_result server_tool_use thinking ' +
    'redacted_thinking function_call function_call_output message reasoning base64 url json_schema json_object ephemeral ' +
    'object string number integer boolean array null custom auto any none required enabled disabled adaptive ' +
    'item_reference summary_text completed in_progress incomplete content_block low high wav mp3 flac opus pcm16 ' +
    'reasoning.text reasoning.summary reasoning.encrypted uri email date date-time time uuid content search_result'
  ).split(' '),
);
/** Keys of the forms; any other key is a text as well. */
const KEYS = new Set(
  (
    'role content type text name id model messages input output instructions system tools tool_choice function parameters ' +
    'arguments description properties required items enum additionalProperties strict input_schema tool_calls tool_call_id ' +
    'tool_use_id call_id image_url url detail file filename file_data file_id input_audio data format source media_type ' +
    'cache_control ttl signature thinking reasoning reasoning_content reasoning_details encrypted_content summary prompt ' +
    'query documents metadata user max_tokens temperature top_p stream stream_options include_usage provider models ' +
    'response_format json_schema schema refusal annotations citations title context is_error status index'
  ).split(' '),
);
const NOT_BY_USER = new Set(['assistant', 'system', 'developer', 'tool', 'function', 'model']);
/** Members whose items or text are a user's unless a role says otherwise. */
const OF_USERS = new Set(['messages', 'input', 'prompt', 'query', 'documents', 'suffix']);

/** Shorter ones are settings and counts. */
const LONG_NUMBER = 1e7;

type Holder = Record<string, unknown> | unknown[];

/** Visits one top-level member of a body; returns its value, changed in place where the visitor wants it. */
export function visitMember(key: string, value: unknown, visitor: TextVisitor): unknown {
  if (CONTROL.has(key)) return value;
  const holder = { [key]: value };
  new Walk(visitor).member(holder, key, OF_USERS.has(key));
  return holder[key];
}

class Walk {
  readonly #visitor: TextVisitor;

  constructor(visitor: TextVisitor) {
    this.#visitor = visitor;
  }

  member(holder: Record<string, unknown>, key: string, byUser: boolean): void {
    const value = holder[key];
    if (typeof value === 'string') {
      const text = this.#string(key, value, byUser);
      if (text !== value) holder[key] = text;
    } else {
      const changed = this.#other(value, byUser);
      if (changed !== value) holder[key] = changed;
    }
  }

  #other(value: unknown, byUser: boolean): unknown {
    if (typeof value === 'number')
      return Math.abs(value) < LONG_NUMBER ? value : this.#number(value, String(value), byUser);
    if (typeof value !== 'object' || value === null) return value;
    if (Object.isFrozen(value) && 'rawJSON' in value) return this.#number(value, String(value.rawJSON), byUser);
    this.#inside(value as Holder, byUser);
    return value;
  }

  /** Card and telephone numbers are also written as numbers. */
  #number(value: unknown, digits: string, byUser: boolean): unknown {
    const text = this.#visitor.text(digits, byUser);
    return text === digits ? value : text;
  }

  #inside(holder: Holder, byUser: boolean): void {
    if (Array.isArray(holder)) this.#list(holder, byUser);
    else this.#object(holder, byUser);
  }

  #list(list: unknown[], byUser: boolean): void {
    this.#joinNeighbours(list, byUser);
    for (let index = 0; index < list.length; index++) {
      const item = list[index];
      if (typeof item === 'string') {
        const text = this.#string('', item, byUser);
        if (text !== item) list[index] = text;
      } else {
        const changed = this.#other(item, byUser);
        if (changed !== item) list[index] = changed;
      }
    }
  }

  #object(holder: Record<string, unknown>, byUser: boolean): void {
    const { role } = holder;
    const own = typeof role === 'string' ? byUser && !NOT_BY_USER.has(role) : byUser;
    for (const key in holder) {
      this.member(holder, key, own);
      if (!KEYS.has(key)) this.#key(holder, key, own);
    }
  }

  /** A key with something in it that must go gets another name; its place among the others is lost. */
  #key(holder: Record<string, unknown>, key: string, byUser: boolean): void {
    let name = this.#visitor.text(key, byUser);
    if (name === key) return;
    while (Object.hasOwn(holder, name)) name += '_';
    holder[name] = holder[key];
    delete holder[key];
  }

  #string(key: string, value: string, byUser: boolean): string {
    if (value === '') return value;
    if (WORDED.has(key) && WORDS.has(value)) return value;
    if (IDS.has(key) && ID.test(value)) return value;
    if (value.startsWith('data:')) return this.#dataUrl(value, byUser);
    if (SEALED.has(key) && BASE64.test(value)) {
      return key === 'data' || key === 'file_data' ? this.#encoded(value, byUser) : value;
    }
    if (key === 'arguments' && value.includes('\\')) return this.#json(value, byUser);
    return this.#visitor.text(value, byUser);
  }

  /** Arguments are JSON, whose escapes would hide what they say. */
  #json(text: string, byUser: boolean): string {
    const visited = this.#visitor.text(text, byUser);
    if (visited !== text) return visited;
    let value: unknown;
    try {
      value = parseJson(text);
    } catch {
      return text;
    }
    const before = stringifyJson(value);
    const holder = { value };
    this.member(holder, 'value', byUser);
    const after = stringifyJson(holder.value);
    return after === before ? text : after;
  }

  /** `data:text/plain;base64,...` says what its bytes say; of media nothing can be read. */
  #dataUrl(url: string, byUser: boolean): string {
    const comma = url.indexOf(',');
    const head = url.slice(0, comma + 1);
    if (comma === -1 || comma > 200 || !/;base64,$/i.test(head)) return this.#visitor.text(url, byUser);
    const data = url.slice(comma + 1);
    if (!BASE64.test(data)) return this.#visitor.text(url, byUser);
    const visited = this.#visitor.text(head, byUser);
    return visited + this.#encoded(data, byUser);
  }

  #encoded(data: string, byUser: boolean): string {
    // Media show in their first bytes that they are no text.
    if (!isText(Buffer.from(data.slice(0, 1_024), 'base64'), true)) return data;
    const bytes = Buffer.from(data, 'base64');
    if (!isText(bytes, false)) return data;
    const text = bytes.toString('utf8');
    const visited = this.#visitor.text(text, byUser);
    return visited === text ? data : Buffer.from(visited).toString('base64');
  }

  /** Parts that hold nothing but text follow one another as one text for the model. */
  #joinNeighbours(list: unknown[], byUser: boolean): void {
    if (list.length < 2) return;
    let first = 0;
    for (let index = 0; index <= list.length; index++) {
      if (index < list.length && textPart(list[index]) !== undefined) continue;
      if (index - first > 1)
        this.#join(
          list.slice(first, index).map((part) => textPart(part)!),
          byUser,
        );
      first = index + 1;
    }
  }

  #join(parts: readonly { text: string }[], byUser: boolean): void {
    const texts = parts.map(({ text }) => text);
    const visited = this.#visitor.neighbours(texts, byUser);
    visited.forEach((text, index) => {
      if (text !== texts[index]) parts[index]!.text = text;
    });
  }
}

function textPart(value: unknown): { text: string } | undefined {
  if (typeof value !== 'object' || value === null || !('text' in value) || 'role' in value) return undefined;
  return typeof value.text === 'string' ? (value as { text: string }) : undefined;
}

/** @param cut the bytes may end inside of a character */
function isText(bytes: Buffer, cut: boolean): boolean {
  let end = bytes.length;
  if (cut) while (end > 0 && end > bytes.length - 4 && (bytes[end - 1]! & 0x80) !== 0) end -= 1;
  const part = bytes.subarray(0, end);
  return isUtf8(part) && !part.includes(0);
}
