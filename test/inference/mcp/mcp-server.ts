/**
 * An MCP server as a process: `node mcp-server.ts`. Prints its port. `/mcp` speaks streamable HTTP, `/sse` the older
 * transport, `/session` the first with sessions; all need the header `authorization: Bearer secret-token`. `/calls` lists the
 * calls so far, `/sessions` the ids of open sessions.
 */
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const calls: { name: string; args: unknown }[] = [];

function serverOf(): McpServer {
  const server = new McpServer({ name: 'notes', version: '1.0.0' });
  const noted = (name: string, args: unknown) => void calls.push({ name, args });
  server.registerTool(
    'lookup',
    { description: 'Looks a key up.', inputSchema: { key: z.string() }, annotations: { readOnlyHint: true } },
    ({ key }) => {
      noted('lookup', { key });
      return { content: [{ type: 'text', text: `the value of ${key} is 42` }] };
    },
  );
  server.registerTool('delete.note', { description: 'Deletes a note.', inputSchema: { id: z.string() } }, ({ id }) => {
    noted('delete.note', { id });
    return { content: [{ type: 'text', text: `deleted ${id}` }], structuredContent: { id } };
  });
  server.registerTool('broken', { description: 'Fails.' }, () => {
    noted('broken', {});
    return { content: [{ type: 'text', text: 'the disk is full' }], isError: true };
  });
  server.registerTool('silent', { description: 'Ends its connection without an answer.' }, ({ requestInfo }) => {
    noted('silent', {});
    process.emit('silent' as never, requestInfo as never);
    return new Promise(() => {});
  });
  return server;
}

const older = new Map<string, SSEServerTransport>();
const sessions = new Map<string, StreamableHTTPServerTransport>();
const silenced = new Set<http.ServerResponse>();
process.on('silent' as never, () => setImmediate(() => silenced.forEach((response) => void response.destroy())));

async function answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url!, 'http://localhost');
  if (pathname === '/calls') return void response.end(JSON.stringify(calls));
  if (pathname === '/sessions') return void response.end(JSON.stringify([...sessions.keys()]));
  if (pathname === '/moved') return void response.writeHead(308, { location: '/mcp' }).end();
  if (pathname === '/elsewhere') return void response.writeHead(308, { location: 'http://10.0.0.1/mcp' }).end();
  if (request.headers.authorization !== 'Bearer secret-token') return void response.writeHead(401).end('who are you?');
  silenced.add(response);
  response.on('close', () => silenced.delete(response));
  if (pathname === '/mcp') {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => void transport.close());
    await serverOf().connect(transport as never);
    await transport.handleRequest(request, response);
  } else if (pathname === '/session') {
    const known = sessions.get(String(request.headers['mcp-session-id']));
    const transport =
      known ??
      new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => void sessions.set(id, transport),
        onsessionclosed: (id) => void sessions.delete(id),
      });
    if (known === undefined) await serverOf().connect(transport as never);
    await transport.handleRequest(request, response);
  } else if (pathname === '/sse' && request.method === 'GET') {
    const transport = new SSEServerTransport('/messages', response);
    older.set(transport.sessionId, transport);
    await serverOf().connect(transport);
  } else if (pathname === '/messages') {
    await older.get(searchParams.get('sessionId') ?? '')?.handlePostMessage(request, response);
  } else response.writeHead(404).end();
}

const server = http.createServer((request, response) => {
  answer(request, response).catch(() => void response.destroy());
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as { port: number }).port}\n`);
});
