/** Further top-level members for a document that has been read. */
import { type JsonDocument, ParsedDocument, readDocument } from './json.ts';
import { applyEdits } from './json-edits.ts';

/**
 * The document with further top-level members; a member that it has is replaced. Does not parse the body again, unless
 * it has such a member.
 */
export function withMembers(document: JsonDocument, values: Readonly<Record<string, string | boolean>>): JsonDocument {
  const edits = Object.entries(values).map(([key, value]) => ({ key, json: asciiJson(value) }));
  const bytes = applyEdits(document, edits);
  const replaces = document.members.some(({ key }) => Object.hasOwn(values, key));
  if (replaces || !(document instanceof ParsedDocument)) return readDocument(bytes);
  let at = document.members.at(-1)?.valueEnd ?? bytes.indexOf(0x7b) + 1;
  const added = edits.map(({ key, json }, index) => {
    const keyStart = at + (index > 0 || document.members.length > 0 ? 1 : 0);
    const valueStart = keyStart + JSON.stringify(key).length + 1;
    at = valueStart + json.length;
    return { key, keyStart, valueStart, valueEnd: at };
  });
  return document.extended(bytes, added, values);
}

/** JSON in ASCII, so that its length is that of its bytes. */
function asciiJson(value: string | boolean): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
