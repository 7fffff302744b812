/** A connection to an MCP server: the SDK's client, whose requests go through the checked egress. Loaded on first use. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { readDocument } from '../../../base/json.ts';
import { type Egress, EgressError } from '../../../egress/index.ts';
import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  textOf,
  textOrUndefined,
} from '../../../formats/conversation/fields.ts';
import { McpNetwork } from './network.ts';
import type { ServerSettings } from './settings.ts';

const MAX_PAGES = 20;
/** Limits of a server's list of tools, which apply before `allowed_tools` chooses from it. */
const MAX_LISTED_BYTES = 8 * 1024 * 1024;
const MAX_DEPTH = 100;
/** A call whose connection breaks has failed. */
const NEVER = {
  maxRetries: 0,
  initialReconnectionDelay: 1000,
  maxReconnectionDelay: 1000,
  reconnectionDelayGrowFactor: 1,
};

export interface ListedTool {
  name: string;
  description: string | null;
  schema: Fields;
  annotations: unknown;
}

interface CallResult {
  content: readonly Fields[];
  structured: unknown;
  failed: boolean;
}

/** A server that cannot be used, in words that the model and the client may read. */
export class McpFailure extends Error {
  /** As the `error` of an `mcp_call` item. */
  readonly shown: Fields | string;

  constructor(message: string, shown: Fields | string = message) {
    super(message);
    this.name = 'McpFailure';
    this.shown = shown;
  }
}

interface ConnectionParts {
  egress: Egress;
  /** Of the connection and each of its requests. */
  timeoutMs: number;
}

export class McpConnection {
  readonly #client: Client;
  readonly #sdk: Sdk;
  readonly #network: McpNetwork;
  readonly #timeoutMs: number;

  private constructor(client: Client, sdk: Sdk, network: McpNetwork, timeoutMs: number) {
    this.#client = client;
    this.#sdk = sdk;
    this.#network = network;
    this.#timeoutMs = timeoutMs;
  }

  /** Rejects with McpFailure. */
  static async open(
    { url, headers }: Pick<ServerSettings, 'url' | 'headers'>,
    { egress, timeoutMs }: ConnectionParts,
    signal: AbortSignal,
  ): Promise<McpConnection> {
    const sdk = await loadSdk();
    const network = new McpNetwork(egress, timeoutMs);
    const requestInit = { headers };
    const connect = async (transport: Transport) => {
      const client = new sdk.Client({ name: 'gatehouse', version: '1' }, { capabilities: {} });
      await network.within('several', () => client.connect(transport, { signal, timeout: timeoutMs }));
      return new McpConnection(client, sdk, network, timeoutMs);
    };
    const target = new URL(url);
    try {
      const { fetchWithoutStream: fetch } = network;
      return await connect(
        new sdk.StreamableHTTPClientTransport(target, { fetch, requestInit, reconnectionOptions: NEVER }),
      ).catch((error: unknown) => {
        if (!isOfOlderServer(error, sdk)) throw error;
        return connect(new sdk.SSEClientTransport(target, { fetch: network.fetch, requestInit }));
      });
    } catch (error) {
      network.close();
      throw asFailure(error, sdk);
    }
  }

