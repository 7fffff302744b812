/** A choice among some of the tools (`allowed_tools` of OpenAI), for upstreams that cannot express it: the others are left out. */
import type { Tool, ToolChoice } from '../conversation/conversation.ts';
import { fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import type { TurnAdapter } from './adapter.ts';

const TYPE = 'allowed_tools';

export const allowedTools: TurnAdapter = (conversation, { spoken, target }) => {
  const { tools = [], toolChoice } = conversation;
  const allowed = allowedBy(toolChoice);
  if (allowed === undefined || spoken.choosesAmong?.(target.dialect) === true) return { conversation };
  const offered = tools.filter((tool) => allowed.names.has(nameOf(tool)));
  // What is left names tools that only the upstream knows.
  if (offered.length === 0) return { conversation };
  return { conversation: { ...conversation, tools: offered, toolChoice: { mode: allowed.mode } } };
};

/** Whether a request of the chat or responses format chooses among some of its tools. */
export function choosesAmong(choice: unknown): boolean {
  return fieldsOf(choice)['type'] === TYPE;
}

function allowedBy(choice: ToolChoice | undefined) {
  if (choice?.mode !== 'opaque' || choice.origin !== 'chat' || !choosesAmong(choice.value)) return undefined;
  const { mode, tools } = fieldsOf(fieldsOf(choice.value)[TYPE]);
  const names = new Set(listOf(tools).map(chosenName));
  return { mode: mode === 'required' ? 'required' : 'auto', names } as const;
}

function nameOf(tool: Tool): string {
  return tool.type === 'function' ? tool.name : chosenName(tool.value);
}

/** In chat, the members are nested under the name of the type. */
function chosenName(value: unknown): string {
  const tool = fieldsOf(value);
  return textOf(fieldsOf(tool[textOf(tool['type'])])['name']);
}
