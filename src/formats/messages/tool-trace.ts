/** Calls of server tools, as `server_tool_use` blocks and blocks with their results. */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { WIRE_NAME } from '../../base/namespace.ts';
import type { OpaquePart, Part } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import {
  type PastToolStep,
  type PastToolSteps,
  readStepId,
  shownResult,
  stepId,
  type ToolStart,
  type ToolTrace,
} from '../conversation/tool-steps.ts';

/** Distinguishes the gateway's tools from those that a vendor ran. */
const ID_PREFIX = `srvtoolu_${WIRE_NAME}_`;

export const toolTrace: ToolTrace = {
  holds: ({ messages }) => listOf(messages).some(holdsStep),
  replaces: false,
  start: (step) =>
    block({
      type: 'server_tool_use',
      id: idOf(step),
      name: step.name,
      input: inputOf(step.arguments),
      caller: { type: 'direct' },
    }),
  end(step) {
    const own = step.tool.replace(':', '_');
    // Where a call ran is next to its result.
    const { container_id: container, files, ...shown } = step.item;
    const { type, content } = step.block ?? {
      type: `${own}_tool_result`,
      content: { type: `${own}_result`, ...shown },
    };
    // The text that the model read is additional, as is the mark of an error.
    return block({
      type,
      tool_use_id: idOf(step),
      content,
      ...(container !== undefined && { container_id: container }),
      ...(files !== undefined && { files }),
      ...(step.block !== undefined && { caller: { type: 'direct' } }),
      ...(step.failed && { is_error: true }),
      text: step.result,
    });
  },
  read,
};

function holdsStep(message: unknown): boolean {
  const { role, content } = fieldsOf(message);
  if (role !== 'assistant' || !Array.isArray(content)) return false;
  return content.some((each) => {
    const { type, id } = fieldsOf(each);
    return type === 'server_tool_use' && typeof id === 'string' && id.startsWith(ID_PREFIX);
  });
}

function block(value: Fields): OpaquePart {
  return { type: 'opaque', origin: 'messages', value };
}

/** Two blocks have it, so it cannot tell how the call ended. */
function idOf(step: ToolStart): string {
  return `${ID_PREFIX}${stepId({ ...step, failed: false })}`;
}

/** Arguments that are not a JSON object are wrapped, so that the block's input is one. */
function inputOf(text: string): Fields {
  try {
    const value = parseJson(text);
    if (isFields(value)) return value;
  } catch {
    // Handled after the try block.
  }
  return text === '' ? {} : { unread: text };
}

function read(parts: readonly Part[]): PastToolSteps {
  const steps = new Map<number, PastToolStep>();
  const taken = new Set<number>();
  const open = new Map<string, { at: number; use: Fields }>();
  parts.forEach((part, at) => {
    if (part.type !== 'opaque') return;
    const value = fieldsOf(part.value);
    const id = textOf(value['type'] === 'server_tool_use' ? value['id'] : value['tool_use_id']);
    if (!id.startsWith(ID_PREFIX)) return;
    if (value['type'] === 'server_tool_use') {
      open.set(id, { at, use: value });
      return;
    }
    const begun = open.get(id);
    if (begun === undefined) return;
    steps.set(at, stepOf(id, begun.use, value));
    taken.add(begun.at).add(at);
  });
  return { steps, taken };
}

/** Clients that keep only members of their own schema drop the text; the content is used instead. */
function stepOf(id: string, use: Fields, result: Fields): PastToolStep {
  const input = fieldsOf(use['input']);
  return {
    ...readStepId(id.slice(ID_PREFIX.length), ''),
    failed: result['is_error'] === true,
    name: textOf(use['name']),
    arguments: textOrUndefined(input['unread']) ?? stringifyJson(input),
    result: textOrUndefined(result['text']) ?? shownResult(result['content']),
  };
}
