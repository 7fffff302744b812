/** Failures of failover that users of other gateways met, each asked of every way through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import {
  ask,
  FORMAT_PAIRS,
  FORMATS,
  PATHS,
  readStreamed,
  readWhole,
  requestOf,
  rowOf,
} from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  answerOf,
  errorOf,
  type Format,
  messagesData,
  messagesStart,
  streamOf,
  wholeOf,
} from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const provider = (format: Format, model: Record<string, unknown> = {}) => ({
  ...(format === 'messages' && { kind: 'messages' }),
  timeouts: { connect: '5s', first_byte: '20s', idle: '20s', total: '600s' },
  model,
});

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: provider('chat'),
      messages: provider('messages'),
      // The same model at services of both formats, each format first once.
      'chat-1': provider('chat', { id: 'mixed/chat' }),
      'chat-2': provider('messages', { id: 'mixed/chat' }),
      'messages-1': provider('messages', { id: 'mixed/messages' }),
      'messages-2': provider('chat', { id: 'mixed/messages' }),
      spare: provider('chat'),
    },
  },
);

/** The error type of each status. */
const TYPES: Record<number, string> = {
  400: 'invalid_request',
  404: 'not_found',
  413: 'payload_too_large',
  422: 'unprocessable',
};

const other = (format: Format): Format => (format === 'chat' ? 'messages' : 'chat');

function countOf(key: string): number {
  return gateway.upstream.requests(key).length;
}

