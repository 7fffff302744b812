/**
 * The gateway's searches between two client turns, as each served format shows them: chat in `reasoning_details`
 * (`reasoning.server_tool_call`), messages as blocks of its tool search, responses as an item. Clients send them back
 * unchanged, and the conversation is rebuilt from them.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { WIRE_ALIAS, WIRE_NAME } from '../../base/namespace.ts';
import type { FormatId, OpaquePart, Part } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { CALL_TOOL, SEARCH_TOOL } from './protocol.ts';

export interface Step {
  id: string;
  tool: typeof SEARCH_TOOL | typeof CALL_TOOL;
  /** JSON text, as the model wrote it. */
  arguments: string;
  /** Names of the tools found; absent for a rejected call or an invalid search. */
  found?: readonly string[];
  /** The result sent to the model. */
  result: string;
}

/** A step read from a history; its result is computed again. */
export type PastStep = Omit<Step, 'result'>;

const MESSAGES_ID = 'srvtoolu_';
const MESSAGES_SEARCH = 'tool_search_tool_bm25';
const ITEM_NAMES = [`${WIRE_NAME}:tool_search`, `${WIRE_ALIAS}:tool_search`];

/** The parts that show a step to clients of the format. `index` counts the steps of the answer. */
export function partsOf(step: Step, form: FormatId, index: number): OpaquePart[] {
  const part = (value: Fields): OpaquePart => ({ type: 'opaque', origin: form, value });
  switch (form) {
    case 'messages':
      return [part(useBlock(step)), part(resultBlock(step))];
    case 'responses':
      return [part(itemOf(step))];
    default:
      return [
        part({
          type: 'reasoning.server_tool_call',
          tool_name: step.tool,
          arguments: step.arguments,
          result: step.result,
          tool_call_id: step.id,
          format: 'unknown',
          index,
        }),
      ];
  }
}

function useBlock({ id, tool, arguments: text }: Step): Fields {
  const name = tool === SEARCH_TOOL ? MESSAGES_SEARCH : CALL_TOOL;
  return { type: 'server_tool_use', id: `${MESSAGES_ID}${id}`, name, input: inputOf(text), caller: { type: 'direct' } };
}

function resultBlock({ id, found, result }: Step): Fields {
  const content =
    found === undefined
      ? { type: 'tool_search_tool_result_error', error_code: 'invalid_tool_input', error_message: result }
      : {
          type: 'tool_search_tool_search_result',
          tool_references: found.map((name) => ({ type: 'tool_reference', tool_name: name })),
        };
  return { type: 'tool_search_tool_result', tool_use_id: `${MESSAGES_ID}${id}`, content };
}

/** The item's own members hold only the query; the rest is in additional members. */
function itemOf({ id, tool, arguments: text, found }: Step): Fields {
  return {
    type: `${WIRE_NAME}:tool_search`,
    id,
    status: 'completed',
    query: textOf(inputOf(text)['query']),
    ...(found !== undefined && { found }),
    ...(tool === CALL_TOOL && { call: text }),
  };
}

/** Arguments that are not a JSON object are wrapped, so that the block's input is one. */
function inputOf(text: string): Fields {
  try {
    const value = parseJson(text);
    if (isFields(value)) return value;
  } catch {
    // Handled after the try block.
  }
  return { unread: text };
}

/** The steps in an assistant message, by the index of the part that ends each; `taken` holds all their parts. */
export function stepsIn(parts: readonly Part[]): { steps: Map<number, PastStep>; taken: ReadonlySet<number> } {
  const steps = new Map<number, PastStep>();
  const taken = new Set<number>();
  const open = new Map<string, { at: number; block: Fields }>();
  parts.forEach((part, at) => {
    if (part.type !== 'opaque') return;
    const value = fieldsOf(part.value);
    const type = textOf(value['type']);
    if (type === 'server_tool_use') {
      if (value['name'] === MESSAGES_SEARCH || value['name'] === CALL_TOOL)
        open.set(textOf(value['id']), { at, block: value });
    } else if (type === 'tool_search_tool_result') {
      const use = open.get(textOf(value['tool_use_id']));
      if (use === undefined) return;
      steps.set(at, fromBlocks(use.block, fieldsOf(value['content'])));
      taken.add(use.at).add(at);
    } else {
      const step = ITEM_NAMES.includes(type) ? fromItem(value) : fromDetail(type, value);
      if (step === undefined) return;
      steps.set(at, step);
      taken.add(at);
    }
  });
  return { steps, taken };
}

function fromBlocks(use: Fields, content: Fields): PastStep {
  const id = textOf(use['id']);
  const input = fieldsOf(use['input']);
  const found = content['tool_references'];
  return {
    id: id.startsWith(MESSAGES_ID) ? id.slice(MESSAGES_ID.length) : id,
    tool: use['name'] === CALL_TOOL ? CALL_TOOL : SEARCH_TOOL,
    arguments: textOrUndefined(input['unread']) ?? stringifyJson(input),
    ...(Array.isArray(found) && { found: found.map((each) => textOf(fieldsOf(each)['tool_name'])) }),
  };
}

function fromItem(item: Fields): PastStep {
  const call = textOrUndefined(item['call']);
  const found = item['found'];
  return {
    id: textOf(item['id']),
    tool: call === undefined ? SEARCH_TOOL : CALL_TOOL,
    arguments: call ?? stringifyJson({ query: textOf(item['query']) }),
    ...(Array.isArray(found) && { found: found.map(textOf) }),
  };
}

function fromDetail(type: string, value: Fields): PastStep | undefined {
  const tool = value['tool_name'];
  if (type !== 'reasoning.server_tool_call' || (tool !== SEARCH_TOOL && tool !== CALL_TOOL)) return undefined;
  const found = foundIn(textOf(value['result']));
  return {
    id: textOf(value['tool_call_id']),
    tool,
    arguments: textOf(value['arguments']),
    ...(tool === SEARCH_TOOL && found !== undefined && { found }),
  };
}

function foundIn(result: string): string[] | undefined {
  try {
    const tools = fieldsOf(parseJson(result))['tools'];
    return Array.isArray(tools) ? listOf(tools).map((tool) => textOf(fieldsOf(tool)['name'])) : undefined;
  } catch {
    return undefined;
  }
}
