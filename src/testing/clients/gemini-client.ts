/**
 * A strict client of the Gemini format, written from the public API reference and from what `@google/genai` insists on. It
 * shares no code with `src/formats`.
 */
import assert from 'node:assert/strict';
import { readServerSentEvents } from '../recordings/corpus.ts';
import { type Counts, exactText, parsedExactly } from '../recordings/recorded-answer.ts';
import { place } from '../recordings/recorded-gemini.ts';

// biome-ignore lint/suspicious/noExplicitAny: a reader of JSON that checks what it reads
type Json = any;

export interface ReadCandidate {
  text: string;
  reasoning: string;
  calls: { id: string | null; name: string; arguments: string }[];
  /** The arguments of the calls so far. */
  inputs: Json[];
  parts: Json[];
  finish: string | null;
}

export interface ReadContent {
  id: unknown;
  candidates: ReadCandidate[];
  usage: Json;
  error: Record<string, unknown> | null;
}

/** Reads the text of an event stream; every violation of the format throws, as does an end without a finish reason. */
export function readContentStream(text: string): ReadContent {
  assert.ok(text === '' || text.endsWith('\n\n'), 'the last event is not complete');
  for (const line of text.split('\n')) assert.match(line, /^(data: |:|$)/, `a line outside any field: ${line}`);
  const read: ReadContent = { id: undefined, candidates: [], usage: null, error: null };
  for (const { data } of readServerSentEvents(text)) {
    assert.equal(read.error, null, 'an event after the error');
    addReply(read, data);
  }
  const isBlocked = read.candidates.length === 0 && read.id !== undefined;
  const finished = isBlocked || (read.candidates.length > 0 && read.candidates.every(({ finish }) => finish !== null));
  assert.ok(read.error !== null || finished, 'neither a finish reason nor an error');
  return read;
}

/** Reads a whole answer in the same way. */
export function readWholeContent(text: string): ReadContent {
  const read: ReadContent = { id: undefined, candidates: [], usage: null, error: null };
  addReply(read, text);
  assert.equal(read.error, null);
  return read;
}

function addReply(read: ReadContent, text: string): void {
  const value = JSON.parse(text) as Json;
  if (value.usageMetadata) read.usage = value.usageMetadata;
  if (value.error) {
    const { code, message, status } = value.error;
    assert.ok(Number.isInteger(code) && typeof message === 'string' && /^[A-Z_]+$/.test(status), text);
    read.error = value.error;
    return;
  }
  assert.match(value.responseId, /^gen-/);
  assert.equal(typeof value.modelVersion, 'string');
  assert.ok(read.id === undefined || read.id === value.responseId, 'the id changes');
  read.id = value.responseId;
  const exact = parsedExactly(text);
  (value.candidates ?? []).forEach((candidate: Json, at: number) => {
    addCandidate(read, candidate, exact.candidates[at]);
  });
}

function addCandidate(read: ReadContent, candidate: Json, exact: Json): void {
  const index = candidate.index ?? 0;
  while (read.candidates.length <= index) {
    read.candidates.push({ text: '', reasoning: '', calls: [], inputs: [], parts: [], finish: null });
  }
  const into = read.candidates[index]!;
  (candidate.content?.parts ?? []).forEach((part: Json, at: number) => {
    into.parts.push(part);
    if (typeof part.text === 'string') into[part.thought === true ? 'reasoning' : 'text'] += part.text;
    if (part.functionCall) addCall(into, part.functionCall, exact.content.parts[at].functionCall);
  });
  if (candidate.finishReason !== undefined) {
    assert.match(candidate.finishReason, /^[A-Z_]+$/);
    into.finish = candidate.finishReason;
  }
}

/** A service may stream the arguments of a call as values at JSON paths. */
function addCall(into: ReadCandidate, { id = null, name, partialArgs = [] }: Json, exact: Json): void {
  if (name !== undefined) {
    into.inputs.push(exact.args ?? {});
    into.calls.push({ id, name, arguments: '' });
  }
  const last = into.calls.at(-1);
  assert.ok(last !== undefined, 'arguments without a call');
  for (const piece of partialArgs) place(into.inputs.at(-1), piece);
  last.arguments = exactText(into.inputs.at(-1));
}

/** The counts of a record, by the names of recordings; null for a record that counts nothing. */
export function contentCounts(usage: Json): Counts | null {
  if (typeof usage?.promptTokenCount !== 'number') return null;
  const { promptTokenCount, toolUsePromptTokenCount = 0, thoughtsTokenCount: reasoning = 0 } = usage;
  const input = promptTokenCount + toolUsePromptTokenCount;
  const { totalTokenCount, candidatesTokenCount = Math.max((totalTokenCount ?? 0) - input - reasoning, 0) } = usage;
  const inside = reasoning > 0 && reasoning <= candidatesTokenCount && totalTokenCount === input + candidatesTokenCount;
  return {
    input,
    cacheRead: usage.cachedContentTokenCount ?? 0,
    cacheWrite: usage.cacheWriteTokenCount ?? 0,
    output: inside ? candidatesTokenCount : candidatesTokenCount + reasoning,
    reasoning,
  };
}
