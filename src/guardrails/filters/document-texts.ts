/**
 * Every text of a request's body that reaches a model, whatever the form: all strings and all keys, unknown members
 * included, except for those that cannot be read as text, where the forms have them (ids, sealed reasoning, media). Attached
 * files that are text are visited as what they say.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { attachedText, type DataUrl, dataUrlOf } from './attachments.ts';

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
/** Reasoning as its maker sealed it. */
const SEALED = new Set(['signature', 'encrypted_content', 'thought_signature', 'thoughtSignature']);
/** Files and media in base64; `data` is that in parts of these types, and where no type is told. */
const ENCODED = new Set(['data', 'file_data']);
const ENCODED_TYPES = new Set([
  'base64',
  'redacted_thinking',
  'reasoning.encrypted',
  'input_audio',
  'input_file',
  'file',
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
/** Keys of the forms, below which ids and media stand as elsewhere; any other key is a text as well. */
const KEYS = new Set(
  (
    'role content type text name id model messages input output instructions system tools tool_choice function parameters ' +
    'arguments description properties required items enum additionalProperties strict input_schema tool_calls tool_call_id ' +
    'tool_use_id call_id image_url url detail file filename file_data file_id input_audio data format source media_type ' +
    'cache_control ttl signature thinking reasoning reasoning_content reasoning_details encrypted_content summary prompt ' +
    'query documents metadata user max_tokens temperature top_p stream stream_options include_usage provider models ' +
    'response_format json_schema schema refusal annotations citations title context is_error status index audio caller ' +
    'container code_interpreter custom definition input_references image images mask reference_images video_url ' +
    'input_video file_url results outputs action queries item parts blocks prediction web_search_options plugins ' +
    'mcp_servers context_management acknowledged_safety_checks pending_safety_checks function_call json url_citation ' +
    'file_citation'
  ).split(' '),
);
/** What stands below is no form's: nothing in it is an id or sealed, whatever it is called. */
const FREE = new Set(['properties', 'parameters', 'input_schema', 'schema']);
/** Where they are objects, somebody has filled them in: short numbers are texts as well. So is `metadata`. */
const INPUTS = new Set(['input', 'arguments']);
/** Where an address or encoded bytes stand and no prose. */
const ADDRESSES = new Set('url image_url file_url video_url audio_url file_data data image mask b64_json'.split(' '));
/** Lists of texts that are nobody's parts. */
const APART = new Set(['documents']);
const NOT_BY_USER = new Set(['assistant', 'system', 'developer', 'tool', 'function', 'model']);
/** Members whose items or text are a user's unless a role says otherwise. */
const OF_USERS = new Set(['messages', 'input', 'prompt', 'query', 'documents', 'suffix']);

/** Shorter ones are settings and counts. */
const LONG_NUMBER = 1e7;

/** Where a value stands. */
interface Place {
  byUser: boolean;
  /** `form`: the members mean what the forms say; `free`: they are somebody's own; `values`: and so are all numbers. */
  kind: 'form' | 'free' | 'values';
}

/** Visits one top-level member of a body; returns its value, changed in place where the visitor wants it. */
export function visitMember(key: string, value: unknown, visitor: TextVisitor): unknown {
  if (CONTROL.has(key)) return value;
  const holder = { [key]: value };
  new Walk(visitor).member(holder, key, { byUser: OF_USERS.has(key), kind: 'form' });
  return holder[key];
}

/** The same for its name, which is a text unless it is one of the forms'. */
export function visitName(key: string, visitor: TextVisitor): string {
  return CONTROL.has(key) || KEYS.has(key) ? key : visitor.text(key, OF_USERS.has(key));
}

class Walk {
  readonly #visitor: TextVisitor;

  constructor(visitor: TextVisitor) {
    this.#visitor = visitor;
  }

  member(holder: Record<string, unknown>, key: string, place: Place): void {
    const value = holder[key];
    if (typeof value === 'string') {
      const text = this.#string(key, value, place, holder);
      if (text !== value) holder[key] = text;
    } else {
      const changed = this.#other(key, value, place);
      if (changed !== value) holder[key] = changed;
    }
  }

  #other(key: string, value: unknown, place: Place): unknown {
    if (typeof value === 'number') {
      const setting = place.kind !== 'values' && Math.abs(value) < LONG_NUMBER;
      return setting ? value : this.#number(value, String(value), place);
    }
    if (typeof value !== 'object' || value === null) return value;
    if (Object.isFrozen(value) && 'rawJSON' in value) return this.#number(value, String(value.rawJSON), place);
    const within = below(key, value, place);
    if (Array.isArray(value)) this.#list(value, within, APART.has(key));
    else this.#object(value as Record<string, unknown>, within);
    return value;
  }

  /** Card and telephone numbers are also written as numbers. */
  #number(value: unknown, digits: string, { byUser }: Place): unknown {
    const text = this.#visitor.text(digits, byUser);
    return text === digits ? value : text;
  }

  #list(list: unknown[], place: Place, apart: boolean): void {
    if (!apart) this.#joinNeighbours(list, place.byUser);
    for (let index = 0; index < list.length; index++) {
      const item = list[index];
      const changed = typeof item === 'string' ? this.#string('', item, place) : this.#other('', item, place);
      if (changed !== item) list[index] = changed;
    }
  }

  #object(holder: Record<string, unknown>, place: Place): void {
    const { role } = holder;
    const others = typeof role === 'string' && place.byUser && NOT_BY_USER.has(role);
    const own: Place = others ? { ...place, byUser: false } : place;
    for (const key in holder) {
      this.member(holder, key, own);
      if (!KEYS.has(key)) this.#key(holder, key, own);
    }
  }

  /** A key with something in it that must go gets another name; its place among the others is lost. */
  #key(holder: Record<string, unknown>, key: string, { byUser }: Place): void {
    let name = this.#visitor.text(key, byUser);
    if (name === key) return;
    while (Object.hasOwn(holder, name)) name += '_';
    holder[name] = holder[key];
    delete holder[key];
  }

  #string(key: string, value: string, place: Place, holder?: Record<string, unknown>): string {
    if (value === '') return value;
    if (WORDED.has(key) && WORDS.has(value)) return value;
    const { byUser, kind } = place;
    const isForm = kind === 'form';
    if (isForm && IDS.has(key) && ID.test(value)) return value;
    const url = dataUrlOf(value);
    if (url?.base64) return this.#dataUrl(url, isForm && ADDRESSES.has(key), byUser);
    if (isForm && ENCODED.has(key)) return this.#file(value, holder, byUser);
    if (isForm && SEALED.has(key) && BASE64.test(value)) return value;
    return key === 'arguments' ? this.#arguments(value, byUser) : this.#visitor.text(value, byUser);
  }

  /** What is JSON stays JSON: a label with quotes in it, or a match across them, would end it early. */
  #arguments(text: string, byUser: boolean): string {
    const visited = this.#visitor.text(text, byUser);
    return visited === text || !isJson(text) || isJson(visited) ? visited : stringifyJson({ redacted: visited });
  }

  /**
   * `data:text/plain;base64,...` says what its bytes say; of media nothing can be read.
   * @param address it stands where nobody reads it as it is written
   */
  #dataUrl({ head, kind, data }: DataUrl, address: boolean, byUser: boolean): string {
    if (address && BASE64.test(data)) return this.#visitor.text(head, byUser) + this.#encoded(data, kind, byUser);
    const visited = this.#visitor.text(head + data, byUser);
    return visited === head + data ? head + this.#encoded(data, kind, byUser) : visited;
  }

  /** Text where it says so, encoded otherwise, and both where that cannot be told. */
  #file(data: string, holder: Record<string, unknown> | undefined, byUser: boolean): string {
    const { type, media_type: kind } = holder ?? {};
    const encoded = BASE64.test(data) && (type === undefined || ENCODED_TYPES.has(String(type)));
    const visited = encoded ? data : this.#visitor.text(data, byUser);
    return visited === data ? this.#encoded(data, typeof kind === 'string' ? kind : '', byUser) : visited;
  }

  #encoded(data: string, kind: string, byUser: boolean): string {
    const attached = attachedText(data, kind);
    if (attached === undefined) return data;
    const visited = this.#visitor.text(attached.text, byUser);
    return visited === attached.text ? data : attached.encode(visited);
  }

  /**
   * Parts that hold nothing but text follow one another as one text for the model. So do texts with media between them:
   * a phrase that an image splits is still read as one.
   */
  #joinNeighbours(list: unknown[], byUser: boolean): void {
    if (list.length < 2) return;
    let run: { text: string }[] = [];
    let across: { text: string }[] = [];
    let media = false;
    let split = false;
    const endRun = () => {
      if (run.length > 1) this.#join(run, byUser);
      run = [];
    };
    for (let index = 0; index <= list.length; index++) {
      const part = index < list.length ? textPart(list[index]) : undefined;
      if (part !== undefined) {
        split ||= media && across.length > 0;
        run.push(part);
        across.push(part);
        continue;
      }
      endRun();
      if (index < list.length && isMedium(list[index])) {
        media = across.length > 0;
        continue;
      }
      if (split) this.#join(across, byUser);
      across = [];
      media = false;
      split = false;
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

/** What a value's members are, by the name that it stands under. */
function below(key: string, value: object, place: Place): Place {
  if (place.kind === 'values') return place;
  if (key === 'metadata' || (INPUTS.has(key) && !Array.isArray(value))) return { ...place, kind: 'values' };
  const isOurs = key === '' || (KEYS.has(key) && !FREE.has(key));
  return isOurs || place.kind === 'free' ? place : { ...place, kind: 'free' };
}

/** A message is no part, though some services call its content so. */
function textPart(value: unknown): { text: string } | undefined {
  if (typeof value !== 'object' || value === null || !('text' in value) || typeof value.text !== 'string') {
    return undefined;
  }
  const isMessage = 'role' in value && !('type' in value);
  return isMessage ? undefined : (value as { text: string });
}

const MEDIA: ReadonlySet<unknown> = new Set([
  'image',
  'image_url',
  'input_image',
  'audio',
  'input_audio',
  'video',
  'video_url',
  'input_video',
  'file',
  'input_file',
  'document',
]);

function isMedium(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && MEDIA.has(value.type);
}

function isJson(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch {
    return false;
  }
}
