/** A process that dies during a later turn of an answer: the finished turns are charged exactly, the running one by estimate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep, systemClock } from '../../src/base/clock.ts';
import { embeddedTarget, rowsOnce } from '../../src/testing/database/rows.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { answerOf, chatChunk, streamOf } from '../../src/testing/upstream/answers.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';

const pricing = { prompt: '0.000003', completion: '0.000015' };
const SEARCH = { id: 'call_1', name: 'search_tools', arguments: '{"query":"create invoice"}' };
const FIRST = { input: 10, output: 5 };
const FIRST_NANO = 10n * 3_000n + 5n * 15_000n;

const BODY = {
  model: 'test/it',
  stream: true,
  user: 'tag',
  messages: [{ role: 'user', content: 'Bill Ada' }],
  tools: [
    { type: 'function', function: { name: 'create_invoice', parameters: { type: 'object' } }, defer_loading: true },
  ],
  deferred_tools: { protocol: 'v1', profile: 'portable', validation: 'runtime', search: { type: 'bm25' } },
};

const SECOND: Record<string, Answer> = {
  'before the head': { end: 'stall-before-headers' },
  'after some text': streamOf([chatChunk({ content: 'x'.repeat(400) })], { end: 'stall' }),
};

for (const [moment, second] of Object.entries(SECOND)) {
  test(`killed in the second turn ${moment}: one row, with the exact cost of the first turn`, async (t) => {
    const upstream = await startUpstream();
    t.after(() => upstream.close());
    const url = upstream.script('it', [
      answerOf('chat', true, { text: 'Looking.', calls: [SEARCH], usage: FIRST }),
      second,
    ]);
    const home = await gatewayHome(t);
    const gateway = await startGatewayProcess(t, {
      home,
      yaml: plannedYaml(url, { model: { id: 'test/it', pricing } }),
    });
    const reply = await gateway.post('/chat/completions', BODY);
    const seen = reply.body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
    await upstream.request('it', 2);
    let text = '';
    while (moment === 'after some text' && !text.includes('xxx')) text += (await seen.next()).value;
    gateway.signal('SIGKILL');
    await gateway.exit;
    await startGatewayProcess(t, { home });
    const [row, ...others] = await rowsOnce(embeddedTarget(home), 1);
    assert.deepEqual([others.length, row!.tag, row!.status], [0, 'tag', null]);
    // The running turn: its prompt by the size of the request, its text by a token for four bytes.
    assert.ok(row!.input! > 1_000n && row!.input! < 3_000n, String(row!.input));
    assert.equal(row!.output, moment === 'after some text' ? 100n : 0n);
    assert.equal(row!.cost, FIRST_NANO + row!.input! * 3_000n + row!.output! * 15_000n);
  });
}

for (const moment of ['during a search', 'in the turn after it'] as const) {
  test(`killed ${moment}: the finished turn and the search are charged once`, async (t) => {
    const upstream = await startUpstream();
    t.after(() => upstream.close());
    const found = { chunks: ['{"results":[]}'] };
    const engine = upstream.script('engine', [moment === 'during a search' ? { end: 'stall-before-headers' } : found]);
    const call = { id: 'call_1', name: 'web_search', arguments: '{"query":"bees"}' };
    const url = upstream.script('it', [
      answerOf('chat', true, { text: 'Looking.', calls: [call], usage: FIRST }),
      { end: 'stall-before-headers' },
    ]);
    const home = await gatewayHome(t);
    const engines = [{ kind: 'searxng', url: engine, price_per_search: 0.25 }];
    const yaml = plannedYaml(url, { model: { id: 'test/it', pricing }, web_search: { engines } });
    const gateway = await startGatewayProcess(t, { home, yaml });
    const { deferred_tools: _, ...body } = BODY;
    void gateway.post('/chat/completions', { ...body, tools: [{ type: 'svc:web_search' }] }).catch(() => {});
    await upstream.request('engine', 1);
    if (moment !== 'during a search') await upstream.request('it', 2);
    // The journal has what happened up to 50 ms ago, on a machine that has nothing else to do.
    else await sleep(systemClock, 1_000);
    gateway.signal('SIGKILL');
    await gateway.exit;
    await startGatewayProcess(t, { home });
    const [row, ...others] = await rowsOnce(embeddedTarget(home), 1);
    assert.equal(others.length, 0);
    const ofTurn = moment === 'during a search' ? 0n : row!.input! * 3_000n;
    assert.equal(row!.cost, FIRST_NANO + 250_000_000n + ofTurn);
  });
}
