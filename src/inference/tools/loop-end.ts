/** When the loop of server tools ends: `stop_server_tools_when`, `max_tool_calls` and the installation's limit of turns. */

import { usdFromNano } from '../../base/money.ts';
import { toWireName } from '../../base/namespace.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import { type StopCondition, stopConditions } from '../../formats/server-tools/index.ts';
import type { FinishedTurn, LoopEnding } from '../turns/gateway-tools.ts';

/** The most turns with tool calls of a request without conditions. */
const MAX_STEPS = 30;

export class LoopEnd implements LoopEnding {
  readonly forcesOnce = true;
  readonly #conditions: readonly StopCondition[];
  readonly #steps: number;
  readonly #wireNames: ReadonlyMap<string, string>;

  /**
   * @param request checked
   * @param installed the most turns of the installation
   * @param wireNames of the tools, by the names of their functions
   */
  constructor(request: Fields, installed: number, wireNames: ReadonlyMap<string, string>) {
    const conditions = stopConditions(request);
    const asked = request['max_tool_calls'];
    const usual = typeof asked === 'number' ? Math.min(asked, MAX_STEPS) : MAX_STEPS;
    this.#wireNames = wireNames;
    this.#conditions = conditions ?? [];
    // Conditions replace the request's own limit, never that of the installation.
    this.#steps = conditions === undefined ? Math.min(usual, installed) : installed;
  }

  /** No turn may call tools. */
  get disabled(): boolean {
    return this.#steps === 0;
  }

  reached(turn: FinishedTurn): boolean {
    return turn.steps >= this.#steps || this.#conditions.some((each) => holds(each, turn, this.#wireNames));
  }
}

function holds(condition: StopCondition, turn: FinishedTurn, wireNames: ReadonlyMap<string, string>): boolean {
  switch (condition.type) {
    case 'finish_reason_is':
      return turn.finish.includes(condition.reason);
    case 'has_tool_call':
      return turn.called.some(
        (name) => condition.toolName === name || toWireName(condition.toolName) === wireNames.get(name),
      );
    case 'max_cost':
      return usdFromNano(turn.costNano) >= condition.dollars;
    case 'max_tokens_used':
      return turn.tokens >= condition.tokens;
    case 'step_count_is':
      return turn.steps >= condition.steps;
  }
}
