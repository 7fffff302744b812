/** Answers of a scripted upstream that speaks the Gemini format, written from Google's documentation. */
import { streamOf, type Told, wholeOf } from './answers.ts';
import type { Answer } from './upstream.ts';

const FINISHES: Record<string, string> = { length: 'MAX_TOKENS', content_filter: 'SAFETY' };
const HEAD = { modelVersion: 'gemini-3-pro', responseId: 'resp-1' };

/** Texts and thoughts come in pieces of three characters. */
export function geminiAnswer(stream: boolean, told: Told): Answer {
  const { thinking, text, calls = [], finish = '', usage = { input: 10, output: 5 } } = told;
  const parts: object[] = [];
  const say = (said: string, more: object = {}) => {
    const pieces = stream ? [...said].reduce<string[]>(intoThrees, []) : [said];
    for (const piece of pieces) parts.push({ text: piece, ...more });
  };
  if (thinking !== undefined) say(thinking.text, { thought: true });
  if (text !== undefined) say(text);
  calls.forEach(({ id, name, arguments: args }, index) => {
    const signature = index === 0 && thinking !== undefined ? { thoughtSignature: thinking.signature } : {};
    parts.push({ functionCall: { id, name, args: JSON.parse(args || '{}') }, ...signature });
  });
  const usageMetadata = {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output,
    totalTokenCount: usage.input + usage.output,
  };
  const finishReason = FINISHES[finish] ?? 'STOP';
  const reply = (some: readonly object[], more: object) => ({
    candidates: [{ content: { role: 'model', parts: some }, ...more, index: 0, safetyRatings: [] }],
    ...HEAD,
    usageMetadata,
  });
  if (!stream) return wholeOf(reply(parts, { finishReason }));
  const events = [...parts.map((part) => reply([part], {})), reply([{ text: '' }], { finishReason })];
  return streamOf(events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`));
}

function intoThrees(pieces: string[], character: string, index: number): string[] {
  if (index % 3 === 0) pieces.push('');
  pieces[pieces.length - 1] += character;
  return pieces;
}
