/**
 * `svc:mcp`, and `mcp` of the responses format: tools of remote MCP servers (streamable HTTP, or the older transport
 * with SSE). Each tool is a function for the model, and the gateway makes the calls through the checked egress.
 */
import type { ServerTool } from '../tool.ts';
import { McpServer } from './server.ts';
import { MCP, readServer } from './settings.ts';

export { MCP } from './settings.ts';

export const mcp: ServerTool = {
  name: 'svc:mcp',
  named: 'server_label',
  check: (settings, path, shownName) => void readServer(settings, path, shownName === MCP),
  begin: (settings, path, _installation, _declared, shownName) =>
    new McpServer(readServer(settings, path, shownName === MCP), path, shownName === MCP),
};
