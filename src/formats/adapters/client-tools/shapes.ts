/** Functions that replace other tool types of the responses format. */
import { parseJson } from '../../../base/json.ts';
import type { FunctionTool } from '../../conversation/conversation.ts';
import { type Fields, isFields, textOf } from '../../conversation/fields.ts';

/** The member that holds the free text of a custom tool. */
export const INPUT_MEMBER = 'input';

export const INPUT: Fields = {
  type: 'object',
  properties: { [INPUT_MEMBER]: { type: 'string', description: 'The whole input of the tool, as plain text.' } },
  required: [INPUT_MEMBER],
  additionalProperties: false,
};

/** The members of a call's `action` (platform.openai.com/docs/guides/tools-local-shell). */
export const LOCAL_SHELL: FunctionTool = {
  type: 'function',
  name: 'local_shell',
  description: "Runs a command on the user's machine and returns its output.",
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'array', items: { type: 'string' }, description: 'The program and its arguments.' },
      working_directory: { type: 'string', description: 'Where to run it. Default: the current folder.' },
      timeout_ms: { type: 'integer', description: 'How long it may run, in milliseconds.' },
      env: { type: 'object', additionalProperties: { type: 'string' }, description: 'Environment variables to set.' },
      user: { type: 'string', description: 'The user to run it as.' },
    },
    required: ['command'],
    additionalProperties: false,
  },
};

/** platform.openai.com/docs/guides/tools-tool-search with `execution: client`. */
export const TOOL_SEARCH: FunctionTool = {
  type: 'function',
  name: 'tool_search',
  description: 'Searches for further tools. Those that it finds can be called afterwards.',
  parameters: {
    type: 'object',
    properties: { query: { type: 'string', description: 'What the tool should do.' } },
    required: ['query'],
  },
};

/** The free text in the arguments of a custom tool's function, whatever shape the model gave them. */
export function freeTextOf(written: string): string {
  let value: unknown;
  try {
    value = parseJson(written);
  } catch {
    return written;
  }
  if (typeof value === 'string') return value;
  if (!isFields(value)) return written;
  if (typeof value[INPUT_MEMBER] === 'string') return textOf(value[INPUT_MEMBER]);
  const members = Object.values(value);
  return members.length === 1 && typeof members[0] === 'string' ? members[0] : written;
}
