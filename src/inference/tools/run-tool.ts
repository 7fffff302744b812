/** Runs one call of a server tool within the limits of the installation. A failure is a result for the model. */
import { GatewayError } from '../../base/errors.ts';
import { parseJson, stringifyJson } from '../../base/json.ts';
import { argumentsProblem } from '../../formats/adapters/deferred-tools/index.ts';
import { type Fields, isFields } from '../../formats/conversation/fields.ts';
import type { SuspendedCall } from '../../formats/conversation/suspended.ts';
import type { ToolsRunning } from '../turns/gateway-tools.ts';
import { screenedArguments, screenedResult } from './guarded.ts';
import { type RequestedTool, ToolError, type ToolOutcome } from './tool.ts';

/** A tool whose calls the gateway runs. */
export type RunTool = RequestedTool & Required<Pick<RequestedTool, 'run'>>;

interface CallRunning {
  running: ToolsRunning;
  /** Calls of the request so far, this one included. */
  calls: number;
  /** The call as an earlier request has left it. */
  suspended?: SuspendedCall;
}

/** The items of a call that waits hold the results of several calls. */
const TIMES_A_RESULT = 8;

/**
 * @param text the arguments as the model wrote them
 * @throws GatewayError 403 when a guardrail blocks them
 */
export async function runTool(tool: RunTool, text: string, about: CallRunning): Promise<ToolOutcome> {
  const { running, calls } = about;
  const written = screenedArguments(text, running);
  const { parts, spending, request } = running;
  const { serverToolCalls, serverToolResultBytes } = parts.limits;
  if (calls > serverToolCalls) {
    spending.count({ executed: false });
    return failure(`not run: this request has already made ${serverToolCalls} calls of tools`, tool);
  }
  const input = inputOf(written, tool.parameters);
  if (typeof input === 'string') {
    spending.count({ executed: false });
    return failure(input, tool);
  }
  let outcome: ToolOutcome;
  try {
    outcome = screened(await withinTime(tool, input, about), tool, input, running);
  } catch (thrown) {
    running.signal.throwIfAborted();
    if (thrown instanceof ToolError) outcome = shownBy(thrown, tool, input);
    else if (thrown instanceof GatewayError && thrown.status !== 500) outcome = failure(thrown.message, tool, input);
    else {
      parts.log.error('a tool failed', { generation: request.id, tool: tool.functionName, cause: thrown });
      outcome = failure('the tool failed', tool, input);
    }
  }
  const { searches, fetches } = outcome;
  spending.count({ executed: true, ...(searches && { searches }), ...(fetches && { fetches }) });
  const { waits } = outcome;
  const size = Buffer.byteLength(waits === undefined ? outcome.result : stringifyJson(waits));
  const most = serverToolResultBytes * (waits === undefined ? 1 : TIMES_A_RESULT);
  if (size <= most) return outcome;
  const what = waits === undefined ? 'the result' : 'what the call has done so far';
  return failure(`${what} has ${size} bytes, more than the limit of ${most}`, tool, input);
}

/** The outcome as guardrails let the model read it. */
function screened(outcome: ToolOutcome, tool: RunTool, input: Fields, running: ToolsRunning): ToolOutcome {
  const { text, hits } = screenedResult(outcome.result, running);
  running.found(hits);
  if (text !== undefined) return { ...outcome, result: text };
  const { searches, fetches } = outcome;
  return {
    ...failure('a guardrail blocks what the tool found', tool, input),
    ...(searches && { searches }),
    ...(fetches && { fetches }),
  };
}

function failure(message: string, tool: RunTool, input: Fields = {}): ToolOutcome {
  const shown = tool.failure?.(message, input) ?? { item: { error: message } };
  return { result: JSON.stringify({ error: message }), failed: true, ...shown };
}

function shownBy({ message, shown }: ToolError, tool: RunTool, input: Fields): ToolOutcome {
  return { ...failure(message, tool, input), ...shown };
}

/** The arguments, or the error in them. */
function inputOf(text: string, schema: Fields): Fields | string {
  let value: unknown;
  try {
    value = text.trim() === '' ? {} : parseJson(text);
  } catch {
    return 'the arguments are not JSON';
  }
  if (!isFields(value)) return 'the arguments are not a JSON object';
  const problem = argumentsProblem(value, schema);
  return problem === undefined ? value : `the arguments are invalid: ${problem}`;
}

async function withinTime(tool: RunTool, input: Fields, { running, suspended }: CallRunning): Promise<ToolOutcome> {
  const { clock, limits } = running.parts;
  const time = new AbortController();
  const late = Promise.withResolvers<never>();
  const mostMs = limits.serverToolCallMs * (tool.timesLimit ?? 1);
  const timer = clock.timer(mostMs, () => {
    const error = new ToolError(`the call took longer than ${mostMs / 1000} seconds`);
    late.reject(error);
    time.abort(error);
  });
  const signal = AbortSignal.any([running.signal, time.signal]);
  const left = Promise.withResolvers<never>();
  const leave = () => left.reject(running.signal.reason);
  running.signal.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([tool.run(input, { ...running, signal }, suspended), late.promise, left.promise]);
  } finally {
    timer.cancel();
    running.signal.removeEventListener('abort', leave);
  }
}