/** Lets every endpoint be well again. */
function rest(): void {
  gateway.clock.jump(3_600_000);
}

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`12 | ${name} | an overload inside a 200 before any content fails over once, and the endpoint goes into cooldown`, async () => {
    rest();
    const overload =
      spoken === 'chat'
        ? streamOf(['data: {"error":{"message":"busy","code":529}}\n\n'])
        : streamOf([
            messagesStart(),
            messagesData({ type: 'ping' }),
            messagesData({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } }),
          ]);
    gateway.upstream.script(`${spoken}-1`, overload);
    gateway.upstream.script(`${spoken}-2`, answerOf(other(spoken), true, { text: 'hi' }));
    const { text, headers } = await ask(gateway, served, `mixed/${spoken}`, { stream: true });
    const read = readStreamed(served, text);
    assert.deepEqual([read.text, read.error], ['hi', undefined]);
    const row = await rowOf(gateway, headers.get('x-generation-id')!);
    assert.deepEqual(
      (row['provider_responses'] as { status: number }[]).map((one) => one.status),
      [529, 200],
    );
    const before = countOf(`${spoken}-1`);
    await ask(gateway, served, `mixed/${spoken}`, { stream: true });
    assert.equal(countOf(`${spoken}-1`), before, 'an overloaded endpoint was asked again at once');
  });

  test(`14 | ${name} | after the client has seen content there is no retry, neither at another endpoint nor with another model`, async () => {
    rest();
    const events = answerOf(spoken, true, { text: 'one two' }).chunks as string[];
    const upTo = events.findIndex((event) => event.includes('two') || event.includes('o"')) + 1;
    for (const end of ['reset', 'close'] as const) {
      const before = [countOf(`${spoken}-2`), countOf('spare')];
      gateway.upstream.script(`${spoken}-1`, streamOf(events.slice(0, upTo), { end }));
      gateway.upstream.script(`${spoken}-2`, answerOf(other(spoken), true, { text: 'one two three' }));
      gateway.upstream.script('spare', answerOf('chat', true, { text: 'one two three' }));
      const { text } = await ask(gateway, served, `mixed/${spoken}`, {
        stream: true,
        models: [`mixed/${spoken}`, 'test/spare'],
      });
      const read = readStreamed(served, text);
      assert.ok('one two'.startsWith(read.text), read.text);
      assert.ok(read.error !== undefined);
      assert.deepEqual([countOf(`${spoken}-2`), countOf('spare')], before);
      rest();
    }
  });

  test(`14 | ${name} | a whole response that breaks off is retried at another endpoint, since nothing was shown`, async () => {
    rest();
    const whole = answerOf(spoken, false, { text: 'one two' });
    gateway.upstream.script(`${spoken}-1`, { ...whole, truncateAt: 40, end: 'reset' });
    gateway.upstream.script(`${spoken}-2`, answerOf(other(spoken), false, { text: 'other' }));
    const { text } = await ask(gateway, served, `mixed/${spoken}`);
    assert.equal(readWhole(served, text).text, 'other');
  });

  test(`18 | ${name} | a silent upstream times out, streamed or not, and without another endpoint the client gets 504`, async () => {
    for (const stream of [false, true]) {
      for (const silent of [
        { end: 'stall-before-headers' },
        { ...answerOf(spoken, stream, { text: 'x' }), chunks: [], end: 'stall' },
      ] as Answer[]) {
        rest();
        const count = countOf(`${spoken}-1`) + 1;
        gateway.upstream.script(`${spoken}-1`, silent);
        gateway.upstream.script(`${spoken}-2`, answerOf(other(spoken), stream, { text: 'hi' }));
        const pending = ask(gateway, served, `mixed/${spoken}`, { stream });
        const asked = await gateway.upstream.request(`${spoken}-1`, count);
        gateway.clock.jump(20_001);
        const { status, text } = await pending;
        assert.equal(status, 200, text);
        assert.equal((stream ? readStreamed : readWhole)(served, text).text, 'hi');
        await until(() => asked.closedEarlyAt !== undefined, 'the silent call to be closed');
      }
      rest();
      const count = countOf(spoken) + 1;
      gateway.upstream.script(spoken, { end: 'stall-before-headers' });
      const alone = ask(gateway, served, `test/${spoken}`, { stream });
      await gateway.upstream.request(spoken, count);
      gateway.clock.jump(20_001);
      const { status, text } = await alone;
      // A stream that a comment kept alive has the error inside.
      if (status === 200)
        assert.ok([504, 524, 'timeout_error'].includes(readStreamed(served, text).error as never), text);
      else assert.ok([504, 524].includes(status), text);
    }
  });

  test(`58 | ${name} | an invalid request is reported without a retry and without a cooldown`, async () => {
    for (const status of [400, 404, 413, 422]) {
      rest();
      const before = countOf(spoken);
      gateway.upstream.script(spoken, [
        errorOf(spoken, status, 'No such thing'),
        answerOf(spoken, false, { text: 'ok' }),
      ]);
      const failed = await ask(gateway, served, `test/${spoken}`);
      assert.ok([status, 400].includes(failed.status), `${status} became ${failed.status}`);
      const { error } = failed.json;
      assert.equal(error.error_type ?? error.metadata.error_type, TYPES[failed.status], failed.text);
      assert.equal(countOf(spoken), before + 1);
      assert.equal((await ask(gateway, served, `test/${spoken}`)).status, 200);
      if (status === 404) continue;
      const pair = countOf(`${spoken}-2`);
      gateway.upstream.script(`${spoken}-1`, [
        errorOf(spoken, status, 'No such thing'),
        { ...answerOf(spoken, false, { text: 'ok' }), repeat: true },
      ]);
      assert.ok([status, 400].includes((await ask(gateway, served, `mixed/${spoken}`)).status));
      assert.equal((await ask(gateway, served, `mixed/${spoken}`)).status, 200);
      assert.equal(countOf(`${spoken}-2`), pair, 'another endpoint was asked');
    }
  });

  test(`60 | ${name} | a rate limit reaches the client with Retry-After and without account details`, async () => {
    for (const [headers, message, wait] of WAITS) {
      rest();
      const limited = wait === 'date' ? new Date(gateway.clock.now() + 45_000).toUTCString() : undefined;
      const secrets = {
        'set-cookie': '__cf_bm=abc',
        'x-ratelimit-remaining-tokens': '0',
        'openai-organization': 'org-0000canary',
      };
      gateway.upstream.script(
        spoken,
        errorOf(spoken, 429, `${message} in organization org-0000canary`, {
          ...secrets,
          ...headers,
          ...(limited && { 'retry-after': limited }),
        }),
      );
      const { status, headers: got, text, json } = await ask(gateway, served, `test/${spoken}`);
      assert.equal(status, 429, text);
      if (wait === 'date') assert.ok([44, 45].includes(Number(got.get('retry-after'))), String(got.get('retry-after')));
      else if (wait !== undefined) assert.equal(got.get('retry-after'), wait, JSON.stringify(headers));
      else
        assert.ok(
          got.get('retry-after') === null || Number(got.get('retry-after')) > 0,
          String(got.get('retry-after')),
        );
      assert.equal(got.get('set-cookie'), null);
      assert.ok(!/org-0000canary|0c4a1f6e/.test(`${text}${JSON.stringify([...got])}`), text);
      if (served === 'chat') assert.equal(json.error.code, 429);
      else assert.equal(json.error.type, 'rate_limit_error');
    }
  });
}

