/** `POST /completions` at services that still have the operation: what no conversation can say, through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import OpenAI from 'openai';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      any: { kind: 'chat' },
      claude: { kind: 'messages' },
      vllm: { kind: 'vllm' },
      llamacpp: { kind: 'llamacpp' },
      deepseek: { kind: 'deepseek' },
      codestral: { kind: 'mistral', model: { upstream_id: 'codestral-latest' } },
      instruct: { kind: 'openai', model: { upstream_id: 'gpt-3.5-turbo-instruct' } },
      talker: { kind: 'openai', model: { upstream_id: 'gpt-4o' } },
    },
  },
);
const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const USAGE = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 };
const choice = (text: string, index = 0, more: Json = {}) => ({
  text,
  index,
  logprobs: null,
  finish_reason: 'stop',
  ...more,
});
const reply = (...choices: Json[]) =>
  wholeOf({ id: 'cmpl-up', object: 'text_completion', created: 5, model: 'up', choices, usage: USAGE, extra: 'kept' });
const chunk = (more: Json) =>
  `data: ${JSON.stringify({ id: 'cmpl-up', object: 'text_completion', created: 5, model: 'up', ...more })}\n\n`;
const sent = (provider: string): Json => gateway.upstream.requests(provider).at(-1)!.json;

test('several prompts are one request and one answer, charged as the service counted', async () => {
  gateway.upstream.script('vllm', reply(choice('a'), choice('b', 1)));
  const answer: Json = await openai.completions.create({
    model: 'test/vllm',
    prompt: ['x', 'y'],
    echo: true,
    logprobs: 2,
    user: 'me',
  });
  assert.deepEqual(
    answer.choices.map(({ text }: Json) => text),
    ['a', 'b'],
  );
  assert.match(answer.id, /^gen-/);
  assert.deepEqual(
    [answer.model, answer.provider, answer.object, answer.extra],
    ['test/vllm', 'Provider vllm', 'text_completion', 'kept'],
  );
  assert.ok(Math.abs(answer.usage.cost - (10 * 0.000003 + 4 * 0.000015)) < 1e-12, String(answer.usage.cost));
  const { user, ...body } = sent('vllm');
  assert.notEqual(user, 'me');
  assert.deepEqual(body, { model: 'upstream-vllm', prompt: ['x', 'y'], echo: true, logprobs: 2, max_tokens: 16 });
  assert.equal(gateway.upstream.requests('vllm').at(-1)!.path, '/completions');
  const row = await gateway.get(`/generation?id=${answer.id}`);
  assert.equal(row.status, 200);
});

test('a stream is relayed chunk by chunk, its figures and the marker at the end', async () => {
  const choices = (...list: Json[]) => ({ choices: list });
  gateway.upstream.script('any', [
    streamOf([
      chunk(choices(choice('one', 0, { finish_reason: null }))),
      chunk(choices(choice(' two', 1))),
      chunk({ choices: [], usage: USAGE }),
      'data: [DONE]\n\n',
    ]),
  ]);
  const response = await gateway.post('/completions', { model: 'test/any', prompt: [[1, 2], [3]], stream: true });
  const text = await response.text();
  const events = text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event): Json => JSON.parse(event.slice(6)));
  assert.deepEqual(
    events.map((event) => event.choices.map(({ text, index }: Json) => [text, index])),
    [[['one', 0]], [[' two', 1]], []],
  );
  for (const event of events) assert.match(event.id, /^gen-/);
  assert.equal(events[2].usage.total_tokens, 14);
  assert.ok(text.endsWith('data: [DONE]\n\n'));
  assert.deepEqual(sent('any').stream_options, { include_usage: true });
});

test('a stream that breaks off is an error without the marker', async () => {
  gateway.upstream.script('any', [{ ...streamOf([chunk({ choices: [choice('half', 0, { finish_reason: null })] })]) }]);
  const text = await (
    await gateway.post('/completions', { model: 'test/any', prompt: 'x', suffix: 'z', stream: true })
  ).text();
  assert.match(text, /"text":"half"/);
  assert.match(text, /"error":\{"code":502/);
  assert.doesNotMatch(text, /\[DONE\]/);
});

test('gaps are filled where a service does that, each at its own address and in its own words', async () => {
  const body = { prompt: 'def f(', suffix: '): pass', seed: 7 };
  gateway.upstream.script('deepseek', reply(choice('x')));
  const deepseek: Json = await (await gateway.post('/completions', { model: 'test/deepseek', ...body })).json();
  assert.equal(deepseek.choices[0].text, 'x');
  assert.equal(gateway.upstream.requests('deepseek').at(-1)!.path, '/beta/completions');
  const chat = { index: 0, message: { role: 'assistant', content: 'self' }, finish_reason: 'stop' };
  gateway.upstream.script('codestral', wholeOf({ id: 'm', object: 'chat.completion', choices: [chat], usage: USAGE }));
  const mistral: Json = await (await gateway.post('/completions', { model: 'test/codestral', ...body })).json();
  assert.deepEqual(
    [mistral.object, mistral.choices[0].text, mistral.usage.total_tokens],
    ['text_completion', 'self', 14],
  );
  assert.equal(gateway.upstream.requests('codestral').at(-1)!.path, '/fim/completions');
  assert.deepEqual(sent('codestral'), {
    model: 'codestral-latest',
    prompt: 'def f(',
    suffix: '): pass',
    random_seed: 7,
    max_tokens: 16,
  });
  const head = { id: 'm', object: 'chat.completion.chunk', model: 'm', created: 1 };
  const delta = (content: string, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
  gateway.upstream.script('codestral', [streamOf([delta('se'), delta('lf', 'stop'), 'data: [DONE]\n\n'])]);
  const stream = await openai.completions.create({
    model: 'test/codestral',
    prompt: 'def f(',
    suffix: ')',
    stream: true,
  });
  let text = '';
  for await (const { choices } of stream) text += choices[0]?.text ?? '';
  assert.equal(text, 'self');
});

test('the best of several is chosen by the service, and all of them are reserved for and paid', async () => {
  gateway.upstream.script('instruct', reply(choice('best')));
  const answer = await openai.completions.create({ model: 'test/instruct', prompt: 'x', best_of: 3, n: 2 });
  assert.equal(answer.choices[0]!.text, 'best');
  assert.deepEqual([sent('instruct').best_of, sent('instruct').n], [3, 2]);
});

test('what a service cannot do is refused with the field, before it is asked', async () => {
  const cases: [string, Json, RegExp][] = [
    ['vllm', { prompt: 'x', suffix: 'y' }, /suffix/],
    ['vllm', { prompt: 'x', best_of: 2 }, /best_of/],
    ['llamacpp', { prompt: ['x', 'y'], echo: true }, /echo/],
    ['deepseek', { prompt: ['x', 'y'], suffix: 'z' }, /prompt/],
    ['talker', { prompt: 'x', suffix: 'y' }, /prompt/],
    ['claude', { prompt: 'x', suffix: 'y' }, /suffix/],
    ['claude', { prompt: ['x', 'y'] }, /prompt/],
    ['any', { prompt: ['x', 3] }, /prompt/],
    ['any', { prompt: [['x']] }, /prompt/],
    ['any', { prompt: 'x', best_of: 2, n: 3 }, /best_of/],
    ['any', { prompt: 'x', best_of: 2, stream: true }, /best_of/],
  ];
  for (const [provider, body, message] of cases) {
    const response = await gateway.post('/completions', { model: `test/${provider}`, ...body });
    const text = await response.text();
    assert.equal(response.status, 400, `${provider} ${JSON.stringify(body)}: ${text}`);
    assert.match(text, message);
  }
});

test('a completion without reported usage is charged by the length of its text, not by max_tokens', async () => {
  const text = 'four'.repeat(5);
  const cases = {
    whole: wholeOf({ choices: [choice(text)] }),
    cut: streamOf([chunk({ choices: [choice(text, 0, { finish_reason: null })] })], { end: 'cut' }),
    ended: streamOf([chunk({ choices: [choice(text)] }), 'data: [DONE]\n\n']),
  };
  for (const [how, answer] of Object.entries(cases)) {
    gateway.upstream.script('any', [answer]);
    const body = { model: 'test/any', prompt: ['x', 'y'], max_tokens: 4000, stream: how !== 'whole' };
    const response = await gateway.post('/completions', body);
    await response.text();
    const row = await gateway.get(`/generation?id=${response.headers.get('x-generation-id')}`);
    assert.equal(((await row.json()) as Json).data.tokens_completion, 5, how);
  }
});
