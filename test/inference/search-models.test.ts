/** The server tool that finds models: by words, within what the caller may use, and in each format. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF } from '../../src/testing/clients/whole-answer.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { startGuarded } from '../guardrails/guarded.ts';

const { gateway, guarded } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: { kind: 'chat' },
      painter: { kind: 'chat', model: { name: 'Painter of landscapes' } },
      poet: { kind: 'chat', model: { name: 'Poet of landscapes', context_length: 4000 } },
    },
  },
);

type Json = Record<string, unknown>;

/** The model searches for `query`; what it reads in its second turn, and the answer to the client. */
async function search(query: string, format: ClientFormat = 'chat', settings?: Json, key?: string) {
  const call = { id: 'call_1', name: 'search_models', arguments: JSON.stringify({ query }) };
  gateway.upstream.script('chat', [
    answerOf('chat', false, { calls: [call] }),
    answerOf('chat', false, { text: 'Found.' }),
  ]);
  const from = gateway.upstream.requests('chat').length;
  const turns = [{ role: 'user', content: 'Which model?' }];
  const reply = await gateway.post(
    PATH_OF[format],
    {
      model: 'test/chat',
      ...(format === 'messages' && { max_tokens: 1000 }),
      ...(format === 'responses' ? { input: turns } : { messages: turns }),
      tools: [{ type: 'svc:experimental__search_models', ...(settings && { parameters: settings }) }],
    },
    key === undefined ? {} : { authorization: `Bearer ${key}` },
  );
  const text = await reply.text();
  const second = gateway.upstream.requests('chat')[from + 1]?.json as { messages: { content: string }[] } | undefined;
  return { status: reply.status, text, result: second?.messages.at(-1)?.content ?? '' };
}

const idsIn = (result: string) => JSON.parse(result).models.map(({ id }: { id: string }) => id);

test('models are found by the words of their names, best first, with what a choice needs', async () => {
  const { result } = await search('poet landscapes');
  assert.deepEqual(idsIn(result), ['test/poet', 'test/painter']);
  const [poet] = JSON.parse(result).models;
  assert.equal(poet.context_length, 4000);
  assert.deepEqual(poet.usd_per_million, { prompt: 3, completion: 15 });
  assert.deepEqual(idsIn((await search('xylophone')).result), []);
});

test('the number of results has a limit, and settings that are not valid are refused with their path', async () => {
  assert.equal(idsIn((await search('landscapes', 'chat', { max_results: 1 })).result).length, 1);
  const refused = await search('landscapes', 'chat', { max_results: 21 });
  assert.equal(refused.status, 400);
  assert.match(refused.text, /tools\[0\]\.parameters\.max_results/);
});

for (const format of CLIENT_FORMATS) {
  test(`the client sees the search | ${format}`, async () => {
    const { status, text } = await search('poet', format);
    assert.equal(status, 200, text);
    assert.match(text, /poet/);
    assert.match(text, /search_models/);
  });
}

test('models that the guardrails of the key do not allow are not found', async () => {
  const { token } = await guarded({ allowed_models: ['test/chat', 'test/painter'] });
  const { status, text, result } = await search('poet landscapes', 'chat', undefined, token);
  assert.equal(status, 200, text);
  assert.deepEqual(idsIn(result), ['test/painter']);
});
