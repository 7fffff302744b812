/**
 * Calls of earlier answers that waited for functions of the client. They continue before the first turn, once limits and budgets
 * cover it, and either end, which is a result for the model, or wait for the client again, which is the whole answer.
 */
import type { Part } from '../../formats/conversation/conversation.ts';
import { type Fields, fieldsOf, textOf } from '../../formats/conversation/fields.ts';
import type { SuspendedCall } from '../../formats/conversation/suspended.ts';
import type { CallResult, ToolTrace } from '../../formats/conversation/tool-steps.ts';
import type { ToolsRunning } from '../turns/gateway-tools.ts';
import { type RunTool, runTool } from './run-tool.ts';
import type { RequestedTool } from './tool.ts';

interface Offered {
  /** The wire name in the client's spelling. */
  shownName: string;
  tool: RequestedTool;
}

/** They belong to a turn before the first one of the answer. */
const PLACE = { turn: 0, mixed: false };

export class ResumedCalls {
  readonly #trace: ToolTrace;
  readonly #pending: readonly SuspendedCall[];
  /** Of those that have ended, by `SuspendedCall.index`. */
  readonly results = new Map<number, CallResult>();
  /** What the client sees of them. */
  shown: readonly Part[] = [];
  /** Some wait for the client again. */
  waits = false;

  /** @param request the body */
  constructor(trace: ToolTrace, request: Fields) {
    this.#trace = trace;
    this.#pending = trace.suspended?.pendingIn(request) ?? [];
  }

  get count(): number {
    return this.#pending.length;
  }

  /** @throws GatewayError 403 when a guardrail blocks the arguments */
  async run(offered: readonly Offered[], running: ToolsRunning, callsBefore: number): Promise<void> {
    const parts = this.#pending.map(async (call, at) => {
      const found = offered.find(({ tool: { suspends } }) => suspends === (call.instance ?? ''));
      return found === undefined ? [] : await this.#one(call, found, { running, calls: callsBefore + at + 1 });
    });
    this.shown = (await Promise.all(parts)).flat();
  }

  async #one(
    suspended: SuspendedCall,
    { shownName, tool }: Offered,
    about: Parameters<typeof runTool>[2],
  ): Promise<readonly Part[]> {
    const { callId: id, index } = suspended;
    const text = JSON.stringify(takenBy(tool, suspended.input));
    const outcome = await runTool(tool as RunTool, text, { ...about, suspended });
    const { result, failed = false, item, waits } = outcome;
    if (waits !== undefined) {
      this.waits = true;
      return this.#trace.suspended!.asked(id, waits);
    }
    this.results.set(index, { result, failed });
    const start = { ...PLACE, id, tool: shownName, name: tool.functionName, arguments: text };
    return [this.#trace.end({ ...start, result, failed, item })];
  }
}

/** Of the members of a call and of its item, those that are arguments of the tool. */
function takenBy({ parameters }: RequestedTool, input: Fields): Fields {
  const known = Object.keys(fieldsOf(parameters['properties']));
  return Object.fromEntries(known.flatMap((name) => (textOf(input[name]) === '' ? [] : [[name, input[name]]])));
}
