import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, until } from '../../src/testing/clock/clock.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const chunk = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1_750_000_000, model: 'm', choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;
const finish = (reason = 'stop') =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1_750_000_000, model: 'm', choices: [{ index: 0, delta: {}, finish_reason: reason }] })}\n\n`;
const usage = `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } })}\n\n`;
const DONE = 'data: [DONE]\n\n';
const stream = (...chunks: Answer['chunks'] & object): Answer => ({
  headers: { 'content-type': 'text/event-stream' },
  chunks,
});
const good = stream(chunk({ role: 'assistant', content: '' }), chunk({ content: 'good' }), finish(), usage, DONE);
const wholeGood: Answer = {
  headers: { 'content-type': 'application/json' },
  chunks: [
    JSON.stringify({
      id: 'up-2',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'good' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
    }),
  ],
};

/** Failures before visible output, each with the client's status when there is no other endpoint. */
const FAILURES: [string, Answer, number][] = [
  ['an error status', { status: 500, chunks: ['{"error":{"message":"boom"}}'] }, 502],
  ['an overload', { status: 529, chunks: ['{"error":{"message":"overloaded"}}'] }, 529],
  [
    'a rate limit',
    { status: 429, headers: { 'retry-after': '7' }, chunks: ['{"error":{"message":"slow down"}}'] },
    429,
  ],
  ['a refused credential', { status: 401, chunks: ['{"error":{"message":"Incorrect API key provided"}}'] }, 502],
  ['an error in a 200', stream(`data: ${JSON.stringify({ error: { code: 503, message: 'overloaded' } })}\n\n`), 529],
  ['an empty answer', stream(chunk({ role: 'assistant', content: '' }), finish(), DONE), 502],
  ['a cut before content', { ...stream(chunk({ role: 'assistant', content: '' })), end: 'reset' }, 502],
  ['a clean close without an end', stream(chunk({ role: 'assistant', content: '' })), 502],
  ['a malformed event', stream(chunk({ role: 'assistant' }), 'data: {"choices": [\n\n', DONE), 502],
  ['a refused connection', { end: 'refuse' }, 502],
  ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' }, chunks: [] }, 502],
];

function readChat(text: string) {
  const events = text.split('\n\n').filter((line) => line.startsWith('data: '));
  const values = events.filter((line) => line !== 'data: [DONE]').map((line) => JSON.parse(line.slice(6)));
  return {
    done: events.includes('data: [DONE]'),
    last: events.at(-1),
    text: values.map((value) => value.choices?.[0]?.delta?.content ?? '').join(''),
    errors: values.filter((value) => value.error),
    finish: values.flatMap((value) => value.choices?.[0]?.finish_reason ?? []),
    usage: values.flatMap((value) => value.usage ?? []),
  };
}

for (const [name, failing, status] of FAILURES) {
  test(`${name} before visible output moves on to the next endpoint, and without one is ${status}`, async (t) => {
    const gateway = await startGateway(t, {
      providers: {
        first: { model: { id: 'test/m' }, ...(failing.end === 'refuse' && { base_url: 'http://127.0.0.1:9' }) },
        second: { model: { id: 'test/m' } },
        lone: failing.end === 'refuse' ? { base_url: 'http://127.0.0.1:9' } : {},
      },
    });
    if (failing.end !== 'refuse') {
      gateway.upstream.script('first', failing);
      gateway.upstream.script('lone', failing);
    }
    gateway.upstream.script('second', good);
    const body = { messages: [{ role: 'user', content: 'hi' }], stream: true };
    const reply = await gateway.post('/chat/completions', { model: 'test/m', ...body });
    assert.equal(reply.status, 200);
    const read = readChat(await reply.text());
    assert.deepEqual([read.text, read.done, read.errors.length], ['good', true, 0]);
    const alone = await gateway.post('/chat/completions', { model: 'test/lone', ...body });
    assert.equal(alone.status, status);
    assert.ok(alone.headers.get('x-generation-id'));
    const envelope = (await alone.json()) as { error: { code: number; message: string } };
    assert.equal(envelope.error.code, status);
    if (status === 429) assert.equal(alone.headers.get('retry-after'), '7');
  });
}

test('after visible output no other endpoint is tried: one error event ends the stream, without [DONE]', async (t) => {
  const gateway = await startGateway(t, {
    providers: { first: { model: { id: 'test/m' } }, second: { model: { id: 'test/m' } } },
  });
  gateway.upstream.script('first', { ...stream(chunk({ content: 'one ' }), chunk({ content: 'two' })), end: 'reset' });
  gateway.upstream.script('second', good);
  const reply = await gateway.post('/chat/completions', {
    model: 'test/m',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
  });
  const read = readChat(await reply.text());
  assert.equal(gateway.upstream.requests('second').length, 0);
  assert.deepEqual([read.done, read.errors.length, read.finish], [false, 1, ['error']]);
  assert.ok('one two'.startsWith(read.text));
  assert.equal(read.errors[0].error.code, 502);
});

test('a client that does not read its answer puts no endpoint into cooldown', async (t) => {
  const gateway = await startGateway(t, {
    providers: { first: { model: { id: 'test/m' } }, second: { model: { id: 'test/m' } } },
  });
  const large = chunk({ content: 'x'.repeat(64 * 1024) });
  gateway.upstream.script('first', [stream(...Array<string>(400).fill(large), finish(), usage, DONE), good]);
  gateway.upstream.script('second', good);
  const ask = { model: 'test/m', stream: true, messages: [{ role: 'user', content: 'hi' }] };
  const unread = await gateway.post('/chat/completions', ask);
  const held = await gateway.upstream.request('first');
  // Only the head is read, so the buffers on the way are full soon.
  for (let jumps = 0; held.closedEarlyAt === undefined; jumps++) {
    assert.ok(jumps < 100, 'the call is ended');
    gateway.clock.jump(10_000);
    await settle();
  }
  assert.equal(readChat(await (await gateway.post('/chat/completions', ask)).text()).text, 'good');
  assert.equal(gateway.upstream.requests('first').length, 2);
  await unread.body!.cancel();
});

test("a client's own 4xx is answered at once and starts no cooldown", async (t) => {
  const gateway = await startGateway(t, {
    providers: { first: { model: { id: 'test/m' } }, second: { model: { id: 'test/m' } } },
  });
  gateway.upstream.script('first', [{ status: 400, chunks: ['{"error":{"message":"bad tool"}}'] }, wholeGood]);
  gateway.upstream.script('second', wholeGood);
  const body = { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] };
  const refused = await gateway.post('/chat/completions', body);
  assert.equal(refused.status, 400);
  const next = await gateway.post('/chat/completions', body);
  assert.equal(next.status, 200);
  assert.equal(gateway.upstream.requests('first').length, 2);
  assert.equal(gateway.upstream.requests('second').length, 0);
});

test('a rate limited endpoint is tried last until its Retry-After is over', async (t) => {
  const gateway = await startGateway(t, {
    providers: { first: { model: { id: 'test/m' } }, second: { model: { id: 'test/m' } } },
  });
  gateway.upstream.script('first', [
    { status: 429, headers: { 'retry-after': '30' }, chunks: ['{"error":{"message":"slow down"}}'] },
    { ...wholeGood, repeat: true },
  ]);
  gateway.upstream.script('second', wholeGood);
  const body = { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] };
  for (let count = 0; count < 3; count++) assert.equal((await gateway.post('/chat/completions', body)).status, 200);
  assert.equal(gateway.upstream.requests('first').length, 1);
  gateway.clock.jump(31_000);
  assert.equal((await gateway.post('/chat/completions', body)).status, 200);
  assert.equal(gateway.upstream.requests('first').length, 2);
});

test('a wait in the body of an error is at most a week for the client', async (t) => {
  const gateway = await startGateway(t, { providers: { only: { model: { id: 'test/m' } } } });
  const body = `{"error":{"message":"slow down","retry_after":${'9'.repeat(400)}}}`;
  gateway.upstream.script('only', { status: 429, headers: { 'content-type': 'application/json' }, chunks: [body] });
  const reply = await gateway.post('/chat/completions', {
    model: 'test/m',
    messages: [{ role: 'user', content: 'hi' }],
  });
  assert.equal(reply.headers.get('retry-after'), String(7 * 24 * 3600));
  const { error } = (await reply.json()) as { error: { availability: { retry_after: number } } };
  assert.equal(error.availability.retry_after, 7 * 24 * 3600);
});

const SERVED: [string, string, (first: string, later: string) => Record<string, unknown>][] = [
  [
    'chat',
    '/chat/completions',
    (model, later) => ({ model, models: [later], messages: [{ role: 'user', content: 'hi' }] }),
  ],
  [
    'messages',
    '/messages',
    (model, later) => ({
      model,
      fallbacks: [{ model: later }],
      max_tokens: 9,
      messages: [{ role: 'user', content: 'hi' }],
    }),
  ],
  ['responses', '/responses', (model, later) => ({ model, models: [later], input: 'hi' })],
];

for (const [format, path, body] of SERVED) {
  test(`${format}: a rate limited first model is not tried again while a later model answers`, async (t) => {
    const gateway = await startGateway(t, {
      providers: { first: { model: { id: 'test/a' } }, second: { model: { id: 'test/b' } } },
    });
    const slowDown = {
      status: 429,
      headers: { 'retry-after': '600' },
      chunks: ['{"error":{"message":"slow down"}}'],
    };
    gateway.upstream.script('first', [slowDown, { ...wholeGood, repeat: true }]);
    gateway.upstream.script('second', { ...wholeGood, repeat: true });
    for (let count = 0; count < 4; count++) {
      assert.equal((await gateway.post(path, body('test/a', 'test/b'))).status, 200);
    }
    assert.equal(gateway.upstream.requests('first').length, 1);
    assert.equal(gateway.upstream.requests('second').length, 4);
    gateway.clock.jump(600_001);
    assert.equal((await gateway.post(path, body('test/a', 'test/b'))).status, 200);
    assert.equal(gateway.upstream.requests('first').length, 2);
  });
}

test('a silent upstream is abandoned after first_byte, its socket closed, and the next endpoint answers', async (t) => {
  const gateway = await startGateway(t, {
    providers: {
      first: { model: { id: 'test/m' }, timeouts: { connect: '5s', first_byte: '20s', idle: '20s', total: '600s' } },
      second: { model: { id: 'test/m' } },
    },
  });
  gateway.upstream.script('first', { end: 'stall-before-headers' });
  gateway.upstream.script('second', wholeGood);
  const pending = gateway.post('/chat/completions', { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] });
  const asked = await gateway.upstream.request('first');
  gateway.clock.jump(20_001);
  assert.equal((await pending).status, 200);
  await until(() => asked.closedEarlyAt !== undefined, 'the silent call to be closed');
});

test('ten silent seconds produce a comment, and from then on a failure is sent in-band', async (t) => {
  const gateway = await startGateway(t, { providers: { only: {} } });
  gateway.upstream.script('only', {
    ...stream({ gate: 'go' }, `data: ${JSON.stringify({ error: { code: 500, message: 'boom' } })}\n\n`),
  });
  const pending = gateway.post('/chat/completions', {
    model: 'test/only',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
  });
  await gateway.upstream.request('only');
  gateway.clock.jump(10_001);
  const reply = await pending;
  assert.equal(reply.status, 200);
  gateway.upstream.open('go');
  const text = await reply.text();
  assert.ok(text.startsWith(': SVC PROCESSING\n\n'), text);
  const read = readChat(text);
  assert.deepEqual([read.errors.length, read.done], [1, false]);
});

test('a client that leaves ends the upstream call at once, before and after the first byte', async (t) => {
  const gateway = await startGateway(t, { providers: { only: {} } });
  for (const streamed of [true, false]) {
    for (const answer of [
      { end: 'stall-before-headers' } as const,
      { ...stream(chunk({ content: 'part' })), end: 'stall' } as const,
    ]) {
      const count = gateway.upstream.requests('only').length + 1;
      gateway.upstream.script('only', [answer]);
      const abort = new AbortController();
      const pending = fetch(`${gateway.api}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer sk-svc-inf-test-${'i'.repeat(40)}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'test/only', messages: [{ role: 'user', content: 'hi' }], stream: streamed }),
        signal: abort.signal,
      }).catch(() => undefined);
      const asked = await gateway.upstream.request('only', count);
      if (streamed && answer.end === 'stall') await (await pending)?.body?.getReader().read();
      abort.abort();
      await until(() => asked.closedEarlyAt !== undefined, 'the upstream call to end');
      await pending;
    }
  }
});

