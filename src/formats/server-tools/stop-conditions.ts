/** `stop_server_tools_when`, alike in all formats: the loop of server tools ends when one of the conditions holds. */
import Type from 'typebox';
import { invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, textOf } from '../conversation/fields.ts';
import { optional, word } from '../conversation/loose-schema.ts';

export type StopCondition =
  | { type: 'finish_reason_is'; reason: string }
  | { type: 'has_tool_call'; toolName: string }
  | { type: 'max_cost'; dollars: number }
  | { type: 'max_tokens_used'; tokens: number }
  | { type: 'step_count_is'; steps: number };

const TYPES = ['finish_reason_is', 'has_tool_call', 'max_cost', 'max_tokens_used', 'step_count_is'];

export const StopConditionSchema = Type.Object(
  {
    type: word(TYPES),
    reason: optional(Type.String({ description: "With `finish_reason_is`: the finish reason of a model's turn" })),
    tool_name: optional(Type.String({ description: 'With `has_tool_call`: the tool that was called' })),
    max_cost_in_dollars: optional(Type.Number({ description: 'With `max_cost`: the cost of all turns and tools' })),
    max_tokens: optional(Type.Integer({ description: 'With `max_tokens_used`: the tokens of all turns' })),
    step_count: optional(Type.Integer({ description: 'With `step_count_is`: the turns in which tools were called' })),
  },
  { $id: 'StopServerToolsWhen', description: 'Ends the calls of server tools; of several, the first that holds' },
);

/** The conditions of a request; undefined when it has none. @throws GatewayError 400 with the path of a faulty member */
export function stopConditions(request: Fields): readonly StopCondition[] | undefined {
  const list = request['stop_server_tools_when'];
  if (list === undefined || list === null) return undefined;
  if (!Array.isArray(list) || list.length === 0) {
    throw invalidField('stop_server_tools_when', 'must be a list with at least one condition');
  }
  return list.map((value, index) => readCondition(fieldsOf(value), `stop_server_tools_when[${index}]`));
}

function readCondition(value: Fields, path: string): StopCondition {
  switch (value['type']) {
    case 'finish_reason_is':
      return { type: 'finish_reason_is', reason: text(value, 'reason', path) };
    case 'has_tool_call':
      return { type: 'has_tool_call', toolName: text(value, 'tool_name', path) };
    case 'max_cost':
      return { type: 'max_cost', dollars: amount(value, 'max_cost_in_dollars', path, false) };
    case 'max_tokens_used':
      return { type: 'max_tokens_used', tokens: amount(value, 'max_tokens', path, true) };
    case 'step_count_is':
      return { type: 'step_count_is', steps: amount(value, 'step_count', path, true) };
    default:
      throw invalidField(`${path}.type`, `must be one of ${TYPES.join(', ')}`);
  }
}

function text(value: Fields, member: string, path: string): string {
  const written = textOf(value[member]);
  if (written === '') throw invalidField(`${path}.${member}`, 'must be a non-empty string');
  return written;
}

function amount(value: Fields, member: string, path: string, whole: boolean): number {
  const number = value[member];
  const valid = typeof number === 'number' && Number.isFinite(number) && number >= 0;
  if (!valid || (whole && !(Number.isSafeInteger(number) && number >= 1))) {
    throw invalidField(`${path}.${member}`, whole ? 'must be a whole number of at least 1' : 'must be at least 0');
  }
  return number;
}
