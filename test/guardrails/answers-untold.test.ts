/** What a filter blocks in an answer is nowhere that a caller or an operator can read it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { chatChunk, chatUsage } from '../../src/testing/upstream/chat-upstream.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import type { Json } from '../workspaces/control.ts';
import { startGuarded } from './guarded.ts';

const lines: string[] = [];
const { gateway, guarded, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: { chat: {}, messages: { kind: 'messages' }, responses: { kind: 'responses' } },
    yaml: { io_logging: { enabled: true } },
    log: createLog({ stream: { write: (line: string) => lines.push(line) }, level: 'debug' }),
  },
);
const { upstream } = gateway;

const BOTH_WAYS = { apply_to: ['response'] };
const RULES = {
  content_filter_builtins: ['credit-card', 'email'].map((slug) => ({ slug, action: 'block', ...BOTH_WAYS })),
  content_filters: [
    { pattern: 'never found', action: 'block', ...BOTH_WAYS },
    { pattern: 'Falcon-7', action: 'block', label: 'the project', ...BOTH_WAYS },
  ],
};
const SECRET = /4111 1111|bob@example|falcon-7/i;
const SECRETS = ['4111 1111 1111 1111', 'bob@example.com', 'Falcon-7'];
const TOOL = { type: 'object', properties: {} };

const FORMATS: [path: string, body: Json][] = [
  [
    '/chat/completions',
    {
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'function', function: { name: 'sh', parameters: TOOL } }],
    },
  ],
  [
    '/messages',
    { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], tools: [{ name: 'sh', input_schema: TOOL }] },
  ],
  ['/responses', { input: 'hi', tools: [{ type: 'function', name: 'sh', parameters: TOOL }] }],
  ['/completions', { prompt: 'hi' }],
];

const PLACES: Record<string, (secret: string) => Parameters<typeof answerOf>[2]> = {
  text: (secret) => ({ text: `It is ${secret}.`, finish: 'stop' }),
  thinking: (secret) => ({ thinking: { text: `It is ${secret}.` }, text: 'fine', finish: 'stop' }),
  call: (secret) => ({
    text: 'fine',
    calls: [{ id: 'c1', name: 'sh', arguments: JSON.stringify({ c: secret }) }],
    finish: 'tool_calls',
  }),
};

/** Everything that the caller and the operator can read about one request. */
async function toldOf(key: Awaited<ReturnType<typeof guarded>>, path: string, body: Json): Promise<string> {
  lines.length = 0;
  const answer = await key.post(path, body, { 'x-svc-metadata': 'enabled' });
  const id = answer.headers.get('x-generation-id');
  const row = await control.call('GET', `/generation?id=${id}`);
  assert.equal(row.status, 200);
  const content = await control.call('GET', `/generation/content?id=${id}`);
  const log = lines.join('');
  return JSON.stringify([answer.body, [...answer.headers], row.body, content.body, log]);
}

test('a blocked answer names filters and counts, and its text is in no error, stream, row, transcript or log', async () => {
  const key = await guarded(RULES);
  for (const spoken of ['chat', 'messages', 'responses'] as const) {
    for (const [path, format] of FORMATS) {
      for (const stream of [false, true]) {
        for (const [place, say] of Object.entries(PLACES)) {
          if (path === '/completions' && place !== 'text') continue;
          for (const secret of SECRETS) {
            const answer =
              spoken === 'responses' ? responsesAnswer(stream, say(secret)) : answerOf(spoken, stream, say(secret));
            upstream.script(spoken, answer);
            const told = await toldOf(key, path, { model: `test/${spoken}`, stream, ...format });
            const what = `${path} from ${spoken}, ${place}, streamed: ${stream}: ${told}`;
            assert.match(told, /blocks the answer/, what);
            assert.doesNotMatch(told, SECRET, what);
          }
        }
      }
    }
  }
});

test('the error of a blocked answer has the names of the filters and how often they matched', async () => {
  const key = await guarded(RULES);
  upstream.script(
    'chat',
    answerOf('chat', false, { text: 'bob@example.com and ann@example.com on Falcon-7', finish: 'stop' }),
  );
  const { body } = await key.post('/chat/completions', {
    model: 'test/chat',
    messages: [{ role: 'user', content: 'hi' }],
  });
  const where = { guardrail_id: key.guardrailId, guardrail_scope: 'api-key' };
  assert.equal(body.error.message, 'a guardrail of this key blocks the answer: email, the project');
  assert.deepEqual(body.error.metadata, {
    error_type: 'permission_denied',
    filters: [
      { slug: 'email', ...where, matches: 2 },
      { filter: 'content_filters[1]', ...where, matches: 1 },
    ],
  });
});

test('a number that is written in several forms at once counts once, in requests and in answers', async () => {
  const filter = { slug: 'phone', action: 'flag', apply_to: ['request', 'response'] };
  const key = await guarded({ content_filter_builtins: [filter] });
  upstream.script('chat', answerOf('chat', false, { text: 'call +1 415 555 2671 now', finish: 'stop' }));
  const answer = await key.post(
    '/chat/completions',
    { model: 'test/chat', messages: [{ role: 'user', content: 'call +1 415 555 2671 now' }] },
    { 'x-svc-metadata': 'enabled' },
  );
  const counts = answer.body.svc_metadata.pipeline.map(({ data }: Json) => data.matches);
  assert.deepEqual(counts, [1, 1]);
});

test('a pattern that redacts or flags a response is named by its path, which reveals nothing of it', async () => {
  for (const action of ['redact', 'flag']) {
    const key = await guarded({ content_filters: [{ pattern: 'Falcon-7', action, ...BOTH_WAYS }] });
    upstream.script('chat', answerOf('chat', false, { text: 'It is Falcon-7.', finish: 'stop' }));
    const answer = await key.post(
      '/chat/completions',
      { model: 'test/chat', messages: [{ role: 'user', content: 'hi' }] },
      { 'x-svc-metadata': 'enabled' },
    );
    const [stage] = answer.body.svc_metadata.pipeline;
    assert.deepEqual(stage.data.patterns, ['content_filters[0]']);
    const row = await control.call('GET', `/generation?id=${answer.headers.get('x-generation-id')}`);
    assert.equal(row.body.data.guardrails[0].filter, 'content_filters[0]');
  }
});

test('an upstream error that quotes the model shows labels instead', async () => {
  const key = await guarded(RULES);
  const raw = (secret: string) => ({
    error: {
      message: `Failed to call a function: ${secret}`,
      code: 'tool_use_failed',
      failed_generation: `<function=sh>{"c": "${secret}"}`,
    },
  });
  for (const secret of SECRETS) {
    for (const [path, format] of FORMATS) {
      const headers = { 'content-type': 'application/json' };
      upstream.script('chat', { status: 400, headers, chunks: [JSON.stringify(raw(secret))] });
      const refused = await toldOf(key, path, { model: 'test/chat', ...format });
      assert.match(refused, /Failed to call a function/, refused);
      assert.doesNotMatch(refused, SECRET, refused);
      upstream.script('chat', {
        headers: { 'content-type': 'text/event-stream' },
        chunks: [
          chatChunk({ role: 'assistant', content: 'Here. ' }),
          `data: ${JSON.stringify(raw(secret))}\n\n`,
          chatUsage(),
        ],
      });
      const broken = await toldOf(key, path, { model: 'test/chat', stream: true, ...format });
      assert.match(broken, /Failed to call a function/, broken);
      assert.doesNotMatch(broken, SECRET, broken);
    }
  }
});
