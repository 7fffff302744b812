/** Messages of a chat completion, as far as the agent uses them. */

export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export type Message =
  | { readonly role: 'user'; readonly content: string }
  | {
      readonly role: 'assistant';
      readonly content: string | null;
      readonly tool_calls?: readonly ToolCall[];
      /** Returned to the model as it came: signatures of its thinking. */
      readonly reasoning_details?: readonly object[];
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

export type AssistantMessage = Extract<Message, { role: 'assistant' }>;

/** Tokens that the model calls of a turn used. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  /** Part of `input`. */
  readonly cached: number;
}

export function sum(one: Usage, other: Usage): Usage {
  return { input: one.input + other.input, output: one.output + other.output, cached: one.cached + other.cached };
}

export const NO_USAGE: Usage = { input: 0, output: 0, cached: 0 };
