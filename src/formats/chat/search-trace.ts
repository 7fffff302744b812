/** The gateway's searches for deferred tools, in `reasoning_details` (`reasoning.server_tool_call`). */
import { parseJson } from '../../base/json.ts';
import { CALL_TOOL, type PastStep, readEach, SEARCH_TOOL, type SearchTrace } from '../conversation/deferred-search.ts';
import { fieldsOf, listOf, textOf } from '../conversation/fields.ts';

const TYPE = 'reasoning.server_tool_call';

export const searchTrace: SearchTrace = {
  show({ id, tool, arguments: text, result }, index) {
    const value = {
      type: TYPE,
      tool_name: tool,
      arguments: text,
      result,
      tool_call_id: id,
      format: 'unknown',
      index,
    };
    return [{ type: 'opaque', origin: 'chat', value }];
  },
  read: readEach(stepOf),
};

function stepOf(value: unknown): PastStep | undefined {
  const detail = fieldsOf(value);
  const tool = detail['tool_name'];
  if (detail['type'] !== TYPE || (tool !== SEARCH_TOOL && tool !== CALL_TOOL)) return undefined;
  const found = foundIn(textOf(detail['result']));
  return {
    id: textOf(detail['tool_call_id']),
    tool,
    arguments: textOf(detail['arguments']),
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
