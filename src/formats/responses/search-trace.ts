/** The gateway's searches for deferred tools, as items. Their own members hold only the query; the rest is additional. */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { WIRE_ALIAS, WIRE_NAME } from '../../base/namespace.ts';
import { CALL_TOOL, type PastStep, readEach, SEARCH_TOOL, type SearchTrace } from '../conversation/deferred-search.ts';
import { fieldsOf, textOf, textOrUndefined } from '../conversation/fields.ts';

const TYPE = `${WIRE_NAME}:tool_search`;
const TYPES = [TYPE, `${WIRE_ALIAS}:tool_search`];

export const searchTrace: SearchTrace = {
  show({ id, tool, arguments: text, found }) {
    const value = {
      type: TYPE,
      id,
      status: 'completed',
      query: queryOf(text),
      ...(found !== undefined && { found }),
      ...(tool === CALL_TOOL && { call: text }),
    };
    return [{ type: 'opaque', origin: 'responses', value }];
  },
  read: readEach(stepOf),
};

function queryOf(text: string): string {
  try {
    return textOf(fieldsOf(parseJson(text))['query']);
  } catch {
    return '';
  }
}

function stepOf(value: unknown): PastStep | undefined {
  const item = fieldsOf(value);
  if (!TYPES.includes(textOf(item['type']))) return undefined;
  const call = textOrUndefined(item['call']);
  const found = item['found'];
  return {
    id: textOf(item['id']),
    tool: call === undefined ? SEARCH_TOOL : CALL_TOOL,
    arguments: call ?? stringifyJson({ query: textOf(item['query']) }),
    ...(Array.isArray(found) && { found: found.map(textOf) }),
  };
}
