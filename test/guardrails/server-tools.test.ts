/** Guardrail filters on what server tools are sent and what they return, in every served format. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF } from '../../src/testing/clients/whole-answer.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';
import type { Json } from '../workspaces/control.ts';
import { type GuardedKey, startGuarded } from './guarded.ts';

const engines = await startUpstream();
after(() => engines.close());
const url = engines.script('searxng', []);
const { gateway, guarded } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: { kind: 'chat' } }, yaml: { web_search: { engines: [{ kind: 'searxng', url }] } } },
);

const filter = (action: string, direction: string) => ({
  content_filter_builtins: [{ slug: 'email', action, apply_to: [direction] }],
});

/** The page that is found has an address in it. */
async function search(key: GuardedKey, format: ClientFormat, stream: boolean, query: string) {
  const page = { url: 'https://a.example/x', title: 'A', content: 'Write to page@example.com' };
  engines.script('searxng', [{ chunks: [JSON.stringify({ results: [page] })] }]);
  const call = { id: 'call_1', name: 'web_search', arguments: JSON.stringify({ query }) };
  const turns: Told[] = [{ calls: [call] }, { text: 'ok' }];
  gateway.upstream.script(
    'chat',
    turns.map((told) => answerOf('chat', stream, { usage: { input: 10, output: 5 }, ...told })),
  );
  const [asked, sent] = [engines.requests('searxng').length, gateway.upstream.requests('chat').length];
  const messages = [{ role: 'user', content: 'hi' }];
  const { status, body, headers } = await key.post(PATH_OF[format], {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 100 }),
    ...(format === 'responses' ? { input: messages } : { messages }),
    tools: [{ type: 'svc:web_search' }],
  });
  return {
    status,
    text: typeof body === 'string' ? body : JSON.stringify(body),
    queries: engines
      .requests('searxng')
      .slice(asked)
      .map(({ path }) => decodeURIComponent(path)),
    turns: gateway.upstream
      .requests('chat')
      .slice(sent)
      .map(({ json }) => JSON.stringify((json as Json).messages)),
    id: headers.get('x-generation-id')!,
  };
}

for (const format of CLIENT_FORMATS) {
  test(`what a tool returns is filtered like a request before the model reads it | ${format}`, async () => {
    const [redacting, blocking] = [
      await guarded(filter('redact', 'request')),
      await guarded(filter('block', 'request')),
    ];
    for (const stream of [false, true]) {
      const redacted = await search(redacting, format, stream, 'who?');
      assert.match(redacted.turns[1]!, /Write to \[EMAIL\]/);
      const blocked = await search(blocking, format, stream, 'who?');
      assert.equal(blocked.status, 200, blocked.text);
      assert.match(blocked.turns[1]!, /a guardrail blocks what the tool found/);
      assert.doesNotMatch(blocked.turns[1]! + blocked.text, /page@/);
    }
  });

  test(`what a tool is sent is filtered like the answer that it is a part of | ${format}`, async () => {
    const [redacting, blocking] = [
      await guarded(filter('redact', 'response')),
      await guarded(filter('block', 'response')),
    ];
    for (const stream of [false, true]) {
      const redacted = await search(redacting, format, stream, 'find bob@example.com');
      assert.match(redacted.queries[0]!, /find\+\[EMAIL\]/);
      assert.doesNotMatch(redacted.text, /bob@|page@/);
      const blocked = await search(blocking, format, stream, 'find bob@example.com');
      assert.deepEqual(blocked.queries, []);
      assert.match(blocked.text, /a guardrail of this key blocks the answer/);
      assert.equal(blocked.turns.length, 1);
    }
  });
}
