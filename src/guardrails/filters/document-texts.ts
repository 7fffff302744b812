/**
 * Visits every text of a request body that reaches a model, in any format: all strings and all keys, including unknown
 * members. Excluded are non-text values where the formats place them: ids, encrypted reasoning and media. Attached text
 * files are visited as their decoded text.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { attachedText, type DataUrl, dataUrlOf } from './attachments.ts';

export interface TextVisitor {
  /**
   * Visits one text and returns its replacement, or the same text for no change.
   * @param byUser false if the user certainly did not write it (instructions, tools, the model's own turns)
   */
  text(text: string, byUser: boolean): string;
  /** Visits texts that a model reads as one; returns as many texts. Called before each of them is visited alone. */
  neighbours(texts: readonly string[], byUser: boolean): readonly string[];
}

/** Control members, which no model reads. */
const CONTROL = new Set(['model', 'models', 'provider', 'user', 'safety_identifier', 'service_tier']);
const IDS = new Set(['id', 'tool_call_id', 'tool_use_id', 'call_id', 'item_id', 'previous_response_id']);
const ID = /^[\w.:|=/+-]{1,256}$/;
/** Encrypted reasoning. */
const SEALED = new Set(['signature', 'encrypted_content', 'thought_signature', 'thoughtSignature']);
/** Base64 files and media. `data` is base64 in parts of these types, and in parts without a type. */
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
/** Members whose values are keywords of the formats. */
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
/** Keys defined by the formats, below which ids and media are recognized. Any other key is itself a text. */
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
/** Below these the content is free: nothing in it counts as an id or as encrypted, whatever its name. */
const FREE = new Set(['properties', 'parameters', 'input_schema', 'schema']);
/**
 * As objects, these contain values from users or models, so short numbers are texts too. The same holds for `metadata`.
 */
const INPUTS = new Set(['input', 'arguments']);
/** Members that hold URLs or encoded bytes, never prose. */
const ADDRESSES = new Set('url image_url file_url video_url audio_url file_data data image mask b64_json'.split(' '));
/** Lists whose texts are not parts of one text. */
const APART = new Set(['documents']);
const NOT_BY_USER = new Set(['assistant', 'system', 'developer', 'tool', 'function', 'model']);
/** Members whose items or text are the user's unless a role says otherwise. */
const OF_USERS = new Set(['messages', 'input', 'prompt', 'query', 'documents', 'suffix']);

/** Smaller numbers are settings and counts. */
const LONG_NUMBER = 1e7;

/** Context of a value. */
interface Place {
  byUser: boolean;
  /**
   * `form`: members as the formats define them; `free`: caller-defined members; `values`: caller-defined, with all
   * numbers.
   */
  kind: 'form' | 'free' | 'values';
}

/** Visits one top-level member of a body. Returns its value, changed in place where the visitor replaces text. */
export function visitMember(key: string, value: unknown, visitor: TextVisitor): unknown {
  if (CONTROL.has(key)) return value;
  const holder = { [key]: value };
  new Walk(visitor).member(holder, key, { byUser: OF_USERS.has(key), kind: 'form' });
  return holder[key];
}

/** Visits the name of a top-level member, which is a text unless the formats define it. */
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

  /** Card and telephone numbers may also be JSON numbers. */
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

  /** A redacted key is renamed; its position among the others is lost. */
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

  /** Keeps JSON valid: a label with quotes in it, or a match across quotes, would end it early. */
  #arguments(text: string, byUser: boolean): string {
    const visited = this.#visitor.text(text, byUser);
    return visited === text || !isJson(text) || isJson(visited) ? visited : stringifyJson({ redacted: visited });
  }

  /**
   * The bytes of `data:text/plain;base64,...` are visited as text; media are not readable.
   * @param address true where only a URL is expected, so the value itself is not read as prose
   */
  #dataUrl({ head, kind, data }: DataUrl, address: boolean, byUser: boolean): string {
    if (address && BASE64.test(data)) return this.#visitor.text(head, byUser) + this.#encoded(data, kind, byUser);
    const visited = this.#visitor.text(head + data, byUser);
    return visited === head + data ? head + this.#encoded(data, kind, byUser) : visited;
  }

  /** Visits text, decoded base64, or both if the type does not tell which it is. */
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
   * A model reads consecutive text parts as one text. It does so across media parts too: a phrase that an image splits
   * is still read as one.
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

/** The context of a value's members, by the name of the value. */
function below(key: string, value: object, place: Place): Place {
  if (place.kind === 'values') return place;
  if (key === 'metadata' || (INPUTS.has(key) && !Array.isArray(value))) return { ...place, kind: 'values' };
  const isOurs = key === '' || (KEYS.has(key) && !FREE.has(key));
  return isOurs || place.kind === 'free' ? place : { ...place, kind: 'free' };
}

/** A message is not a part, although some services put its content in `text`. */
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
