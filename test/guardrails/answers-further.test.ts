/** Filters on answers that are given again, have several choices, or come from the second of two endpoints that were asked. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import {
  CHAT_END,
  chatChunk,
  chatStream,
  chatUsage,
  chatWhole,
  shownText,
} from '../../src/testing/upstream/chat-upstream.ts';
import type { Json } from '../workspaces/control.ts';
import { startGuarded } from './guarded.ts';

const email = (action: string) => ({
  content_filter_builtins: [{ slug: 'email', action, apply_to: ['response'] }],
});
const CACHED = { 'x-svc-cache': 'true' };
const ask = (more: Json = {}) => ({ model: 'test/chat', messages: [{ role: 'user', content: 'contact?' }], ...more });
const start = (t: TestContext) => startGuarded(t, { providers: { chat: {} } });

test('a cached answer is given again as it was filtered, and under other filters not at all', async (t) => {
  const { gateway, guarded, control } = await start(t);
  for (const stream of [false, true]) {
    const key = await guarded(email('redact'));
    gateway.upstream.script('chat', (stream ? chatStream : chatWhole)('write to bob@example.com, see PRJ-7'));
    const calls = () => gateway.upstream.requests('chat').length;
    const before = calls();
    const given = async () => {
      const answer = await key.post('/chat/completions', ask({ stream }), CACHED);
      return {
        ...answer,
        from: answer.headers.get('x-svc-cache-status'),
        text: typeof answer.body === 'string' ? shownText(answer.body) + answer.body : JSON.stringify(answer.body),
      };
    };
    const first = await given();
    // The content is written after the answer.
    let again = first;
    await until(async () => {
      again = await given();
      return again.from === 'HIT';
    }, 'the answer is kept');
    for (const answer of [first, again]) {
      assert.match(answer.text, /write to \[EMAIL\], see PRJ-7/);
      assert.doesNotMatch(answer.text, /bob/);
    }
    const asked = calls();
    assert.ok(asked > before);
    const pattern = { content_filters: [{ pattern: 'PRJ-[0-9]', action: 'redact', apply_to: ['response'] }] };
    await control.call('PATCH', `/guardrails/${key.guardrailId}`, pattern);
    assert.match((await given()).text, /write to \[EMAIL\], see \[REDACTED\]/);
    assert.equal(calls(), asked + 1);
    await control.call('PATCH', `/guardrails/${key.guardrailId}`, email('block'));
    for (let turn = 0; turn < 2; turn++) {
      const refused = await given();
      assert.doesNotMatch(refused.text, /bob@example.com, see/);
      assert.match(refused.text, /guardrail of this key blocks the answer: email/);
    }
    assert.equal(calls(), asked + 3, 'a refusal is not kept');
  }
});

test('several choices are inspected separately, and a blocked one blocks all', async (t) => {
  const { gateway, guarded } = await start(t);
  const redacting = await guarded(email('redact'));
  const message = (content: string, index: number) => ({
    index,
    message: { role: 'assistant', content },
    finish_reason: 'stop',
  });
  const several = chatWhole(
    '',
    {},
    { choices: [message('mail bob@exam', 0), message('ple.com or ann@example.org', 1)] },
  );
  gateway.upstream.script('chat', several);
  const whole = await redacting.post('/chat/completions', ask({ n: 2 }));
  assert.deepEqual(
    whole.body.choices.map((choice: Json) => choice.message.content),
    ['mail bob@exam', 'ple.com or [EMAIL]'],
  );
  const blocked = await (await guarded(email('block'))).post('/chat/completions', ask({ n: 2 }));
  assert.deepEqual([blocked.status, blocked.body.error.metadata.filters[0].slug], [403, 'email']);
  const piece = (index: number, content: string) => chatChunk({ content }).replace('"index":0', `"index":${index}`);
  const end = (index: number) => chatChunk({}, 'stop').replace('"index":0', `"index":${index}`);
  const chunks = [
    piece(0, 'mail bob@'),
    piece(1, 'no '),
    piece(0, 'example'),
    piece(1, 'ann@example'),
    piece(0, '.com'),
  ];
  gateway.upstream.script('chat', {
    headers: { 'content-type': 'text/event-stream' },
    chunks: [...chunks, piece(1, '.org'), end(0), end(1), chatUsage(), CHAT_END],
  });
  const streamed = await redacting.post('/chat/completions', ask({ n: 2, stream: true }));
  const said = ['', ''];
  for (const line of (streamed.body as string).split('\n\n')) {
    if (!line.startsWith('data: {')) continue;
    for (const { index, delta } of JSON.parse(line.slice(6)).choices) said[index] += delta.content ?? '';
  }
  assert.deepEqual(said, ['mail [EMAIL]', 'no [EMAIL]']);
});

test('the response of the endpoint that wins a hedge is inspected, and nothing of the other is shown', async (t) => {
  const model = { id: 'test/both' };
  const { gateway, guarded } = await startGuarded(t, {
    providers: { slow: { model }, fast: { model } },
    yaml: { routing: { hedge_after: '1s' } },
  });
  const key = await guarded(email('redact'));
  gateway.upstream.script('slow', chatStream('mail slow@example.com', [{ gate: 'never' }]));
  gateway.upstream.script('fast', chatStream('mail fast@example.com now'));
  const pending = key.post('/chat/completions', { ...ask({ stream: true }), model: 'test/both' });
  await gateway.upstream.request('slow');
  gateway.clock.jump(2_000);
  const { body } = await pending;
  assert.equal(shownText(body), 'mail [EMAIL] now');
  assert.doesNotMatch(body, /slow@|fast@/);
  // What is held back of the first one is no sign of life: the second is asked all the same, and blocked alike.
  const blocking = await guarded(email('block'));
  gateway.upstream.script('slow', chatStream('mail slow@example.com', [{ gate: 'never' }]));
  const refused = blocking.post('/chat/completions', { ...ask({ stream: true }), model: 'test/both' });
  await gateway.upstream.request('slow', 2);
  gateway.clock.jump(2_000);
  assert.doesNotMatch(JSON.stringify((await refused).body), /fast@example.com now|\[DONE\]/);
  gateway.upstream.open('never');
});
