/** A small MCP server on standard input and output, as agents start it: one tool, `lookup`, that knows a value for any key. */
import readline from 'node:readline';

interface Call {
  id?: number | string;
  method: string;
  params?: { protocolVersion?: string; arguments?: { key?: string } };
}

const TOOL = {
  name: 'lookup',
  description: 'Looks up the value of a key.',
  inputSchema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
};

function resultOf({ method, params }: Call): unknown {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'notes', version: '1.0.0' },
      };
    case 'tools/list':
      return { tools: [TOOL] };
    case 'tools/call':
      return { content: [{ type: 'text', text: `the value of ${params?.arguments?.key} is 42` }] };
    default:
      return {};
  }
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const call = JSON.parse(line) as Call;
  if (call.id === undefined) return;
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: call.id, result: resultOf(call) })}\n`);
});
