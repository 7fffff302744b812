/**
 * Calls of server tools that wait for the client: a subagent that may use functions of the client has called one. The
 * answer ends with that call. The client's next request carries the result of the call and the subagent's items so far.
 */
import type { Message, OpaquePart, ToolCallPart } from './conversation.ts';
import type { Fields } from './fields.ts';
import type { CallResult, ToolStart } from './tool-steps.ts';

export interface SuspendedCall {
  /** Its number among the suspended calls of the history, including those that have ended. */
  readonly index: number;
  /** As the model made it. */
  readonly callId: string;
  /** The setting that distinguishes several tools of a kind. */
  readonly instance: string | undefined;
  /** Arguments of the call, and the model that works on it. */
  readonly input: Fields;
  /** What the subagent has written and read since its task, in order: items of the responses format. */
  readonly earlier: readonly Fields[];
  /** Answers of the subagent so far. */
  readonly rounds: number;
}

/** How a format shows calls that wait for the client. */
export interface SuspendedTrace {
  /** Those of the history that have not ended. @param request checked */
  pendingIn(request: Fields): SuspendedCall[];
  /** The call, still in progress. @param item members of the tool's item */
  waiting(step: ToolStart, item: Fields): OpaquePart;
  /**
   * The calls that the client has to run.
   * @param callId of the suspended call
   * @param items what the subagent has written since the client's last results
   */
  asked(callId: string, items: readonly Fields[]): ToolCallPart[];
  /**
   * The messages as the model that started the subagents knows them: one call with one result for each.
   * @param results of the calls that were continued for this request, by `index`
   */
  settled(messages: readonly Message[], results: ReadonlyMap<number, CallResult>): readonly Message[];
}
