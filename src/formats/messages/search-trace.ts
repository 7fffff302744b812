/** The gateway's searches for deferred tools, as blocks of the format's own tool search. */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { Part } from '../conversation/conversation.ts';
import {
  CALL_TOOL,
  type PastStep,
  type PastSteps,
  SEARCH_TOOL,
  type SearchStep,
  type SearchTrace,
} from '../conversation/deferred-search.ts';
import { type Fields, fieldsOf, isFields, textOf, textOrUndefined } from '../conversation/fields.ts';

const ID_PREFIX = 'srvtoolu_';
const SEARCH_NAME = 'tool_search_tool_bm25';
const RESULT_TYPE = 'tool_search_tool_result';

export const searchTrace: SearchTrace = {
  show: (step) => [
    { type: 'opaque', origin: 'messages', value: useBlock(step) },
    { type: 'opaque', origin: 'messages', value: resultBlock(step) },
  ],
  read,
};

function useBlock({ id, tool, arguments: text }: SearchStep): Fields {
  const name = tool === SEARCH_TOOL ? SEARCH_NAME : CALL_TOOL;
  return { type: 'server_tool_use', id: `${ID_PREFIX}${id}`, name, input: inputOf(text), caller: { type: 'direct' } };
}

function resultBlock({ id, found, result }: SearchStep): Fields {
  const content =
    found === undefined
      ? { type: 'tool_search_tool_result_error', error_code: 'invalid_tool_input', error_message: result }
      : {
          type: 'tool_search_tool_search_result',
          tool_references: found.map((name) => ({ type: 'tool_reference', tool_name: name })),
        };
  return { type: RESULT_TYPE, tool_use_id: `${ID_PREFIX}${id}`, content };
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

function read(parts: readonly Part[]): PastSteps {
  const steps = new Map<number, PastStep>();
  const taken = new Set<number>();
  const open = new Map<string, { at: number; block: Fields }>();
  parts.forEach((part, at) => {
    if (part.type !== 'opaque') return;
    const value = fieldsOf(part.value);
    if (value['type'] === 'server_tool_use') {
      if (value['name'] === SEARCH_NAME || value['name'] === CALL_TOOL) {
        open.set(textOf(value['id']), { at, block: value });
      }
    } else if (value['type'] === RESULT_TYPE) {
      const use = open.get(textOf(value['tool_use_id']));
      if (use === undefined) return;
      steps.set(at, stepOf(use.block, fieldsOf(value['content'])));
      taken.add(use.at).add(at);
    }
  });
  return { steps, taken };
}

function stepOf(use: Fields, content: Fields): PastStep {
  const id = textOf(use['id']);
  const input = fieldsOf(use['input']);
  const found = content['tool_references'];
  return {
    id: id.startsWith(ID_PREFIX) ? id.slice(ID_PREFIX.length) : id,
    tool: use['name'] === CALL_TOOL ? CALL_TOOL : SEARCH_TOOL,
    arguments: textOrUndefined(input['unread']) ?? stringifyJson(input),
    ...(Array.isArray(found) && { found: found.map((each) => textOf(fieldsOf(each)['tool_name'])) }),
  };
}
