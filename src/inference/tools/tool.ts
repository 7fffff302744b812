/**
 * The contract of a server tool (docs/guides/server-tools.md): one file or folder each, listed in `registry.ts`. A tool
 * knows no format: it declares a function for the model, and returns what clients see of a call as the members of its
 * item (responses) and, where the messages format has its own block for the tool, as the content of that block.
 */
import type { Fields } from '../../formats/conversation/fields.ts';
import type { ToolsRunning } from '../turns/gateway-tools.ts';

export interface ServerTool {
  /** The wire name, a row of `formats/server-tools/server-tool.ts` with `built: true`. */
  readonly name: `svc:${string}`;
  /**
   * Checks the settings that the request gives the tool. @throws GatewayError 400
   * @param path of the settings: `tools[0].parameters`
   */
  check(settings: Fields, path: string): void;
  /** The tool for one request. @param settings checked */
  begin(settings: Fields): RequestedTool;
}

/** A tool of one request. Holds what its calls share, such as the number of uses left. */
export interface RequestedTool {
  /** Name of the function that the model sees: letters, digits and underscores. */
  readonly functionName: string;
  readonly description: string;
  /** JSON Schema of the arguments. The same in every turn, so that prompt caches hit. */
  readonly parameters: Fields;
  /**
   * Runs one call; several may run at once. What it throws is a failed result for the model: of a GatewayError or
   * `ToolError` the message, of anything else nothing.
   * @param input valid by `parameters`
   */
  run(input: Fields, running: ToolsRunning): ToolOutcome | Promise<ToolOutcome>;
}

export interface ToolOutcome {
  /** For the model. */
  result: string;
  failed?: boolean;
  /** Members of the item in the responses format besides `type`, `id` and `status`. */
  item: Fields;
  /** Type and content of the result block in the messages format; absent where the format has none for the tool. */
  block?: { type: string; content: unknown };
  searches?: number;
  fetches?: number;
}

/** A call that failed for a reason that the model may know. */
export class ToolError extends Error {
  /** Members of the item, as in `ToolOutcome`. */
  readonly item: Fields;
  readonly block: ToolOutcome['block'];

  constructor(message: string, shown: Partial<Pick<ToolOutcome, 'item' | 'block'>> = {}) {
    super(message);
    this.name = 'ToolError';
    this.item = shown.item ?? {};
    this.block = shown.block;
  }
}
