/**
 * Changes of top-level members in the bytes or the text of a JSON object, which stays as it was otherwise: `applyEdits` and
 * `editedPieces` for documents, `patchMembers` for texts (upstream replies and events).
 */
import type { JsonDocument, Member } from './json.ts';
import { OPEN_BRACE } from './json-characters.ts';

/** One change of a top-level member: `json` is the new value's JSON text, undefined removes the member. */
export interface Edit {
  key: string;
  json: string | undefined;
}

/**
 * The document's bytes with top-level members replaced, removed (with their comma) or appended; every other byte as it
 * was. A removal of an absent member does nothing. Of several edits of one key the last counts.
 */
export function applyEdits(document: JsonDocument, edits: readonly Edit[]): Buffer {
  const { bytes } = document;
  const splices = planSplices(bytes.indexOf(OPEN_BRACE) + 1, document.members, edits);
  if (splices.length === 0) return bytes;
  let length = bytes.length;
  for (const splice of splices) length += Buffer.byteLength(splice.text) - (splice.end - splice.start);
  const result = Buffer.allocUnsafe(length);
  let from = 0;
  let to = 0;
  for (const { start, end, text } of splices) {
    to += bytes.copy(result, to, from, start);
    if (text !== '') to += result.write(text, to);
    from = end;
  }
  bytes.copy(result, to, from);
  return result;
}

/** The result of `applyEdits` in pieces, which share the document's bytes: a large one need not be copied. */
export function editedPieces(document: JsonDocument, edits: readonly Edit[]): Buffer[] {
  const { bytes } = document;
  const pieces: Buffer[] = [];
  let from = 0;
  for (const { start, end, text } of planSplices(bytes.indexOf(OPEN_BRACE) + 1, document.members, edits)) {
    pieces.push(bytes.subarray(from, start), Buffer.from(text));
    from = end;
  }
  pieces.push(bytes.subarray(from));
  return pieces.filter(({ length }) => length > 0);
}

/** `text` with members replaced (every occurrence), removed or appended; the rest as it was. See `applyEdits`. */
export function patchMembers(text: string, members: readonly Member[], edits: readonly Edit[]): string {
  return spliced(text, splicesOf(text, members, edits));
}

/**
 * The cuts and insertions that `patchMembers` would make, in order, for the object that starts at or after `from`. Empty if
 * no object starts there.
 */
export function splicesOf(text: string, members: readonly Member[], edits: readonly Edit[], from = 0): Splice[] {
  const brace = text.indexOf('{', from);
  return brace === -1 ? [] : planSplices(brace + 1, members, edits);
}

/** `text` with cuts and insertions, which must be in order. */
export function spliced(text: string, splices: readonly Splice[]): string {
  let result = '';
  let from = 0;
  for (const splice of splices) {
    result += text.slice(from, splice.start) + splice.text;
    from = splice.end;
  }
  return splices.length === 0 ? text : result + text.slice(from);
}

/** Replaces the text between two offsets by `text`. */
export interface Splice {
  start: number;
  end: number;
  text: string;
}

/** The cuts and insertions, in order, that carry out `edits`; `inside` is the offset after the opening brace. */
function planSplices(inside: number, members: readonly Member[], edits: readonly Edit[]): Splice[] {
  const splices: Splice[] = [];
  const last = members.length - 1;
  let kept = 0;
  /** Index of the first member of the run of removed ones that reaches to here; -1 outside of a run. */
  let removedFrom = -1;
  for (let index = 0; index <= last; index += 1) {
    const member = members[index]!;
    const edit = findEdit(edits, member.key);
    if (edit && edit.json === undefined) {
      if (removedFrom === -1) removedFrom = index;
      continue;
    }
    if (removedFrom !== -1) {
      splices.push({ start: members[removedFrom]!.keyStart, end: member.keyStart, text: '' });
      removedFrom = -1;
    }
    kept += 1;
    if (edit?.json !== undefined) splices.push({ start: member.valueStart, end: member.valueEnd, text: edit.json });
  }
  if (removedFrom !== -1) {
    const start = removedFrom === 0 ? members[0]!.keyStart : members[removedFrom - 1]!.valueEnd;
    splices.push({ start, end: members[last]!.valueEnd, text: '' });
  }
  let appended = '';
  for (const edit of edits) {
    if (edit.json === undefined || findEdit(edits, edit.key) !== edit) continue;
    if (members.some((member) => member.key === edit.key)) continue;
    appended += `${kept > 0 ? ',' : ''}${JSON.stringify(edit.key)}:${edit.json}`;
    kept += 1;
  }
  if (appended !== '') {
    const end = last === -1 ? inside : members[last]!.valueEnd;
    splices.push({ start: end, end, text: appended });
  }
  return splices;
}

function findEdit(edits: readonly Edit[], key: string): Edit | undefined {
  for (let index = edits.length - 1; index >= 0; index -= 1) if (edits[index]!.key === key) return edits[index];
  return undefined;
}
