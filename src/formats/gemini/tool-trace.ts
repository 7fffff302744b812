/** Calls of server tools, as the parts `toolCall` and `toolResponse`, which Google has for tools that it runs. */
import { WIRE_NAME } from '../../base/namespace.ts';
import { argumentsOf, parseInput } from '../conversation/call-input.ts';
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
import { partsOf } from './decode-contents.ts';

/** Distinguishes the gateway's tools from those that Google ran. */
const ID_PREFIX = `${WIRE_NAME}_`;

export const toolTrace: ToolTrace = {
  holds: ({ contents }) => listOf(contents).some((content) => partsOf(content).some(isOwnStep)),
  replaces: false,
  start: (step) =>
    part({ toolCall: { id: idOf(step), toolType: step.tool, args: { name: step.name, input: inputOf(step) } } }),
  end: (step) =>
    part({
      toolResponse: {
        id: idOf(step),
        toolType: step.tool,
        response: { ...step.item, [step.failed ? 'error' : 'output']: step.result },
      },
    }),
  read,
};

/** Whether the part of a request shows a call of the gateway's own tools. */
function isOwnStep(value: unknown): boolean {
  const { toolCall, toolResponse } = fieldsOf(value);
  return textOf(fieldsOf(toolCall ?? toolResponse)['id']).startsWith(ID_PREFIX);
}

function part(value: Fields): OpaquePart {
  return { type: 'opaque', origin: 'gemini', value };
}

/** Two parts have it, so it cannot tell how the call ended. */
function idOf(step: ToolStart): string {
  return `${ID_PREFIX}${stepId({ ...step, failed: false })}`;
}

function inputOf({ arguments: text }: ToolStart): unknown {
  return text.trim() === '' ? {} : parseInput(text);
}

function read(parts: readonly Part[]): PastToolSteps {
  const steps = new Map<number, PastToolStep>();
  const taken = new Set<number>();
  const open = new Map<string, { at: number; call: Fields }>();
  parts.forEach((each, at) => {
    if (each.type !== 'opaque') return;
    const { toolCall, toolResponse } = fieldsOf(each.value);
    const shown = fieldsOf(toolCall ?? toolResponse);
    const id = textOf(shown['id']);
    if (!id.startsWith(ID_PREFIX)) return;
    if (isFields(toolCall)) {
      open.set(id, { at, call: toolCall });
      return;
    }
    const begun = open.get(id);
    if (begun === undefined) return;
    steps.set(at, stepOf(id, begun.call, fieldsOf(shown['response'])));
    taken.add(begun.at).add(at);
  });
  return { steps, taken };
}

/** Clients may have lost the text that the model read; the other members are used instead. */
function stepOf(id: string, call: Fields, response: Fields): PastToolStep {
  const { name, input } = fieldsOf(call['args']);
  const { output, error, ...shown } = response;
  return {
    ...readStepId(id.slice(ID_PREFIX.length), ''),
    failed: error !== undefined,
    name: textOf(name),
    arguments: argumentsOf(input),
    result: textOrUndefined(error ?? output) ?? shownResult(shown),
  };
}
