import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';

const COMPLETION = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
});
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${COMPLETION.length}\r\n\r\n${COMPLETION}`;

test('an upstream that closes each kept connection as the next request arrives fails none of 300, and each is charged once', async (t) => {
  const sockets = new Set<Socket>();
  let closed = 0;
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    let answered = false;
    let seen = '';
    socket.on('data', (piece) => {
      if (answered) {
        closed += 1;
        if (closed % 2 === 0) socket.resetAndDestroy();
        else socket.end();
        return;
      }
      seen += piece.toString('latin1');
      if (!seen.endsWith('}')) return;
      answered = true;
      socket.write(ANSWER);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const gateway = await startGateway(t, {
    providers: { only: { base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` } },
  });
  const statuses: number[] = [];
  for (let count = 0; count < 300; count++) {
    const reply = await gateway.post('/chat/completions', {
      model: 'test/only',
      messages: [{ role: 'user', content: 'hi' }],
    });
    statuses.push(reply.status);
    await reply.text();
  }
  assert.deepEqual(new Set(statuses), new Set([200]));
  assert.ok(closed > 250, `${closed} connections were closed with a request on its way`);
  // 100 prompt tokens at 0.000003 and 10 completion tokens at 0.000015.
  const expected = 300 * 0.000_45;
  await until(async () => {
    const { data } = (await (await gateway.get('/key')).json()) as { data: { usage: number } };
    return Math.abs(data.usage - expected) < 1e-9;
  }, 'the cost of 300 requests');
});
