/**
 * The contract of a server tool (docs/guides/server-tools.md): one file or folder each, listed in `registry.ts`. A tool
 * knows no format: it declares a function for the model, and returns what clients see of a call as the members of its
 * item (responses) and, where the messages format has its own block for the tool, as the content of that block.
 */

import type { Citation, FormatId, Part } from '../../formats/conversation/conversation.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { McpList, McpToolName } from '../../formats/conversation/mcp.ts';
import type { NativeWish } from '../../formats/conversation/native-tool.ts';
import type { SuspendedCall } from '../../formats/conversation/suspended.ts';
import type { InferenceParts } from '../parts.ts';
import type { ToolsAsking, ToolsRunning } from '../turns/gateway-tools.ts';

export interface ServerTool {
  /** The wire name, a row of `formats/server-tools/server-tool.ts` with `built: true`. */
  readonly name: `svc:${string}`;
  /** A request may declare it several times, each with another value of this setting or one without. */
  readonly named?: string;
  /** The setting `tools` lists server tools for requests that the tool makes, but not these. */
  readonly nestsTools?: readonly string[];
  /**
   * Checks the settings that the request gives the tool. @throws GatewayError 400
   * @param path of the settings: `tools[0].parameters`
   * @param shownName the wire name in the client's spelling, or the type of a vendor that stands for the tool
   * @param format of the request that declares the tool
   */
  check(settings: Fields, path: string, shownName: string, format: FormatId): void;
  /**
   * The tool for one request. @throws GatewayError 400 for what the installation does not have
   * @param settings checked
   * @param declared all server tools of the request
   */
  begin(
    settings: Fields,
    path: string,
    installation: Installation,
    declared: readonly DeclaredTool[],
    shownName: string,
  ): RequestedTool | RequestedServer;
}

/** An MCP server of one request, whose tools are functions for the model. */
export interface RequestedServer {
  readonly label: string;
  /**
   * Lists the tools. Called once, before the first turn. Rejects with a GatewayError for a server that fails,
   * unless the format can show that.
   */
  discover(running: ToolsRunning): Promise<void>;
  /** Empty until they are discovered. */
  readonly tools: readonly RequestedTool[];
  /** What clients see of the list; undefined if the declaration's type has no words for it. */
  readonly list: McpList | undefined;
}

export interface DeclaredTool {
  /** The wire name. */
  readonly name: string;
  readonly settings: Fields;
}

/** The parts of the installation that tools need before they run. */
export type Installation = Pick<
  InferenceParts,
  'limits' | 'webSearch' | 'catalog' | 'requestContainers' | 'workspaceFiles' | 'vectorStores'
>;

/** A tool of one request. Holds what its calls share, such as the number of uses left. */
export interface RequestedTool {
  /** Name of the function that the model sees: letters, digits and underscores. */
  readonly functionName: string;
  readonly description: string;
  /** JSON Schema of the arguments. The same in every turn, so that prompt caches hit. */
  readonly parameters: Fields;
  /**
   * Checks what takes time; undefined if there is nothing to wait for. Called before each turn.
   * Rejects with a GatewayError for what the installation or the caller does not have.
   */
  load?(asking: ToolsAsking): Promise<void> | undefined;
  /**
   * Runs one call; several may run at once. What it throws is a failed result for the model: of a GatewayError or
   * `ToolError` the message, of anything else nothing. Absent: the client gets the call, as that of a function of its own.
   * @param input valid by `parameters`
   * @param suspended what the call has done, if it waited for functions of the client, which it now has
   */
  run?(input: Fields, running: ToolsRunning, suspended?: SuspendedCall): ToolOutcome | Promise<ToolOutcome>;
  /** Calls may wait for functions of the client. The value of the setting that distinguishes tools of this kind, '' for none. */
  readonly suspends?: string;
  /** Without `run`: calls have an item type of their own in the responses format. */
  readonly ownCalls?: 'apply_patch';
  /** Calls change data that outlives the answer, so the request must not be answered from the response cache. */
  readonly lasting?: true;
  /** The settings for upstreams that have the tool themselves. Absent: the gateway runs every call. */
  readonly native?: NativeWish | undefined;
  /** A call may take this many times the limit of one call. Default 1. */
  readonly timesLimit?: number;
  /** What clients see of a call that failed outside of `run`. Absent: `error` in the item. */
  failure?(message: string, input: Fields): Pick<ToolOutcome, 'item' | 'block'>;
  /** Clients see it as a tool of an MCP server. */
  readonly mcp?: McpToolName;
  /** The client has to allow each call. */
  readonly asksFirst?: boolean;
  /** Citations of what the tool has found, for a text of the model. */
  cites?(text: string): Citation[];
}

export interface ToolOutcome {
  /** For the model. */
  result: string;
  failed?: boolean;
  /** Members of the item in the responses format besides `type`, `id` and `status`. */
  item: Fields;
  /** Type and content of the result block in the messages format; absent where the format has none for the tool. */
  block?: { type: string; content: unknown };
  /** What the item holds besides texts, for clients that see no items. */
  added?: readonly Part[];
  searches?: number;
  fetches?: number;
  /** The call has not ended: it waits for functions of the client, which these items call. */
  waits?: readonly Fields[];
}

/** A call that failed for a reason that the model may know. */
export class ToolError extends Error {
  /** What clients see of it; absent: as of any other failure. */
  readonly shown: Pick<ToolOutcome, 'item' | 'block'> | undefined;

  constructor(message: string, shown?: Pick<ToolOutcome, 'item' | 'block'>) {
    super(message);
    this.name = 'ToolError';
    this.shown = shown;
  }
}
