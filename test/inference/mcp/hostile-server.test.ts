/** MCP servers that mean harm, and calls that must not reach a server. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { startGateway } from '../../../src/testing/gateway/gateway.ts';
import { answerOf, type Told } from '../../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const TOOL = '{"name":"rm","inputSchema":{"type":"object"}}';
const USUAL = { list: `{"tools":[${TOOL}]}`, result: '{"content":[{"type":"text","text":"gone"}]}' };
/** The server's answer as JSON. */
let told = USUAL;
const methods: string[] = [];
const server = http.createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const { id, method, params } = JSON.parse(text);
  methods.push(method);
  if (id === undefined) return void response.writeHead(202).end();
  const { protocolVersion } = params;
  const results: Record<string, string> = {
    initialize: JSON.stringify({
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'x', version: '1' },
    }),
    'tools/list': told.list,
    'tools/call': told.result,
  };
  const body = `{"jsonrpc":"2.0","id":${id},"result":${results[method]}}`;
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
});
await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
after(() => {
  server.closeAllConnections();
  server.close();
});
const { port } = server.address() as AddressInfo;
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: { kind: 'chat' } }, yaml: { egress: { networks: ['127.0.0.1'], ports: [port] } } },
);
const SERVER = {
  type: 'mcp',
  server_label: 's',
  server_url: `http://127.0.0.1:${port}/mcp`,
  require_approval: 'never',
};

async function ask(more: Json, answers: Told[] = [{ text: 'ok' }], changed: Partial<typeof USUAL> = {}) {
  told = { ...USUAL, ...changed };
  methods.length = 0;
  gateway.upstream.script(
    'chat',
    answers.map((answer) => answerOf('chat', false, { usage: { input: 1, output: 1 }, ...answer })),
  );
  const reply = await gateway.post('/responses', { model: 'test/chat', input: 'hi', tools: [SERVER], ...more });
  const text = await reply.text();
  const body: Json = JSON.parse(text);
  return { status: reply.status, text, output: body.output as Json[] };
}
const called: Told[] = [{ calls: [{ id: 'c', name: 's_rm', arguments: '{}' }] }, { text: 'ok' }];

test('an allowed call is not made for a request that no endpoint can serve', async () => {
  const input = [
    { role: 'user', content: 'remove it' },
    { type: 'mcp_approval_request', id: 'mcpr_1.call_1', server_label: 's', name: 'rm', arguments: '{}' },
    { type: 'mcp_approval_response', approval_request_id: 'mcpr_1.call_1', approve: true },
  ];
  for (const more of [{ model: 'test/none' }, { provider: { only: ['nobody'] } }]) {
    const { status, text } = await ask({ input, ...more });
    assert.ok(status === 400 || status === 404, text);
    assert.deepEqual(methods, []);
  }
  assert.equal((await ask({ input })).status, 200);
  assert.equal(methods.at(-1), 'tools/call');
});

test('lists without an end, too long or nested too deeply are not used', async () => {
  let schema = '{"type":"object"}';
  for (let depth = 0; depth < 3_000; depth++) schema = `{"type":"object","properties":{"a":${schema}}}`;
  const long = JSON.stringify({ name: 'x', description: 'x'.repeat(5_000_000), inputSchema: { type: 'object' } });
  for (const [list, error, pages] of [
    [`{"tools":[{"name":"deep","inputSchema":${schema}}]}`, /nested too deeply/, 1],
    [`{"tools":[${long}],"nextCursor":"x"}`, /too long/, 2],
    [`{"tools":[${TOOL}],"nextCursor":"x"}`, /does not end/, 20],
  ] as const) {
    const { status, text, output } = await ask({}, [{ text: 'ok' }], { list });
    assert.equal(status, 200, text);
    assert.match(output[0].error, error);
    assert.equal(methods.filter((method) => method === 'tools/list').length, pages);
  }
});

test('a result of many bytes arrives as far as the limit of results allows, whatever is in it', async () => {
  const text = 'y'.repeat(400_000);
  const large = await ask({}, called, { result: JSON.stringify({ content: [{ type: 'text', text }] }) });
  assert.equal(large.output[1].output, text);
  const image = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(4_000_000) };
  const failed = await ask({}, called, { result: JSON.stringify({ content: [image], isError: true }) });
  assert.equal(failed.output[1].status, 'failed');
  assert.ok(failed.text.length < 10_000, String(failed.text.length));
});

test('a request has a limited number of servers', async () => {
  const tools = Array.from({ length: 17 }, (_, index) => ({ ...SERVER, server_label: `s${index}` }));
  const { status, text } = await ask({ tools });
  assert.equal(status, 400);
  assert.match(text, /tools\[16\]/);
  assert.deepEqual(methods, []);
});
