/**
 * Programs that the gateway runs for a request that declares `code_interpreter`: `code_interpreter_call`. Programs that
 * a vendor ran look alike, so the gateway recognizes its own by their ids.
 */
import type { OpaquePart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { type PastToolStep, readStepId, stepId, type ToolStart, type ToolStep } from '../conversation/tool-steps.ts';

/** The type of the declaration. */
const TYPE = 'code_interpreter';
const CALL = 'code_interpreter_call';
const ID = 'ci_';
/** An id that `stepId` made. */
const OWN_ID = /^ci_\d{1,4}\+?!?\./;

export function isCode({ tool }: Pick<ToolStart, 'tool'>): boolean {
  return tool === TYPE;
}

export function isOwnCode(value: unknown): boolean {
  const { type, id } = fieldsOf(value);
  return type === CALL && OWN_ID.test(textOf(id));
}

export function startedCode(step: ToolStart): OpaquePart {
  return item({ ...callOf(step, false), status: 'in_progress', code: '', container_id: '', outputs: null });
}

/** The members that carry the call itself are additional. */
export function endedCode(step: ToolStep): OpaquePart {
  const { code = '', container_id = '', outputs = null, ...others } = step.item;
  return item({
    ...callOf(step, step.failed),
    status: step.failed ? 'failed' : 'completed',
    ...{ code, container_id, outputs, ...others },
    ...{ call_id: step.id, name: step.name, arguments: step.arguments, result: step.result },
  });
}

function item(value: Fields): OpaquePart {
  return { type: 'opaque', origin: 'responses', value };
}

function callOf(step: ToolStart, failed: boolean): Fields {
  return { type: CALL, id: `${ID}${stepId({ ...step, failed })}` };
}

/** Clients that keep only members of the SDK's schema drop the call: the code and the outputs replace it. */
export function codeStepOf(value: Fields): PastToolStep {
  const { code, outputs } = value;
  return {
    ...readStepId(textOf(value['id']).slice(ID.length), textOf(value['call_id'])),
    name: textOrUndefined(value['name']) ?? TYPE,
    arguments: textOrUndefined(value['arguments']) ?? JSON.stringify({ code: textOf(code) }),
    result: textOrUndefined(value['result']) ?? JSON.stringify({ outputs: outputs ?? 'no longer known' }),
  };
}
