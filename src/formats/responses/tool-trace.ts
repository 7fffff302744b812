/** Calls of server tools, as items of their own types. The members that carry the call itself are additional. */
import { toWireName, WIRE_NAME } from '../../base/namespace.ts';
import { type Fields, fieldsOf, listOf, restOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import {
  type PastToolStep,
  readStepId,
  readSteps,
  shownResult,
  stepId,
  type ToolTrace,
} from '../conversation/tool-steps.ts';
import { codeStepOf, endedCode, isCode, isOwnCode, startedCode } from './code-trace.ts';
import { endedSearch, fileSearchStepOf, isFileSearch, isOwnFileSearch, startedSearch } from './file-search-trace.ts';
import { endedCall, isOwnMcpItem, mcpStepOf, mcpTrace, startedCall } from './mcp-trace.ts';
import { STEP_ID, suspendedSubagents } from './subagent-trace.ts';

const PREFIX = `${WIRE_NAME}:`;
/** Searches for deferred tools have this type, and are read by `search-trace.ts`, unless the item has a `result`. */
const SEARCH = `${WIRE_NAME}:tool_search`;

export const toolTrace: ToolTrace = {
  holds: ({ input }) =>
    listOf(input).some(
      (item) => isOurs(fieldsOf(item)['type']) || isOwnMcpItem(item) || isOwnFileSearch(item) || isOwnCode(item),
    ),
  replaces: true,
  start(step) {
    if (step.mcp !== undefined) return startedCall(step);
    if (isFileSearch(step)) return startedSearch(step);
    if (isCode(step)) return startedCode(step);
    return item({ type: step.tool, id: idOf({ ...step, failed: false }), status: 'in_progress' });
  },
  end(step) {
    if (step.mcp !== undefined) return endedCall(step);
    if (isFileSearch(step)) return endedSearch(step);
    if (isCode(step)) return endedCode(step);
    return item({
      type: step.tool,
      id: idOf(step),
      status: step.failed ? 'incomplete' : 'completed',
      ...step.item,
      call_id: step.id,
      name: step.name,
      arguments: step.arguments,
      ...('result' in step.item ? { output: step.result } : { result: step.result }),
    });
  },
  read: readSteps(stepOf),
  mcp: mcpTrace,
  suspended: suspendedSubagents,
};

function isOurs(type: unknown): boolean {
  return typeof type === 'string' && toWireName(type).startsWith(PREFIX);
}

function item(value: Fields) {
  return { type: 'opaque', origin: 'responses', value } as const;
}

function idOf(step: Parameters<typeof stepId>[0]): string {
  return `${STEP_ID}${stepId(step)}`;
}

const CARRIED = ['type', 'id', 'status', 'call_id', 'name', 'arguments', 'result'];
/** The type whose `result` is not the text that the model read: that is `output`. */
const IMAGE = `${WIRE_NAME}:image_generation`;

/** Clients that keep only members of their own schema drop the call; its other members are used as its result. */
function stepOf(value: unknown): PastToolStep | undefined {
  const fields = fieldsOf(value);
  if (isOwnMcpItem(value)) return mcpStepOf(fields);
  if (isOwnFileSearch(value)) return fileSearchStepOf(fields);
  if (isOwnCode(value)) return codeStepOf(fields);
  const type = toWireName(textOf(fields['type']));
  if (!type.startsWith(PREFIX)) return undefined;
  const result = textOrUndefined(fields[type === IMAGE ? 'output' : 'result']);
  if (type === SEARCH && result === undefined) return undefined;
  const id = textOf(fields['id']);
  const place = readStepId(id.startsWith(STEP_ID) ? id.slice(STEP_ID.length) : id, textOf(fields['call_id']));
  return {
    ...place,
    name: textOrUndefined(fields['name']) ?? type.slice(PREFIX.length),
    arguments: textOrUndefined(fields['arguments']) ?? '{}',
    result: result ?? shownResult(restOf(fields, CARRIED)),
  };
}
