/**
 * Visits every text of a body: all strings and all keys, including unknown members. Excluded are non-text values at the
 * members that the words name: ids, encrypted reasoning and media. Attached text files are visited as their decoded
 * text.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { TextVisitor } from '../conversation/texts.ts';
import { attachedText, type DataUrl, dataUrlOf } from './attachments.ts';
import type { Words } from './words.ts';

const ID = /^[\w.:|=/+-]{1,256}$/;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/** Smaller numbers are settings and counts. */
const LONG_NUMBER = 1e7;

/** Facts about a value that follow from the members above it. */
interface Scope {
  byUser: boolean;
  /**
   * `format`: members as the formats define them; `free`: caller-defined members; `values`: caller-defined, with all
   * numbers.
   */
  kind: 'format' | 'free' | 'values';
}

export class Walk {
  readonly #words: Words;
  readonly #visitor: TextVisitor;

  constructor(words: Words, visitor: TextVisitor) {
    this.#words = words;
    this.#visitor = visitor;
  }

  /** Visits a top-level member, name and value; replaces both in place. */
  topLevel(body: Record<string, unknown>, key: string): void {
    const { control, users, names } = this.#words;
    if (control.has(key)) {
      if (key === 'provider') this.#options(body[key]);
      return;
    }
    const byUser = users.has(key);
    const name = names.has(key) ? key : this.#visitor.text(key, byUser);
    this.#member(body, key, { byUser, kind: 'format' });
    if (name !== key) rename(body, key, name);
  }

  /** `provider.options` goes to the upstream as it is, prompts and hints in it too. */
  #options(preferences: unknown): void {
    if (typeof preferences !== 'object' || preferences === null || !Object.hasOwn(preferences, 'options')) return;
    this.#member(preferences as Record<string, unknown>, 'options', { byUser: true, kind: 'free' });
  }

  #member(holder: Record<string, unknown>, key: string, scope: Scope): void {
    const value = holder[key];
    if (typeof value === 'string') {
      const text = this.#string(key, value, scope, holder);
      if (text !== value) holder[key] = text;
    } else {
      const changed = this.#other(key, value, scope);
      if (changed !== value) holder[key] = changed;
    }
  }

  #other(key: string, value: unknown, scope: Scope): unknown {
    if (typeof value === 'number') {
      const setting = scope.kind !== 'values' && Math.abs(value) < LONG_NUMBER;
      return setting ? value : this.#number(value, String(value), scope);
    }
    if (typeof value !== 'object' || value === null) return value;
    if (Object.isFrozen(value) && 'rawJSON' in value) return this.#number(value, String(value.rawJSON), scope);
    const within = this.#below(key, value, scope);
    if (Array.isArray(value)) this.#list(value, within, this.#words.apart.has(key));
    else this.#object(value as Record<string, unknown>, within);
    return value;
  }

  /** Card and telephone numbers may also be JSON numbers. */
  #number(value: unknown, digits: string, { byUser }: Scope): unknown {
    const text = this.#visitor.text(digits, byUser);
    return text === digits ? value : text;
  }

  #list(list: unknown[], scope: Scope, apart: boolean): void {
    if (!apart) this.#joinNeighbours(list, scope.byUser);
    for (let index = 0; index < list.length; index++) {
      const item = list[index];
      const changed = typeof item === 'string' ? this.#string('', item, scope) : this.#other('', item, scope);
      if (changed !== item) list[index] = changed;
    }
  }

  #object(holder: Record<string, unknown>, scope: Scope): void {
    const { role } = holder;
    const others = typeof role === 'string' && scope.byUser && this.#words.others.has(role);
    const own: Scope = others ? { ...scope, byUser: false } : scope;
    for (const key in holder) {
      this.#member(holder, key, own);
      if (!this.#words.names.has(key)) this.#key(holder, key, own);
    }
  }

  /** A redacted key is renamed; its position among the others is lost. */
  #key(holder: Record<string, unknown>, key: string, { byUser }: Scope): void {
    const name = this.#visitor.text(key, byUser);
    if (name !== key) rename(holder, key, name);
  }

  #string(key: string, value: string, scope: Scope, holder?: Record<string, unknown>): string {
    if (value === '') return value;
    if (this.#words.worded.has(key) && this.#words.words.has(value)) return value;
    const { byUser, kind } = scope;
    const isFormat = kind === 'format';
    if (isFormat && this.#words.ids.has(key) && ID.test(value)) return value;
    const url = dataUrlOf(value);
    if (url?.base64) return this.#dataUrl(url, isFormat && this.#words.addresses.has(key), byUser);
    if (isFormat && this.#words.encoded.has(key)) return this.#file(value, holder, byUser);
    if (isFormat && this.#words.sealed.has(key) && BASE64.test(value)) return value;
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
    const encoded = BASE64.test(data) && (type === undefined || this.#words.encodedTypes.has(String(type)));
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
      if (index < list.length && this.#isMedium(list[index])) {
        media = across.length > 0;
        continue;
      }
      if (split) this.#join(across, byUser);
      across = [];
      media = false;
      split = false;
    }
  }

  #isMedium(value: unknown): boolean {
    const { media } = this.#words;
    return typeof value === 'object' && value !== null && 'type' in value && media.has(value.type as string);
  }

  /** The scope of a value's members, by the name of the value. */
  #below(key: string, value: object, scope: Scope): Scope {
    const { inputs, names, free } = this.#words;
    if (scope.kind === 'values') return scope;
    if (key === 'metadata' || (inputs.has(key) && !Array.isArray(value))) return { ...scope, kind: 'values' };
    const isOurs = key === '' || (names.has(key) && !free.has(key));
    return isOurs || scope.kind === 'free' ? scope : { ...scope, kind: 'free' };
  }

  #join(parts: readonly { text: string }[], byUser: boolean): void {
    const texts = parts.map(({ text }) => text);
    const visited = this.#visitor.neighbours(texts, byUser);
    visited.forEach((text, index) => {
      if (text !== texts[index]) parts[index]!.text = text;
    });
  }
}

/** A message is not a part, although some services put its content in `text`. */
function textPart(value: unknown): { text: string } | undefined {
  if (typeof value !== 'object' || value === null || !('text' in value) || typeof value.text !== 'string') {
    return undefined;
  }
  const isMessage = 'role' in value && !('type' in value);
  return isMessage ? undefined : (value as { text: string });
}

/** Appends to a name that is taken, so that no other member is lost. */
function rename(holder: Record<string, unknown>, key: string, wanted: string): void {
  let name = wanted;
  while (Object.hasOwn(holder, name)) name += '_';
  holder[name] = holder[key];
  delete holder[key];
}

function isJson(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch {
    return false;
  }
}
