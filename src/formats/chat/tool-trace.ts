/** Calls of server tools, in `reasoning_details` (`reasoning.server_tool_call`). */
import { CALL_TOOL, SEARCH_TOOL } from '../conversation/deferred-search.ts';
import { fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import { type PastToolStep, readStepId, readSteps, stepId, type ToolTrace } from '../conversation/tool-steps.ts';

const TYPE = 'reasoning.server_tool_call';

export const toolTrace: ToolTrace = {
  holds: ({ messages }) => listOf(messages).some(holdsStep),
  replaces: false,
  hidesItems: true,
  start: () => undefined,
  end(step) {
    const value = {
      type: TYPE,
      id: stepId(step),
      tool_name: step.name,
      arguments: step.arguments,
      result: step.result,
      tool_call_id: step.id,
      format: 'unknown',
    };
    return { type: 'opaque', origin: 'chat', value };
  },
  read: readSteps(stepOf),
};

function holdsStep(message: unknown): boolean {
  const { role, reasoning_details: details } = fieldsOf(message);
  if (role !== 'assistant' || !Array.isArray(details)) return false;
  return details.some((detail) => fieldsOf(detail)['type'] === TYPE);
}

function stepOf(value: unknown): PastToolStep | undefined {
  const detail = fieldsOf(value);
  const name = textOf(detail['tool_name']);
  // Searches for deferred tools are shown in the same way, and are read by `search-trace.ts`.
  if (detail['type'] !== TYPE || name === '' || name === SEARCH_TOOL || name === CALL_TOOL) return undefined;
  return {
    ...readStepId(textOf(detail['id']), textOf(detail['tool_call_id'])),
    name,
    arguments: textOf(detail['arguments']),
    result: textOf(detail['result']),
  };
}
