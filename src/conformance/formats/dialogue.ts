/** A request and an answer in no format, as the cases describe them. Every format renders and reads both. */
import { type Fields, fields } from './loose.ts';

export interface Call {
  id: string;
  name: string;
  /** JSON. */
  arguments: string;
}

export interface Usage {
  /** Tokens, cached ones included. */
  input: number;
  cached: number;
  /** Tokens, reasoning included. */
  output: number;
  /** Undefined where a format has no place for it. */
  reasoning: number | undefined;
}

export type Stop = 'stop' | 'length' | 'calls' | 'refusal';

/** What a model says. */
export interface Said {
  text: string;
  reasoning: string;
  /** Proves reasoning to its vendor when it is sent back; `''` for none. */
  signature: string;
  refusal: string;
  calls: readonly Call[];
  stop: Stop;
  usage: Usage;
}

export interface Tool {
  name: string;
  description: string;
  parameters: object;
}

export type Turn =
  | { role: 'user'; text: string /** PNG, base64. */; image?: string }
  | { role: 'assistant'; text: string; calls: readonly Call[] }
  /** An earlier answer of the gateway, sent back as it was received. */
  | { role: 'echo'; answer: unknown }
  | { role: 'results'; results: readonly { id: string; text: string }[] };

/** What a client asks for. */
export interface Asked {
  turns: readonly Turn[];
  system?: string;
  tools?: readonly Tool[];
  /** The name of the tool that the model has to call. */
  choice?: string;
  maxTokens?: number;
  temperature?: number;
  stop?: string;
  effort?: 'low' | 'high';
}

export interface ArrivedTurn {
  role: 'user' | 'assistant' | 'results';
  text: string;
  images: string[];
  calls: Call[];
  results: { id: string; text: string }[];
}

/** The parts of a request that arrived at the upstream. */
export interface Arrived {
  system: string;
  turns: ArrivedTurn[];
  tools: Tool[];
  choice: string | undefined;
  maxTokens: number | undefined;
  temperature: number | undefined;
  stop: string | undefined;
  /** Reasoning was requested, in whatever way the format has. */
  reasons: boolean;
}

/** What a client read. */
export interface Heard extends Omit<Said, 'stop' | 'usage'> {
  /** Undefined before the answer says how it ended. */
  stop: Stop | undefined;
  /** As on the wire, for messages. */
  stopText: string;
  usage: Usage | undefined;
  /** USD, if the answer has it. */
  cost: number | undefined;
  /** The message of an error event. */
  error: string | undefined;
  /** What a client sends back as the turn of the assistant. */
  echo: unknown;
}

export function emptyHeard(): Heard {
  return {
    ...{ text: '', reasoning: '', signature: '', refusal: '', calls: [] },
    ...{ stop: undefined, stopText: '', usage: undefined, cost: undefined, error: undefined, echo: undefined },
  };
}

/** A piece of a stream as an upstream sends it. A stream that ends before its `finish` is broken. */
export interface Frame {
  kind: 'open' | 'delta' | 'finish' | 'end';
  text: string;
}

export interface StreamEvent {
  name: string | undefined;
  data: string;
}

/** A wire format, from both sides. Readers throw `Broken` for what no strict client accepts. */
export interface WireFormat {
  name: FormatName;
  /** Below the base URL. */
  path: string;
  request(asked: Asked, model: string, stream: boolean): Record<string, unknown>;
  arrived(body: unknown): Arrived;
  whole(said: Said): object;
  /** @param pieces the text, split as it is sent */
  frames(said: Said, pieces: readonly string[]): Frame[];
  /** An error within a stream. */
  failure(message: string): Frame;
  readWhole(body: unknown): Heard;
  readStream(events: readonly StreamEvent[]): Heard;
  /** The message of an error response; undefined if the body has no error of this format. */
  errorOf(body: unknown): string | undefined;
}

export const FORMAT_NAMES = ['chat', 'messages', 'responses'] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

/** An answer breaks the rules of its format. */
export class Broken extends Error {}

export function demand(holds: unknown, problem: string): asserts holds {
  if (!holds) throw new Broken(problem);
}

/** @param what names the JSON in the problem */
export function parsed(json: string, what = 'an event'): Fields {
  try {
    return fields(JSON.parse(json));
  } catch {
    throw new Broken(`${what} is not JSON`);
  }
}
