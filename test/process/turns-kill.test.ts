/** A process that dies during a later turn of an answer: the finished turns are charged exactly, the running one by estimate. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sleep, systemClock } from '../../src/base/clock.ts';
import { embeddedTarget, type Row, rowsOnce } from '../../src/testing/database/rows.ts';
import { UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { answerOf, chatChunk, streamOf } from '../../src/testing/upstream/answers.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';

const pricing = { prompt: '0.000003', completion: '0.000015' };
const FIRST = { input: 10n, output: 5n };
const SEARCH_NANO = 250_000_000n;
const STALLED: Answer = { end: 'stall-before-headers' };
const TEXT = 'x'.repeat(400);

const FIND_TOOL = { id: 'call_1', name: 'search_tools', arguments: '{"query":"create invoice"}' };
const FIND_TOOL_BODY = {
  tools: [
    { type: 'function', function: { name: 'create_invoice', parameters: { type: 'object' } }, defer_loading: true },
  ],
  deferred_tools: { protocol: 'v1', profile: 'portable', validation: 'runtime', search: { type: 'bm25' } },
};
const SEARCH = { id: 'call_1', name: 'web_search', arguments: '{"query":"bees"}' };
const SEARCH_BODY = { tools: [{ type: 'svc:web_search' }] };

interface Moment {
  /** What the first turn asks for, and how it is offered. */
  call: typeof SEARCH;
  body: object;
  second: Answer;
  /** The answer of the search engine. */
  found?: Answer;
  /** What the row holds besides the first turn. The prompt of a running turn is estimated by the size of the request. */
  charged: { prompt: boolean; output: bigint; searches: bigint };
  /** Nothing was asked of the model yet. */
  beforeFirst?: boolean;
  /** The least that the prompt of a running turn can be. */
  atLeast: bigint;
}

const MOMENTS: Record<string, Moment> = {
  'in the second turn before the head': {
    ...{ call: FIND_TOOL, body: FIND_TOOL_BODY, second: STALLED },
    charged: { prompt: true, output: 0n, searches: 0n },
    atLeast: 1_000n,
  },
  'in the second turn after some text': {
    ...{ call: FIND_TOOL, body: FIND_TOOL_BODY },
    second: streamOf([chatChunk({ content: TEXT })], { end: 'stall' }),
    // A token for four bytes.
    charged: { prompt: true, output: 100n, searches: 0n },
    atLeast: 1_000n,
  },
  'during a search': {
    ...{ call: SEARCH, body: SEARCH_BODY, second: STALLED, found: STALLED },
    charged: { prompt: false, output: 0n, searches: 1n },
    atLeast: 0n,
  },
  'in the turn after a search': {
    ...{ call: SEARCH, body: SEARCH_BODY, second: STALLED, found: { chunks: ['{"results":[]}'] } },
    charged: { prompt: true, output: 0n, searches: 1n },
    atLeast: 100n,
  },
  'during a search before the first turn': {
    ...{ call: SEARCH, body: { plugins: [{ id: 'web' }] }, second: STALLED, found: STALLED, beforeFirst: true },
    charged: { prompt: false, output: 0n, searches: 1n },
    atLeast: 0n,
  },
};

const rows = await rowsAfterKill();

for (const [moment, { charged, atLeast, beforeFirst = false }] of Object.entries(MOMENTS)) {
  test(`killed ${moment}: one row, with the tokens of its turns and the cost of them and of each search`, () => {
    const [row, ...others] = rows.filter(({ tag }) => tag === moment);
    assert.ok(row);
    assert.deepEqual([others.length, row.status], [0, null]);
    const first = beforeFirst ? { input: 0n, output: 0n } : FIRST;
    const [input, output] = [row.input ?? 0n, row.output ?? 0n];
    if (charged.prompt) assert.ok(input >= first.input + atLeast && input < 3_000n, String(input));
    else assert.equal(input, first.input);
    assert.equal(output, first.output + charged.output);
    assert.equal(row.cost, input * 3_000n + output * 15_000n + charged.searches * SEARCH_NANO);
  });
}

/** Brings a request to each moment, kills the gateway, and starts it again. */
async function rowsAfterKill(): Promise<Row[]> {
  const atEnd = { after: (close: unknown) => after(close as () => Promise<void>) };
  const upstream = await startUpstream();
  atEnd.after(() => upstream.close());
  const engine = upstream.script(
    'engine',
    Object.values(MOMENTS).flatMap(({ found = [] }) => found),
  );
  const providers = Object.values(MOMENTS).map(({ call, second }, at) => ({
    ...{ id: `p${at}`, name: `P${at}`, kind: 'chat', api_key: UPSTREAM_KEY },
    base_url: upstream.script(`p${at}`, [
      answerOf('chat', true, {
        text: 'Looking.',
        calls: [call],
        usage: { input: Number(FIRST.input), output: Number(FIRST.output) },
      }),
      second,
    ]),
    models: [{ id: `test/${at}`, context_length: 200_000, max_completion_tokens: 8_000, pricing }],
  }));
  const engines = [{ kind: 'searxng', url: engine, price_per_search: 0.25 }];
  const home = await gatewayHome(atEnd);
  const gateway = await startGatewayProcess(atEnd, { home, yaml: { providers, web_search: { engines } } });
  let searches = 0;
  for (const [at, [tag, { body, found, charged, second }]] of Object.entries(MOMENTS).entries()) {
    const request = {
      ...{ model: `test/${at}`, stream: true, user: tag },
      messages: [{ role: 'user', content: 'Bill Ada' }],
      ...body,
    };
    const reply = gateway.post('/chat/completions', request);
    reply.catch(() => {});
    if (found !== undefined) await upstream.request('engine', ++searches);
    if (charged.prompt) await upstream.request(`p${at}`, 2);
    if (second === STALLED) continue;
    const seen = (await reply).body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
    for (let text = ''; !text.includes(TEXT); text += (await seen.next()).value);
  }
  // The journal has what happened up to 50 ms ago, on a machine that has nothing else to do.
  await sleep(systemClock, 1_000);
  gateway.signal('SIGKILL');
  await gateway.exit;
  await startGatewayProcess(atEnd, { home });
  return rowsOnce(embeddedTarget(home), providers.length);
}
