/** Replaces the strings of a JSON value. */

/** Members with encrypted data or media, which contain no readable text. */
const SEALED = new Set(['signature', 'encrypted_content', 'encrypted_index', 'thought_signature', 'thoughtSignature']);
const MEDIA = new Set(['data', 'file_data', 'b64_json']);
const IDS = new Set(['id', 'type', 'tool_call_id', 'tool_use_id', 'call_id', 'item_id']);
const OPAQUE = /^[\w+/=.:-]*$/;

/**
 * Returns the same object if nothing was replaced.
 * @param keys also replace member names, which are text where a model chose them
 */
export function replaceStrings(value: unknown, replace: (text: string) => string, keys = false): unknown {
  if (typeof value === 'string') return value === '' ? value : replace(value);
  if (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) >= 1e7) {
    const text = replace(String(value));
    return text === String(value) ? value : text;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Object.isFrozen(value) && 'rawJSON' in value) {
    const digits = String(value.rawJSON);
    const text = replace(digits);
    return text === digits ? value : text;
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => replaceStrings(item, replace, keys));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  const changed: Record<string, unknown> = {};
  let same = true;
  for (const [key, member] of Object.entries(value)) {
    const kept = !keys && typeof member === 'string' && isKept(key, member);
    const name = keys ? replace(key) : key;
    const next = kept ? member : replaceStrings(member, replace, keys);
    if (name !== key || next !== member) same = false;
    Object.defineProperty(changed, name, { value: next, enumerable: true, writable: true, configurable: true });
  }
  return same ? value : changed;
}

function isKept(key: string, text: string): boolean {
  if (MEDIA.has(key) || SEALED.has(key)) return OPAQUE.test(text);
  return IDS.has(key) && text.length <= 256 && OPAQUE.test(text);
}
