/** What came to light when formats, features and services were mixed: each asked of the ways through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask, FORMAT_PAIRS, readWhole, rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Format } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: {},
      messages: { kind: 'messages' },
      sonnet: { kind: 'anthropic', model: { upstream_id: 'claude-sonnet-4-5' } },
      opus: { kind: 'anthropic', model: { upstream_id: 'claude-opus-4-8' } },
    },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const USER = { role: 'user', content: 'x' };

/** What the upstream got for a request that must succeed. */
async function sent(served: Format, provider: string, body: Record<string, unknown>): Promise<Json> {
  gateway.upstream.script(provider, answerOf(provider === 'chat' ? 'chat' : 'messages', false, { text: 'ok' }));
  const { status, text } = await ask(gateway, served, `test/${provider}`, body);
  assert.equal(status, 200, text);
  return gateway.upstream.requests(provider).at(-1)!.json;
}

test('a system message in the middle reaches each model in a role that it takes there', async () => {
  const system = (content: string) => ({ role: 'system', content });
  const messages = [system('first'), USER, system('late'), { role: 'assistant', content: 'a' }, system('later'), USER];
  const texts = (...words: string[]) => words.map((text) => ({ type: 'text', text }));
  for (const provider of ['sonnet', 'messages']) {
    const older = await sent('chat', provider, { messages });
    assert.deepEqual(older.system, texts('first'));
    assert.deepEqual(older.messages, [
      { role: 'user', content: texts('x', 'late') },
      { role: 'assistant', content: texts('a') },
      { role: 'user', content: texts('later', 'x') },
    ]);
  }
  assert.deepEqual((await sent('chat', 'opus', { messages })).messages, [
    { role: 'user', content: texts('x') },
    { role: 'system', content: texts('late') },
    { role: 'assistant', content: texts('a') },
    { role: 'user', content: texts('later', 'x') },
  ]);
});

test('what only the messages format has a place for is never left out without a word', async () => {
  const mcp_servers = [{ type: 'url', url: 'https://mcp.example/', name: 'm' }];
  const { status, json } = await ask(gateway, 'messages', 'test/chat', { mcp_servers });
  assert.equal(status, 400);
  assert.match(json.error.message, /mcp_servers/);
  assert.equal(gateway.upstream.requests('chat').length, 0);
  assert.deepEqual((await sent('messages', 'sonnet', { mcp_servers })).mcp_servers, mcp_servers);
  await sent('messages', 'chat', { mcp_servers: [], container: null });
});

for (const { name, served, spoken } of FORMAT_PAIRS) {
  test(`${name} | a byte order mark in front of a whole answer is no fault`, async () => {
    const answer = answerOf(spoken, false, { text: 'ok' });
    gateway.upstream.script(spoken, { ...answer, chunks: ['\ufeff', ...answer.chunks!] });
    const { status, text } = await ask(gateway, served, `test/${spoken}`);
    assert.equal(status, 200, text);
    assert.equal(readWhole(served, text).text, 'ok');
  });
}

for (const { name, served, spoken } of FORMAT_PAIRS) {
  test(`6 and its kind | ${name} | impossible counts are estimated, neither free nor excessive`, async () => {
    const answer = answerOf(spoken, false, { text: 'ok', usage: { input: 777, output: 5 } });
    for (const count of ['-10', '1e30', '99999999999999999999999']) {
      const text = String(answer.chunks![0]);
      assert.match(text, /:777,/);
      gateway.upstream.script(spoken, { ...answer, chunks: [text.replace(':777,', `:${count},`)] });
      const { status, headers, text: told } = await ask(gateway, served, `test/${spoken}`);
      assert.equal(status, 200);
      assert.ok(!told.includes(count), `the client is shown ${count}`);
      const row = (await rowOf(gateway, headers.get('x-generation-id')!)) as Json;
      assert.ok(row.tokens_prompt > 0 && row.tokens_prompt < 100, `${count} became ${row.tokens_prompt}`);
      assert.ok(row.total_cost > 0 && row.total_cost < 0.001, `${count} cost ${row.total_cost}`);
    }
  });
}