test('the row of a request has its attempts, and the cost is the tokens times the price', async (t) => {
  const gateway = await startGateway(t, {
    providers: { first: { model: { id: 'test/m' } }, second: { model: { id: 'test/m' } } },
  });
  gateway.upstream.script('first', { status: 500, chunks: ['{}'] });
  gateway.upstream.script('second', wholeGood);
  const reply = await gateway.post(
    '/chat/completions',
    { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] },
    { 'x-svc-metadata': 'enabled' },
  );
  const body = (await reply.json()) as { id: string; usage: { cost: number }; svc_metadata: { attempt: number } };
  assert.equal(body.usage.cost, 10 * 0.000003 + 2 * 0.000015);
  assert.equal(body.svc_metadata.attempt, 2);
  const row = await gateway.get(`/generation?id=${body.id}`);
  assert.equal(row.status, 200);
  const { data } = (await row.json()) as { data: Record<string, unknown> };
  assert.equal(data['total_cost'], body.usage.cost);
  const attempts = data['provider_responses'] as { status: number; ended?: string; started: number; latency: number }[];
  assert.deepEqual(
    attempts.map(({ status, ended }) => [status, ended]),
    [
      [500, 'server'],
      [200, undefined],
    ],
  );
  const [first, second] = attempts;
  assert.ok(second!.started >= first!.started + first!.latency - 2, JSON.stringify(attempts));
});

