/**
 * Calls of MCP tools that the client has approved since the answer that asked for approval. They run before the first turn, once
 * limits and budgets cover it.
 */
import type { OpaquePart } from '../../formats/conversation/conversation.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { McpAnswer } from '../../formats/conversation/mcp.ts';
import type { CallResult, ToolStart, ToolTrace } from '../../formats/conversation/tool-steps.ts';
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

export class ApprovedCalls {
  readonly #trace: ToolTrace;
  readonly #approved: readonly McpAnswer[];
  /** By the ids of the requests for approval. */
  readonly results = new Map<string, CallResult>();
  /** What the client sees of them. */
  shown: readonly OpaquePart[] = [];

  /** @param request the body */
  constructor(trace: ToolTrace, request: Fields) {
    this.#trace = trace;
    this.#approved = trace.mcp?.answersIn(request).filter(({ approved }) => approved) ?? [];
  }

  get any(): boolean {
    return this.count > 0;
  }

  get count(): number {
    return this.#approved.length;
  }

  /** @throws GatewayError 403 when a guardrail blocks the arguments */
  async run(offered: readonly Offered[], running: ToolsRunning): Promise<void> {
    const parts = this.#approved.map(async (answer, index) => {
      const found = offered.find(({ tool: { mcp } }) => mcp?.label === answer.label && mcp.name === answer.name);
      return found === undefined ? [] : [await this.#one(answer, found, { running, calls: index + 1 })];
    });
    this.shown = (await Promise.all(parts)).flat();
  }

  async #one(
    answer: McpAnswer,
    { shownName, tool }: Offered,
    about: Parameters<typeof runTool>[2],
  ): Promise<OpaquePart> {
    const { approvalId, callId: id, arguments: text } = answer;
    const outcome = await runTool(tool as RunTool, text, about);
    const { result, failed = false, item } = outcome;
    this.results.set(approvalId, { result, failed });
    const start: ToolStart = {
      ...PLACE,
      id,
      tool: shownName,
      name: tool.functionName,
      arguments: text,
      mcp: tool.mcp!,
      approvalId,
    };
    return this.#trace.end({ ...start, result, failed, item });
  }
}