  /** Rejects with McpFailure. */
  async list(signal: AbortSignal): Promise<ListedTool[]> {
    const tools: ListedTool[] = [];
    let cursor: string | undefined;
    let bytes = 0;
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const listed = await this.#guarded(() =>
        this.#client.request({ method: 'tools/list', params }, this.#sdk.ListToolsResultSchema, this.#options(signal)),
      );
      bytes += sizeOf(listed.tools);
      if (bytes > MAX_LISTED_BYTES) throw new McpFailure('the list of its tools is too long');
      tools.push(
        ...listed.tools.map(({ name, description = null, inputSchema, annotations }) => {
          return { name, description, schema: inputSchema as Fields, annotations };
        }),
      );
      cursor = listed.nextCursor;
      if (cursor === undefined) return tools;
    }
    throw new McpFailure('the list of its tools does not end');
  }

  /** Rejects with McpFailure, unless the tool itself failed. */
  async call(name: string, input: Fields, signal: AbortSignal): Promise<CallResult> {
    const params = { name, arguments: input };
    const result = fieldsOf(
      await this.#guarded(() =>
        this.#client.request({ method: 'tools/call', params }, this.#sdk.CallToolResultSchema, this.#options(signal)),
      ),
    );
    return {
      content: listOf(result['content']).filter(isFields),
      structured: result['structuredContent'],
      failed: result['isError'] === true,
    };
  }

  /** Ends the session at the server too, if it has one. */
  close(): void {
    const { transport } = this.#client;
    const ended =
      transport instanceof this.#sdk.StreamableHTTPClientTransport ? transport.terminateSession() : undefined;
    void Promise.resolve(ended)
      .catch(() => {})
      .then(() => this.#client.close())
      .catch(() => {})
      .finally(() => this.#network.close());
  }

  #options(signal: AbortSignal): RequestOptions {
    return { signal, timeout: this.#timeoutMs };
  }

  async #guarded<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await this.#network.within('one', run);
    } catch (error) {
      throw asFailure(error, this.#sdk);
    }
  }
}

/** In bytes of JSON. @throws McpFailure */
function sizeOf(tools: unknown): number {
  try {
    const { length } = readDocument(Buffer.from(JSON.stringify({ tools })), { maxDepth: MAX_DEPTH }).bytes;
    return length;
  } catch {
    throw new McpFailure('the list of its tools is nested too deeply');
  }
}

/** Servers that predate the streamable transport answer its first request with a 4xx status. */
function isOfOlderServer(error: unknown, sdk: Sdk): boolean {
  if (!(error instanceof sdk.StreamableHTTPError)) return false;
  const { code = 0 } = error;
  return code >= 400 && code < 500 && code !== 401 && code !== 403 && code !== 429;
}

/** The SDK's errors contain what the server wrote, so of them only codes and the messages of the protocol are passed on. */
function asFailure(error: unknown, sdk: Sdk): McpFailure {
  if (error instanceof EgressError) return new McpFailure(`its URL ${error.message}`);
  if (error instanceof sdk.McpError) {
    const message = error.message.slice(0, 1000);
    return new McpFailure(message, { type: 'mcp_protocol_error', code: error.code, message });
  }
  if (error instanceof sdk.StreamableHTTPError || error instanceof sdk.SseError) {
    const { code } = error;
    if (code === undefined || code < 100) return new McpFailure('it does not speak the Model Context Protocol');
    const message = `it answered with status ${code}`;
    return new McpFailure(message, { type: 'http_error', code, message });
  }
  return new McpFailure('it does not speak the Model Context Protocol');
}

type Sdk = Awaited<ReturnType<typeof importSdk>>;
let loaded: Promise<Sdk> | undefined;

function loadSdk(): Promise<Sdk> {
  loaded ??= importSdk();
  return loaded;
}

async function importSdk() {
  const [client, streamable, sse, types] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/client/sse.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  return { ...client, ...streamable, ...sse, ...types };
}

/** What the model reads of a result. */
export function textOfResult({ content, structured }: CallResult): string {
  const texts = content.map(writtenOut).filter((text) => text !== '');
  if (texts.length > 0) return texts.join('\n\n');
  return structured === undefined ? '' : JSON.stringify(structured);
}

function writtenOut(part: Fields): string {
  const resource = fieldsOf(part['resource']);
  switch (part['type']) {
    case 'text':
      return textOf(part['text']);
    case 'resource':
      return textOrUndefined(resource['text']) ?? `(file ${textOf(resource['uri'])})`;
    case 'resource_link':
      return `(link ${textOf(part['uri'])})`;
    default:
      return `(${textOf(part['type'])} of the type ${textOrUndefined(part['mimeType']) ?? 'unknown'}, which cannot be shown)`;
  }
}
