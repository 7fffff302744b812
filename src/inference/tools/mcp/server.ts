/** An MCP server of one request: its tools are listed once, and stay the same in every turn. */
import { invalidField } from '../../../base/errors.ts';
import { parseJson, stringifyJson } from '../../../base/json.ts';
import type { Fields } from '../../../formats/conversation/fields.ts';
import { type McpList, type McpToolName, mcpFunctionName } from '../../../formats/conversation/mcp.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';
import { screenedResult } from '../guarded.ts';
import { type RequestedServer, type RequestedTool, ToolError, type ToolOutcome } from '../tool.ts';
import { type ListedTool, McpConnection, McpFailure, textOfResult } from './connection.ts';
import type { ServerSettings } from './settings.ts';

/** Of the connection and the list of tools, together with what servers may need to start. */
const DISCOVERY_MS = 30_000;
const MAX_TOOLS = 200;
const MAX_LIST_BYTES = 1024 * 1024;

export class McpServer implements RequestedServer {
  readonly label: string;
  readonly #settings: ServerSettings;
  readonly #path: string;
  /** Clients see lists, calls and requests for approval in words of their own. */
  readonly #hasWords: boolean;
  #listed: readonly ListedTool[] = [];
  #error: string | null = null;
  tools: readonly RequestedTool[] = [];

  constructor(settings: ServerSettings, path: string, hasWords: boolean) {
    this.label = settings.label;
    this.#settings = settings;
    this.#path = path;
    this.#hasWords = hasWords;
  }

  get list(): McpList | undefined {
    return this.#hasWords ? { label: this.label, tools: this.#listed, error: this.#error } : undefined;
  }

  async discover(running: ToolsRunning): Promise<void> {
    const { parts, signal } = running;
    const time = new AbortController();
    const timer = parts.clock.timer(DISCOVERY_MS, () => time.abort());
    try {
      const within = AbortSignal.any([signal, time.signal]);
      const connection = await this.#connect(running, within);
      this.#listed = this.#admitted(screened(await connection.list(within), running));
      this.tools = this.#listed.map((tool) => this.#toolOf(tool, connection));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof McpFailure)) throw error;
      const problem = time.signal.aborted ? `it did not answer within ${DISCOVERY_MS / 1000} s` : error.message;
      if (!this.#hasWords) throw invalidField(`${this.#path}.server_url`, `cannot be used: ${problem}`);
      this.#error = problem;
    } finally {
      timer.cancel();
    }
  }

  async #connect({ parts, onEnd }: ToolsRunning, signal: AbortSignal): Promise<McpConnection> {
    const { egress, limits } = parts;
    const connection = await McpConnection.open(this.#settings, { egress, timeoutMs: limits.serverToolCallMs }, signal);
    onEnd(() => connection.close());
    return connection;
  }

  #admitted(all: readonly ListedTool[]): ListedTool[] {
    const tools = all.filter((tool) => this.#settings.allows(namedOf(tool)));
    if (tools.length > MAX_TOOLS)
      throw new McpFailure(`it has more than ${MAX_TOOLS} tools; name some in allowed_tools`);
    const size = Buffer.byteLength(JSON.stringify(tools));
    if (size > MAX_LIST_BYTES) {
      throw new McpFailure(
        `the list of its tools has ${size} bytes, more than ${MAX_LIST_BYTES}; name some in allowed_tools`,
      );
    }
    return tools;
  }

  #toolOf(tool: ListedTool, connection: McpConnection): RequestedTool {
    return new McpTool(tool, connection, {
      label: this.label,
      about: this.#settings.description,
      hasWords: this.#hasWords,
      asksFirst: this.#settings.asksFirst(namedOf(tool)),
    });
  }
}

function namedOf({ name, annotations }: ListedTool) {
  return { name, readOnly: (annotations as Fields | undefined)?.['readOnlyHint'] === true };
}

/** The list as guardrails let the model read it. */
function screened(tools: ListedTool[], running: ToolsRunning): ListedTool[] {
  const written = stringifyJson(tools);
  const { text, hits } = screenedResult(written, running);
  running.found(hits);
  if (text === written) return tools;
  if (text !== undefined) {
    try {
      return parseJson(text) as ListedTool[];
    } catch {
      // A filter has changed more than a text: handled after the try block.
    }
  }
  throw new McpFailure('a guardrail blocks the list of its tools');
}

interface ToolAbout {
  label: string;
  about: string | undefined;
  hasWords: boolean;
  asksFirst: boolean;
}

class McpTool implements RequestedTool {
  readonly functionName: string;
  readonly description: string;
  readonly parameters: Fields;
  readonly asksFirst: boolean;
  readonly mcp?: McpToolName;
  readonly #name: string;
  readonly #label: string;
  readonly #connection: McpConnection;

  constructor({ name, description, schema }: ListedTool, connection: McpConnection, about: ToolAbout) {
    const { label, hasWords, asksFirst } = about;
    this.functionName = mcpFunctionName({ label, name });
    this.description = [description ?? '', about.about === undefined ? '' : `(${label}: ${about.about})`]
      .filter(Boolean)
      .join('\n');
    this.parameters = schema;
    this.asksFirst = asksFirst;
    if (hasWords) this.mcp = { label, name };
    this.#name = name;
    this.#label = label;
    this.#connection = connection;
  }

  async run(input: Fields, { signal }: ToolsRunning): Promise<ToolOutcome> {
    try {
      const result = await this.#connection.call(this.#name, input, signal);
      const text = textOfResult(result);
      if (!result.failed) return { result: text, item: this.#item() };
      return {
        result: text,
        failed: true,
        // In words: files would have no limit.
        item: this.#item({ type: 'mcp_tool_execution_error', content: [{ type: 'text', text }] }),
      };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof McpFailure)) throw error;
      throw new ToolError(`the server ${this.#label} failed: ${error.message}`, { item: this.#item(error.shown) });
    }
  }

  failure(message: string): Pick<ToolOutcome, 'item'> {
    return { item: this.#item(message) };
  }

  #item(error?: Fields | string): Fields {
    const failed = error === undefined ? {} : { error: this.mcp === undefined ? stringOf(error) : error };
    return this.mcp === undefined ? { serverLabel: this.#label, toolName: this.#name, ...failed } : failed;
  }
}

function stringOf(error: Fields | string): string {
  return typeof error === 'string' ? error : JSON.stringify(error);
}
