/** A conversation of the playground, independent of the format in which it is sent. */

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export interface ToolResult {
  id: string;
  text: string;
}

export interface Prompt {
  text: string;
  /** `data:image/...` */
  images: readonly string[];
  results: readonly ToolResult[];
}

/** An image of an answer. */
export interface Picture {
  url: string;
  /** Of its item in the responses format. */
  id?: string;
}

export interface Answer {
  text: string;
  reasoning: string;
  calls: readonly ToolCall[];
  images: readonly Picture[];
  /** The gateway's message. */
  error: string | undefined;
  /** `gen-...` */
  id: string | undefined;
  /** Milliseconds. */
  firstMs: number | undefined;
  totalMs: number | undefined;
  /** The routing metadata of the gateway. */
  route: Route | undefined;
  state: 'running' | 'done' | 'stopped';
}

export interface Route {
  summary?: string;
  strategy?: string;
  endpoints?: { available?: { model: string; provider: string; selected: boolean }[] };
  attempts?: { model: string; provider: string; status: number }[];
}

export interface Turn {
  prompt: Prompt;
  answer: Answer;
}

export interface Settings {
  format: FormatName;
  system: string;
  /** Empty: the model's own. */
  temperature: string;
  maxTokens: string;
  /** JSON of the chat format. */
  tools: string;
}

export type FormatName = 'chat' | 'messages' | 'responses';

export const FORMAT_NAMES = [
  ['chat', 'Chat'],
  ['messages', 'Messages'],
  ['responses', 'Responses'],
] as const;

export const EMPTY_ANSWER: Answer = {
  text: '',
  reasoning: '',
  calls: [],
  images: [],
  error: undefined,
  id: undefined,
  firstMs: undefined,
  totalMs: undefined,
  route: undefined,
  state: 'running',
};
