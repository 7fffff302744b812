/** A client library as the table sees it: one question of the library's own kind, and what it made of the answer. */

import type { Json } from '../../src/testing/gateway/sdk.ts';
import type { Format } from '../../src/testing/upstream/answers.ts';

export interface Question {
  /** The model is `test/<format>`. */
  format: Format;
  stream: boolean;
  /** The turns after the user's first message, as the library keeps them. */
  history?: Json[];
  tools?: boolean;
  /** An image after the text, base64 of a PNG. */
  image?: string;
  /** Think hard. */
  think?: boolean;
  /** The answer is an object of this schema. */
  schema?: Json;
  signal?: AbortSignal;
  /** Called with each piece of a streamed text. */
  onText?(piece: string): void;
}

export interface Seen {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; input: Json }[];
  /** Unified by the library, or in the format's words. */
  finish: string;
  usage: { input: number; output: number; cacheRead?: number; reasoning?: number };
  /** The object of a structured answer. */
  object?: Json;
  /** The assistant's turn, to be sent back. */
  turns: Json[];
}

export interface Client {
  name: string;
  ask(question: Question): Promise<Seen>;
  /** The results of all calls, as turns. */
  results(seen: Seen, texts: readonly string[]): Json[];
  /** HTTP status of an error that `ask` threw. */
  statusOf(error: Json): number | undefined;
  isAbort(error: Json): boolean;
  /** It shows the thinking of an answer: not where it only reads summaries, or has no place for it. */
  thinks: boolean;
  /** It sends thinking back with its signature. */
  keepsSignatures: boolean;
  /**
   * It hands a `Request` to fetch, whose signal Node forgets when the request is collected in the middle of an answer: then
   * nothing is aborted, whichever upstream answers.
   */
  mayForget?: true;
}

export const WEATHER = {
  name: 'weather',
  description: 'The weather of a city',
  parameters: { type: 'object' as const, properties: { city: { type: 'string' as const } }, required: ['city'] },
};
export const TIME = { name: 'time', description: 'The time', parameters: { type: 'object' as const, properties: {} } };