test('an attempt whose answer cannot be read has the status that the upstream sent', async (t) => {
  const gateway = await startGateway(t, {
    providers: { first: { model: { id: 'test/m' } }, second: { model: { id: 'test/m' } } },
  });
  const html = { headers: { 'content-type': 'text/html' }, chunks: ['<!doctype html>'], repeat: true };
  gateway.upstream.script('first', html);
  gateway.upstream.script('second', { ...html, headers: { 'content-type': 'text/event-stream' } });
  for (const stream of [false, true]) {
    const reply = await gateway.post(
      '/chat/completions',
      { model: 'test/m', stream, messages: [{ role: 'user', content: 'hi' }] },
      { 'x-svc-metadata': 'enabled' },
    );
    const { svc_metadata: told } = (await reply.json()) as { svc_metadata: { attempts: { status: number }[] } };
    assert.deepEqual(
      told.attempts.map(({ status }) => status),
      [200, 200],
    );
    const row = await rowOf(gateway, reply.headers.get('x-generation-id')!);
    assert.deepEqual(
      (row['provider_responses'] as { status: number }[]).map(({ status }) => status),
      [200, 200],
    );
    gateway.clock.jump(60_000);
  }
});

test('if no endpoint answers, the metadata of the error counts the attempts and selects no endpoint', async (t) => {
  const gateway = await startGateway(t, {
    providers: { first: { model: { id: 'test/m' } }, second: { model: { id: 'test/m' } } },
  });
  for (const name of ['first', 'second']) gateway.upstream.script(name, { status: 429, chunks: ['{}'] });
  const reply = await gateway.post(
    '/chat/completions',
    { model: 'test/m', messages: [{ role: 'user', content: 'hi' }] },
    { 'x-svc-metadata': 'enabled' },
  );
  assert.equal(reply.status, 429);
  const { svc_metadata: told } = (await reply.json()) as {
    svc_metadata: { attempt: number; attempts: unknown[]; summary: string; endpoints: { available: object[] } };
  };
  assert.deepEqual([told.attempt, told.attempts.length], [2, 2]);
  assert.equal(told.summary, 'no endpoint of test/m answered after 2 failed attempts');
  assert.ok(told.endpoints.available.every((endpoint) => (endpoint as { selected: boolean }).selected === false));
});

test('an answer that breaks off belongs to the endpoint that began it, in its first attempt', async (t) => {
  const gateway = await startGateway(t, { providers: { only: { model: { id: 'test/m' } } } });
  const event = { id: 'u', object: 'chat.completion.chunk', created: 1, model: 'm' };
  const chunk = JSON.stringify({ ...event, choices: [{ index: 0, delta: { role: 'assistant', content: 'Hel' } }] });
  gateway.upstream.script('only', {
    headers: { 'content-type': 'text/event-stream' },
    chunks: [`data: ${chunk}\n\n`],
    end: 'cut',
  });
  const reply = await gateway.post(
    '/chat/completions',
    { model: 'test/m', stream: true, messages: [{ role: 'user', content: 'hi' }] },
    { 'x-svc-metadata': 'enabled' },
  );
  const text = await reply.text();
  const [, told] = /"svc_metadata":(\{.*\})\}\n/.exec(text) ?? [];
  assert.ok(told !== undefined, text);
  assert.match(told, /"attempt":1,/);
  assert.match(told, /"selected":true/);
});
