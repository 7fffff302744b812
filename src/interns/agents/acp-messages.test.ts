/** Whatever an agent writes, nothing of it reaches the standard error of the gateway. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { settle, TestClock, until } from '../../testing/clock/clock.ts';
import { connectOverAcp } from './acp.ts';

test('unexpected messages are dropped silently, and those around them arrive', async (t) => {
  const said = t.mock.method(console, 'error', () => {});
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const texts: string[] = [];
  const results: Record<string, object> = {
    initialize: { protocolVersion: 1, agentCapabilities: {} },
    'session/new': { sessionId: 's' },
  };
  const write = (message: unknown) => stdout.write(`${JSON.stringify(message)}\n`);
  let prompted: number | undefined;
  stdin.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().split('\n').filter(Boolean)) {
      const { id, method } = JSON.parse(line);
      if (method === 'session/prompt') prompted = id;
      else if (results[method] !== undefined) write({ jsonrpc: '2.0', id, result: results[method] });
    }
  });
  const agent = await connectOverAcp(
    { stdin, stdout, exited: new Promise(() => {}) },
    { workspace: '/workspace', modes: {}, steering: 'prompt', clock: new TestClock() },
  );
  const session = await agent.openSession(null, []);
  const events = { content: (text: string) => texts.push(text), reasoning() {}, model() {}, question() {} };
  const turn = session.prompt({ text: 'Go.', mode: 'manual' }, events);
  await until(() => prompted, 'the prompt arrives');
  const forged = '{"time":"now","level":"info","event":"forged"}\n';
  const update = (content: unknown) => ({
    ...{ jsonrpc: '2.0', method: 'session/update' },
    params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content } },
  });
  for (const message of [
    { jsonrpc: '2.0', id: forged, result: {} },
    { jsonrpc: '2.0', id: { deep: forged }, result: {} },
    { jsonrpc: '2.0', id: prompted! + 1, error: { code: 1, message: forged } },
    update({ type: 'text', text: 7 }),
    update({ type: 'text', text: 'heard' }),
    ...[update(forged), { jsonrpc: '2.0', method: 'session/update', params: forged }, forged, 7, null, {}, [forged]],
    { jsonrpc: '2.0', method: forged, params: {} },
    { jsonrpc: '2.0', method: 'elicitation/complete', params: forged },
    { jsonrpc: '2.0', method: '$/cancel_request', params: forged },
    {
      jsonrpc: '2.0',
      method: 'session/update',
      params: { sessionId: 's', update: { sessionUpdate: 'tool_call', title: 7 } },
    },
  ]) {
    write(message);
  }
  write({ jsonrpc: '2.0', id: prompted, result: { stopReason: 'end_turn' } });
  assert.equal((await turn).outcome, 'complete');
  await settle();
  assert.deepEqual(texts, ['heard']);
  assert.deepEqual(
    said.mock.calls.map(({ arguments: told }) => told),
    [],
  );
  agent.close();
});
