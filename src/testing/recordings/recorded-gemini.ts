/**
 * The content of a recorded response of Gemini (Google's own service and Vertex AI), read from its bytes, whole or truncated. It
 * shares no code with `src/formats` and `src/http`.
 */
import { readServerSentEvents } from './corpus.ts';
import {
  type Ending,
  exactText,
  parsedExactly,
  Reading,
  type RecordedAnswer,
  type RecordedCall,
  type RecordedChoice,
  saysSomething,
} from './recorded-answer.ts';

// biome-ignore lint/suspicious/noExplicitAny: a reader of foreign JSON
type Json = any;

const REFUSALS =
  /^(SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|LANGUAGE|IMAGE_SAFETY|IMAGE_PROHIBITED_CONTENT|IMAGE_RECITATION)$/;

/** The format has no end marker: a response is complete if each candidate has a finish reason and the connection ended in order. */
export function readGeminiStream(bytes: Buffer, ending: Ending): RecordedAnswer {
  const reading = new GeminiReading();
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  // A broken connection loses the event that no blank line has ended.
  const end = Math.max(text.lastIndexOf('\n\n') + 2, text.lastIndexOf('\r\n\r') + 3);
  const kept = ending === 'close' ? text : text.slice(0, end);
  for (const { data } of readServerSentEvents(kept)) {
    if (!reading.over && data !== '') reading.read(data);
  }
  const stray = kept.split(/\r\n|\n|\r/).filter((line) => line !== '' && !/^(:|(data|event|id|retry)(:|$))/.test(line));
  if (/"error"/.test(stray.join('\n')) || ending === 'break') reading.fail();
  return reading.answer();
}

export function readGeminiWhole(text: string): RecordedAnswer {
  const reading = new GeminiReading();
  reading.read(text);
  return reading.answer();
}

class GeminiReading extends Reading {
  private readonly pending = new Map<RecordedCall, Json>();
  private blocked = false;
  private slip = false;

  read(data: string): void {
    let value: Json;
    let exact: Json;
    try {
      value = JSON.parse(data);
      exact = parsedExactly(data);
    } catch {
      this.fail();
      return;
    }
    if (value.error) {
      this.fail();
      return;
    }
    (value.candidates ?? []).forEach((candidate: Json, at: number) => {
      this.take(candidate, exact.candidates[at]);
    });
    if (value.promptFeedback && !value.candidates?.length) this.blocked = true;
    this.count(value.usageMetadata);
  }

  readWhole(_value: Json, text: string): void {
    this.read(text);
  }

  override answer(): RecordedAnswer {
    for (const [call, input] of this.pending) call.arguments = exactText(input);
    const { choices, usage, other } = this;
    if (this.blocked && choices.length === 0) this.choice(0).finish = 'content_filter';
    const finished = choices.length > 0 && choices.every(({ finish }) => finish !== null);
    const complete = finished && !this.failed;
    const answer = { complete, choices, usage, uncounted: this.letters() - this.counted, other };
    const refused = choices.some(({ finish }) => finish === 'content_filter');
    const silent = !saysSomething(answer) && !other && !refused;
    const failed = this.slip || ((usage?.output ?? 0) === 0 && choices[0]?.finish !== 'length');
    return silent && failed ? { ...answer, complete: false } : answer;
  }

  private take(candidate: Json, exact: Json): void {
    const choice = this.choice(candidate.index ?? 0);
    (candidate.content?.parts ?? []).forEach((part: Json, at: number) => {
      this.takePart(choice, part, exact.content.parts[at]);
    });
    if (candidate.groundingMetadata?.groundingChunks || candidate.citationMetadata) this.other = true;
    const { finishReason } = candidate;
    if (!finishReason) return;
    choice.finish = REFUSALS.test(finishReason) ? 'content_filter' : finishReason === 'MAX_TOKENS' ? 'length' : 'stop';
    this.slip ||= /^(OTHER|MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS)$/.test(finishReason);
  }

  private takePart(choice: RecordedChoice, part: Json, exact: Json): void {
    if (part.thoughtSignature) this.other = true;
    if (typeof part.text === 'string') choice[part.thought ? 'reasoning' : 'text'] += part.text;
    else if (part.functionCall) this.takeCall(choice, part.functionCall, exact.functionCall);
    else this.other = true;
  }

  private takeCall(choice: RecordedChoice, call: Json, exact: Json): void {
    if (call.name) {
      const made = { id: call.id ?? null, name: call.name, arguments: '', custom: false };
      choice.calls.push(made);
      this.pending.set(made, exact.args ?? {});
    }
    const last = choice.calls.at(-1);
    for (const piece of call.partialArgs ?? []) if (last) place(this.pending.get(last), piece);
  }

  private count(usage: Json): void {
    if (typeof usage?.promptTokenCount !== 'number') return;
    const {
      promptTokenCount: prompt,
      toolUsePromptTokenCount: tools = 0,
      cachedContentTokenCount: cacheRead = 0,
    } = usage;
    const { candidatesTokenCount: written = 0, thoughtsTokenCount: reasoning = 0 } = usage;
    // A record that counts nothing written although something was does not know it yet.
    if (written + reasoning === 0 && this.usage !== null && (this.other || this.letters() > 0)) return;
    this.usage = { input: prompt + tools, cacheRead, cacheWrite: 0, output: written + reasoning, reasoning };
    this.counted = this.letters();
  }

  /** Arguments are not counted: they are complete only at the end. */
  protected override letters(): number {
    return this.choices
      .flatMap(({ text, reasoning, calls }) => [text, reasoning, ...calls.map(({ name }) => name)])
      .join('').length;
  }
}

/** One piece of arguments at its path, `$.a.b[0]`. */
export function place(root: Json, piece: Json): void {
  const keys = [...piece.jsonPath.matchAll(/\.([^.[]+)|\[(\d+)\]/g)].map((match) => match[1] ?? Number(match[2]));
  const last = keys.pop()!;
  let parent = root;
  keys.forEach((key, depth) => {
    parent[key] ??= typeof (keys[depth + 1] ?? last) === 'number' ? [] : {};
    parent = parent[key];
  });
  const value = piece.stringValue ?? piece.numberValue ?? piece.boolValue ?? null;
  parent[last] = typeof parent[last] === 'string' && typeof value === 'string' ? parent[last] + value : value;
}
