/**
 * A process that dies while the model works in a container: what the turns have cost is charged once, and the container is
 * free again after its claim has ended, with the files from before the request.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { embeddedTarget, rowsOnce } from '../../src/testing/database/rows.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const pricing = { prompt: '0.000003', completion: '0.000015' };
const USAGE = { input: 10, output: 5 };
const TURN_NANO = 10n * 3_000n + 5n * 15_000n;
const BODY = {
  model: 'test/it',
  input: 'Do it',
  tools: [
    {
      type: 'svc:bash',
      parameters: { engine: 'svc', environment: { type: 'container_reference', container_id: 'work' } },
    },
  ],
};
/** More than the 20 s that a request waits for a container, and 30 s are the longest claim. */
const MOST_TRIES = 4;

test('killed while a model works in a container: every turn is charged once, and the files from before are there', {
  skip,
}, async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const call = (command: string): Told => ({
    calls: [{ id: 'call_1', name: 'bash', arguments: JSON.stringify({ command }) }],
    usage: USAGE,
  });
  const done: Told = { text: 'ok', usage: USAGE };
  const script = (...told: Told[]) =>
    upstream.script(
      'it',
      told.map((each) => answerOf('chat', false, each)),
    );
  const url = script(call('echo kept > kept'), done);
  const home = await gatewayHome(t);
  const yaml = plannedYaml(url, { model: { id: 'test/it', pricing } });
  const first = await startGatewayProcess(t, { home, yaml });
  assert.equal((await first.post('/responses', BODY)).status, 200);
  upstream.script('it', [answerOf('chat', false, call('echo half > half')), { end: 'stall-before-headers' }]);
  const before = upstream.requests('it').length;
  void first.post('/responses', BODY).catch(() => {});
  await upstream.request('it', before + 2);
  first.signal('SIGKILL');
  await first.exit;
  const second = await startGatewayProcess(t, { home });
  let result = '';
  for (let tries = 0; !/kept/.test(result); tries += 1) {
    assert.ok(tries < MOST_TRIES, result);
    script(call('ls'), done);
    const { output } = (await (await second.post('/responses', BODY)).json()) as Json;
    result = output[0].result;
  }
  assert.doesNotMatch(result, /half/);
  const rows = await rowsOnce(embeddedTarget(home), 3);
  const killed = rows.find(({ status }) => status === null)!;
  assert.equal(killed.cost, TURN_NANO + killed.input! * 3_000n);
  assert.equal(rows.filter(({ status }) => status === null).length, 1);
});
