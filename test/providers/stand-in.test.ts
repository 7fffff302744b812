import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const HELLO = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hello' }] };

async function listed(gateway: Awaited<ReturnType<typeof startGateway>>): Promise<string[]> {
  const { data } = (await (await gateway.get('/models')).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

test('next to a configured provider the simulated models answer by name and are not listed', async (t) => {
  const gateway = await startGateway(t, { providers: { mine: {} } });
  const reply = await gateway.post('/chat/completions', HELLO);
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  assert.match(text, /hello/);
  assert.deepEqual(await listed(gateway), ['test/mine']);
  const providers = (await (await gateway.get('/providers', MANAGEMENT_KEY)).json()) as { data: { slug: string }[] };
  assert.deepEqual(
    providers.data.map(({ slug }) => slug),
    ['mine'],
  );
  assert.equal((await gateway.get('/models/simulated/echo/endpoints')).status, 200);
  // A fallback of a configured model, and the other way around.
  gateway.upstream.script('mine', { status: 500, chunks: ['{}'] });
  assert.equal(
    (await gateway.post('/chat/completions', { ...HELLO, model: 'test/mine', models: [HELLO.model] })).status,
    200,
  );
});

test('without a provider they are listed', async (t) => {
  const gateway = await startGateway(t);
  assert.ok((await listed(gateway)).includes('simulated/echo'));
  assert.equal((await gateway.post('/chat/completions', HELLO)).status, 200);
});

test('GATEHOUSE_SIMULATED=off removes them, with providers and without', async (t) => {
  for (const providers of [{ mine: {} }, undefined]) {
    const gateway = await startGateway(t, { ...(providers && { providers }), env: { GATEHOUSE_SIMULATED: 'off' } });
    assert.ok(!(await listed(gateway)).includes('simulated/echo'));
    assert.equal((await gateway.post('/chat/completions', HELLO)).status, 400);
  }
});

test('a simulated provider that the yaml configures is one like any other', async (t) => {
  const gateway = await startGateway(t, { yaml: { providers: [{ id: 'simulated', kind: 'simulated' }] } });
  assert.ok((await listed(gateway)).includes('simulated/echo'));
});
