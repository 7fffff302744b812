/** Server tools in batches and with the response cache: the rules of interactive requests hold there, too. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';
import { openFolder } from '../../src/testing/egress-proxy/supervised.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { batchesOf, chatBatch, type Json } from '../batches/batches-client.ts';
import { controlOf } from '../workspaces/control.ts';

const place = { after: (close: () => unknown) => after(close as () => Promise<void>) };
const gateway = await startGateway(place, {
  providers: { chat: { kind: 'chat' } },
  yaml: { sandboxes: { folder: path.join(openFolder(place), 'sandboxes') } },
});
const control = controlOf(gateway);

const USAGE = { input: 10, output: 5 };
const datetime = { id: 'call_1', name: 'datetime', arguments: '{}' };
const LOOP: Told[] = [{ calls: [datetime] }, { text: 'Now.' }];
const DATETIME = { type: 'svc:datetime' };

function scripted(turns: readonly Told[]): void {
  gateway.upstream.script(
    'chat',
    turns.map((told) => answerOf('chat', false, { usage: USAGE, ...told })),
  );
}

const body = (tool: Json) => ({ model: 'test/chat', messages: [{ role: 'user', content: 'When?' }], tools: [tool] });
const sent = () => gateway.upstream.requests('chat').length;

async function workspaceKey(slug: string): Promise<string> {
  const workspace = await control.made({ name: slug, slug });
  return (await control.keyIn(workspace.id, slug)).token;
}

test('an item of a batch runs its tools, each turn is charged, and a disabled tool is refused', async () => {
  const item = { custom_id: 'one', body: { messages: body(DATETIME).messages, tools: [DATETIME] } };
  const given = chatBatch([item], { model: 'test/chat' });
  const batches = batchesOf(gateway, await workspaceKey('batches'));
  const before = sent();
  scripted(LOOP);
  const [{ response }] = (await batches.ended((await batches.submitted(given)).id)).results;
  assert.equal(sent(), before + 2);
  assert.equal(response.body.choices[0].message.content, 'Now.', JSON.stringify(response));
  const { prompt_tokens: prompt, server_tool_use_details: tools } = response.body.usage;
  assert.deepEqual([prompt, tools.tool_calls_executed], [20, 1]);
  await control.call('PATCH', '/workspaces/batches', { disabled_server_tools: ['svc:datetime'] });
  await batches.refused(batches.send('POST', '/batches', given), 403, /tools\[0\]\.type names svc:datetime/);
});

const ask = async (tool: Json, key?: string) => {
  const reply = await gateway.post('/chat/completions', body(tool), {
    'x-svc-cache': 'true',
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  });
  return { status: reply.status, cache: reply.headers.get('x-svc-cache-status'), body: (await reply.json()) as Json };
};

test('a cached answer runs no tool and costs nothing, until the workspace disables the tool', async () => {
  const key = await workspaceKey('caches');
  scripted(LOOP);
  const first = await ask(DATETIME, key);
  assert.deepEqual([first.cache, first.body.usage.server_tool_use_details.tool_calls_executed], ['MISS', 1]);
  const before = sent();
  const second = await ask(DATETIME, key);
  assert.deepEqual([second.cache, second.body.choices[0].message.content, sent()], ['HIT', 'Now.', before]);
  assert.deepEqual(
    [second.body.usage.cost, second.body.usage.server_tool_use_details?.tool_calls_executed ?? 0],
    [0, 0],
  );
  await control.call('PATCH', '/workspaces/caches', { disabled_server_tools: ['svc:datetime'] });
  assert.equal((await ask(DATETIME, key)).status, 403);
});

test('what tools do in a container is done for every request', { skip }, async () => {
  const tool = {
    type: 'svc:bash',
    parameters: { engine: 'svc', environment: { type: 'container_reference', container_id: 'counted' } },
  };
  const call = { id: 'call_1', name: 'bash', arguments: JSON.stringify({ command: 'echo x >> log; wc -l < log' }) };
  for (const lines of [1, 2]) {
    scripted([{ calls: [call] }, { text: 'Done.' }]);
    const { cache, body: answer } = await ask(tool);
    assert.equal(cache, null);
    const [{ result }] = answer.choices[0].message.reasoning_details;
    assert.equal(JSON.parse(result).stdout.trim(), String(lines));
  }
});
