/** Filters on answers over HTTP (`apply_to`): whole and streamed, in every served format. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CHAT_END, chatChunk, chatUsage, chatWhole, shownText } from '../../src/testing/upstream/chat-upstream.ts';
import type { Json } from '../workspaces/control.ts';
import { startGuarded } from './guarded.ts';

const { gateway, guarded, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {} } },
);

const email = (action: string) => ({
  content_filter_builtins: [{ slug: 'email', action, apply_to: ['response'] }],
});
const ask = (more: Json = {}) => ({ model: 'test/chat', messages: [{ role: 'user', content: 'contact?' }], ...more });
const stream = (...deltas: object[]) => ({
  headers: { 'content-type': 'text/event-stream' },
  chunks: [
    chatChunk({ role: 'assistant' }),
    ...deltas.map((delta) => chatChunk(delta)),
    chatChunk({}, 'stop'),
    chatUsage(),
    CHAT_END,
  ],
});
const said = ['Mail bob', '@exam', 'ple.com n', 'ow'].map((content) => ({ content }));
const rowOf = async (headers: Headers) =>
  (await control.call('GET', `/generation?id=${headers.get('x-generation-id')}`)).body.data;

test('67 | an address split over events leaves as its label and in no piece, and the stream ends as ever', async () => {
  const key = await guarded(email('redact'));
  gateway.upstream.script('chat', stream(...said));
  const { body, headers, status } = await key.post('/chat/completions', ask({ stream: true }));
  assert.equal(status, 200);
  assert.equal(shownText(body), 'Mail [EMAIL] now');
  assert.doesNotMatch(body, /bob|exam/);
  assert.match(body, /"total_tokens":12/);
  assert.match(body, /\[DONE\]\n\n$/);
  const { guardrails } = await rowOf(headers);
  assert.deepEqual([guardrails[0].filter, guardrails[0].action, guardrails[0].matches], ['email', 'redact', 1]);
});

test('a stream that is blocked ends with a typed error and no clean end, and what was said is paid for', async () => {
  const key = await guarded(email('block'));
  gateway.upstream.script('chat', stream({ content: 'Here it comes, as you asked. ' }, ...said));
  const { body, headers } = await key.post('/chat/completions', ask({ stream: true }));
  assert.doesNotMatch(body, /\[DONE\]|"content":"[^"]*bob/);
  assert.match(body, /Here it comes/);
  assert.match(body, /permission_denied/);
  assert.ok((await rowOf(headers)).tokens_completion > 0);
});

test('what was redacted before a stream broke off is in its row', async () => {
  const key = await guarded(email('redact'));
  const broken = stream(...said, { content: ', and more of it' });
  gateway.upstream.script('chat', [{ ...broken, chunks: broken.chunks.slice(0, 6), end: 'cut' }]);
  const { body, headers } = await key.post('/chat/completions', ask({ stream: true }));
  assert.match(body, /EMAIL.*"error"/s);
  const { guardrails } = await rowOf(headers);
  assert.deepEqual([guardrails[0].filter, guardrails[0].action, guardrails[0].matches], ['email', 'redact', 1]);
});

test('a whole answer that is blocked is 403, and its usage is paid', async () => {
  const key = await guarded(email('block'));
  gateway.upstream.script('chat', chatWhole('write to bob@example.com'));
  const { status, body, headers } = await key.post('/chat/completions', ask());
  assert.equal(status, 403);
  assert.equal(body.error.metadata.filters[0].slug, 'email');
  const row = await rowOf(headers);
  assert.equal(row.tokens_completion, 2);
  assert.equal(row.guardrails[0].action, 'block');
});

test('68 | no part of a call leaves before the verdict on it', async () => {
  const pieces = ['', '{"c":"mail bob@exam', 'ple.com"}'];
  const calls = pieces.map((text, number) => ({
    tool_calls: [
      {
        index: 0,
        ...(number === 0 && { id: 'c1', type: 'function' }),
        function: { ...(number === 0 && { name: 'sh' }), arguments: text },
      },
    ],
  }));
  const tools = [{ type: 'function', function: { name: 'sh', parameters: { type: 'object', properties: {} } } }];
  gateway.upstream.script('chat', stream(...calls));
  const blocking = await (await guarded(email('block'))).post('/chat/completions', ask({ stream: true, tools }));
  assert.doesNotMatch(JSON.stringify(blocking.body), /tool_calls":\[/);
  assert.equal(blocking.status, 403);
  gateway.upstream.script('chat', stream(...calls));
  const redacting = await (await guarded(email('redact'))).post('/chat/completions', ask({ stream: true, tools }));
  const args = [...redacting.body.matchAll(/"arguments":"((?:[^"\\]|\\.)*)"/g)].map(([, text]) =>
    JSON.parse(`"${text}"`),
  );
  assert.deepEqual(JSON.parse(args.join('')), { c: 'mail [EMAIL]' });
});

test('every served format is looked through, streamed and whole, and requests are not', async () => {
  const key = await guarded(email('redact'));
  const question = 'is it ann@example.org?';
  const formats: [string, Json][] = [
    ['/chat/completions', { messages: [{ role: 'user', content: question }] }],
    ['/messages', { max_tokens: 100, messages: [{ role: 'user', content: question }] }],
    ['/responses', { input: question }],
    ['/completions', { prompt: question }],
  ];
  for (const [path, format] of formats) {
    for (const streamed of [true, false]) {
      gateway.upstream.script(
        'chat',
        streamed ? stream(...said) : chatWhole(said.map(({ content }) => content).join('')),
      );
      const { status, body } = await key.post(path, { model: 'test/chat', stream: streamed, ...format });
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      assert.equal(status, 200, text);
      assert.match(text, /\[EMAIL\]/, `${path} ${streamed}`);
      assert.doesNotMatch(text, /bob|example\.com/, `${path} ${streamed}`);
      assert.match(gateway.upstream.requests('chat').at(-1)!.body.toString(), /ann@example\.org/);
    }
  }
});

test('a pattern without a longest match is refused for answers and taken for requests', async () => {
  const make = (pattern: string, more: Json) =>
    control.call('POST', '/guardrails', { name: 'x', content_filters: [{ pattern, action: 'redact', ...more }] });
  const refused = await make('PRJ-\\d+', { apply_to: ['request', 'response'] });
  assert.equal(refused.status, 400);
  assert.match(refused.body.error.message, /content_filters\[0\]\.pattern: invalid_regex_pattern: .*upper bound/);
  assert.equal((await make('PRJ-\\d+', {})).status, 201);
  const made = await make('PRJ-\\d{1,9}', { apply_to: ['response'] });
  assert.deepEqual(made.body.data.content_filters[0].apply_to, ['response']);
});

test('an upstream that breaks off reveals nothing of what was held back, and there is no clean end', async () => {
  const key = await guarded(email('redact'));
  gateway.upstream.script('chat', {
    headers: { 'content-type': 'text/event-stream' },
    chunks: [chatChunk({ role: 'assistant', content: 'It is said, Mail bob@exam' })],
  });
  const { body } = await key.post('/chat/completions', ask({ stream: true }));
  assert.doesNotMatch(body, /bob|\[DONE\]/);
  assert.match(body, /"error"/);
});