/** What services report about the wait, and the seconds that a client gets; undefined if any sane wait will do. */
const WAITS: [Record<string, string>, string, string | undefined][] = [
  [{ 'retry-after': '20' }, 'Limit (org: 0c4a1f6e-1111-4222-8333-0123456789ab, model: m) reached', '20'],
  [{ 'retry-after': '30' }, 'slow down', '30'],
  [{ 'retry-after': '0.4' }, 'slow down', '1'],
  [{ 'retry-after-ms': '2500' }, 'slow down', '3'],
  [{}, 'slow down', 'date'],
  [{}, 'slow down', undefined],
  [{ 'retry-after': 'soon' }, 'slow down', undefined],
  [{ 'retry-after': '-5' }, 'slow down', undefined],
  [{ 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 'slow down', undefined],
];

test('60 | the shortest wait of several rate limits is reported, and each endpoint keeps its own cooldown', async () => {
  rest();
  gateway.upstream.script('chat-1', errorOf('chat', 429, 'slow', { 'retry-after': '30' }));
  gateway.upstream.script('chat-2', errorOf('messages', 429, 'slow', { 'retry-after': '12' }));
  const limited = await ask(gateway, 'chat', 'mixed/chat');
  assert.deepEqual([limited.status, limited.headers.get('retry-after')], [429, '12']);
  gateway.upstream.script('chat-1', answerOf('chat', false, { text: 'one' }));
  gateway.upstream.script('chat-2', answerOf('messages', false, { text: 'two' }));
  const texts: string[] = [];
  for (const jump of [0, 13_000, 20_000]) {
    gateway.clock.jump(jump);
    texts.push(readWhole('chat', (await ask(gateway, 'chat', 'mixed/chat')).text).text);
  }
  assert.deepEqual(texts.slice(1), ['two', 'one']);
});

/** Errors that services answer with the wrong status, or with a status that others use otherwise. */
const FALLS_OVER: [string, Format, Answer][] = [
  [
    'an empty account as 400',
    'messages',
    errorOf('messages', 400, 'Your credit balance is too low to access the API.'),
  ],
  [
    'an empty account as 429',
    'chat',
    wholeOf(
      { error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' } },
      { status: 429 },
    ),
  ],
  ['an empty account as 402', 'chat', errorOf('chat', 402, 'Insufficient Balance')],
  ['a revoked key', 'chat', errorOf('chat', 401, 'Incorrect API key provided')],
  ['a forbidden region', 'chat', errorOf('chat', 403, 'Country, region, or territory not supported')],
  ['an unknown model', 'chat', errorOf('chat', 404, 'The model does not exist')],
  [
    'a page of a proxy',
    'chat',
    { status: 503, headers: { 'content-type': 'text/html' }, chunks: ['<html>Service Unavailable</html>'] },
  ],
  ['an empty body', 'messages', { status: 500, chunks: [] }],
  ['a status of a proxy', 'messages', { status: 524, chunks: ['error code: 524'] }],
  ['a request timeout', 'chat', errorOf('chat', 408, 'Request timed out')],
  ['a conflict', 'chat', errorOf('chat', 409, 'try again')],
  ['too early', 'chat', errorOf('chat', 425, 'try again')],
  ['a status of success without a body', 'chat', { status: 204, chunks: [] }],
  [
    'a whole answer with an error',
    'messages',
    wholeOf({ type: 'error', error: { type: 'overloaded_error', message: 'x' } }),
  ],
  ['a whole answer without choices', 'chat', wholeOf({ id: 'x', object: 'chat.completion', choices: [] })],
  ['a whole answer of another shape', 'messages', wholeOf({ hello: 'world' })],
  ['a list', 'chat', wholeOf([{ error: { message: 'x', code: 503 } }])],
  ['a text that is no JSON', 'chat', wholeOf('{"id": "x", "choices": [')],
];

for (const [what, spoken, answer] of FALLS_OVER) {
  test(`12 and its kind | ${spoken} | ${what} moves on, whole and streamed`, async () => {
    for (const served of FORMATS) {
      for (const stream of [false, true]) {
        rest();
        gateway.upstream.script(`${spoken}-1`, answer);
        gateway.upstream.script(`${spoken}-2`, answerOf(other(spoken), stream, { text: 'hi' }));
        const { status, text } = await ask(gateway, served, `mixed/${spoken}`, { stream });
        assert.equal(status, 200, text);
        assert.equal((stream ? readStreamed : readWhole)(served, text).text, 'hi');
      }
    }
  });
}

test('14 | fallbacks of the messages format are tried in order before anything is visible', async () => {
  rest();
  gateway.upstream.script('messages', errorOf('messages', 529, 'busy'));
  gateway.upstream.script('chat', errorOf('chat', 500, 'broken'));
  gateway.upstream.script('spare', answerOf('chat', true, { text: 'hi' }));
  const response = await gateway.post(
    PATHS.messages,
    requestOf('messages', 'test/messages', {
      stream: true,
      fallbacks: [{ model: 'test/chat' }, { model: 'test/spare' }],
    }),
  );
  assert.equal(readStreamed('messages', await response.text()).text, 'hi');
});
