/** Kill -9 while a callback is being delivered: the event is delivered again after the restart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { batchesOf, chatBatch, scripted } from '../batches/batches-client.ts';
import { Receiver } from '../batches/receiver.ts';

test('a callback that was cut off by kill -9 is delivered after the restart, with the same id', async (t) => {
  const receiver = await new Receiver().listen();
  t.after(() => receiver.close());
  // The first attempt never gets an answer.
  receiver.answers = [() => {}, 200];
  const yaml = { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] } };
  const first = await startGatewayProcess(t, { yaml });
  const { id } = await batchesOf(first).submitted(chatBatch([scripted('a')], { callback_url: receiver.url }));
  await receiver.got(id);
  first.signal('SIGKILL');
  await first.exit;
  const second = await startGatewayProcess(t, { home: first.home });
  const [one, other] = await receiver.got(id, 2);
  assert.equal(other!.headers['webhook-id'], one!.headers['webhook-id']);
  assert.equal(other!.body, one!.body);
  const { send, ended } = batchesOf(second);
  assert.equal((await ended(id)).status, 'completed');
  assert.equal((await send('GET', `/batches/${id}/callback`)).body.url, receiver.url);
});
