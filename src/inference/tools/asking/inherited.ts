/**
 * Functions of the client that a subagent may call. Its requests are of the responses format then: an answer that calls a
 * function is handed to the client as its items are, and the next request of the subagent begins with them.
 */
import { createHash } from 'node:crypto';
import { invalidField } from '../../../base/errors.ts';
import type { JsonDocument } from '../../../base/json.ts';
import type { FormatId } from '../../../formats/conversation/conversation.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../../formats/conversation/fields.ts';
import type { SuspendedCall } from '../../../formats/conversation/suspended.ts';
import { serverToolName } from '../../../formats/server-tools/index.ts';
import { Members } from '../../tool-settings.ts';
import { settingsOf } from '../declaration.ts';
import { ToolError } from '../tool.ts';

const MOST_NAMES = 500;
const LONGEST_NAME = 256;
const ID_LENGTH = 24;

export type Inherits = 'all' | ReadonlySet<string>;

/** Undefined for none. @throws GatewayError 400, in other formats too: only the responses format can show such calls */
export function readInherits(settings: Fields, path: string, format: FormatId): Inherits | undefined {
  const all = new Members(settings, path).flag('inherit_functions') ?? false;
  const names = namesOf(settings['inherited_function_names'] ?? undefined, `${path}.inherited_function_names`);
  if (!all && names.size === 0) return undefined;
  if (format !== 'responses') {
    const member = all ? 'inherit_functions' : 'inherited_function_names';
    throw invalidField(`${path}.${member}`, 'is supported in the responses format only');
  }
  return all ? 'all' : names;
}

function namesOf(value: unknown, path: string): ReadonlySet<string> {
  if (value === undefined) return new Set();
  if (!Array.isArray(value) || value.length > MOST_NAMES) {
    throw invalidField(path, `must be a list of at most ${MOST_NAMES} names of functions`);
  }
  return new Set(
    value.map((name: unknown, index) => {
      const trimmed = textOf(name).trim();
      if (trimmed !== '' && trimmed.length <= LONGEST_NAME) return trimmed;
      throw invalidField(`${path}[${index}]`, `must be a name of 1 to ${LONGEST_NAME} characters`);
    }),
  );
}

/** The declarations of the client's functions, at its own top level. Names without a function are left out. */
export function inheritedFunctions(inherits: Inherits, document: JsonDocument): Fields[] {
  return listOf(document.member('tools')).flatMap((value): Fields[] => {
    const declaration = fieldsOf(value);
    if (declaration['type'] !== 'function') return [];
    if (inherits !== 'all' && !inherits.has(textOf(declaration['name']))) return [];
    // The subagent has no search for functions.
    const { defer_loading: _, ...shown } = declaration;
    return [shown];
  });
}

interface Asking {
  model: string | undefined;
  /** Members of a chat request. */
  options: Fields;
  instructions: string;
  task: string;
  functions: readonly Fields[];
  /** Server tools, as a chat request declares them. */
  tools: readonly unknown[];
  /** The most answers with calls. */
  toolCalls: number;
  suspended: SuspendedCall | undefined;
}

/** The body of a request in the responses format. */
export function bodyWith(asking: Asking): Fields {
  const { model, options, instructions, task, functions, tools, suspended } = asking;
  const { max_completion_tokens: most, ...others } = options;
  const left = asking.toolCalls - (suspended?.rounds ?? 0);
  const declared = tools.map((value) => {
    const declaration = fieldsOf(value);
    return { type: serverToolName(declaration, 'chat'), parameters: settingsOf(declaration, '').settings };
  });
  return {
    ...others,
    ...(model !== undefined && { model }),
    ...(most !== undefined && { max_output_tokens: most }),
    instructions,
    input: [{ role: 'user', content: task }, ...(suspended?.earlier ?? [])],
    tools: [...functions, ...declared],
    ...(declared.length > 0 && left > 0 && { max_tool_calls: left }),
    ...(left <= 0 && { tool_choice: 'none' }),
  };
}

/**
 * The items of a reply that calls functions of the client, with call ids that are unique among all models of the
 * request; undefined if it calls none.
 */
export function itemsThatCall(reply: Fields): Fields[] | undefined {
  const items = listOf(reply['output']).map(fieldsOf);
  const calls = items.filter(({ type }) => type === 'function_call');
  if (calls.length === 0) return undefined;
  if (calls.some(({ status }) => status === 'incomplete')) throw new ToolError("the subagent's answer was cut off");
  const seed = textOf(reply['id']);
  return items.map((item) =>
    item['type'] === 'function_call' ? { ...item, call_id: distinctId(seed, textOf(item['call_id'])) } : item,
  );
}

function distinctId(seed: string, id: string): string {
  return `call_${createHash('sha256').update(`${seed} ${id}`).digest('hex').slice(0, ID_LENGTH)}`;
}
