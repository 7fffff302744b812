/** The plugin `web-fetch`: models read pages although the request declares no tool. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, PATH_OF } from '../../src/testing/clients/whole-answer.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const site = await startUpstream();
after(() => site.close());
const home = site.script('site', { headers: { 'content-type': 'text/plain' }, chunks: ['Bees dance.'], repeat: true });
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: { chat: { kind: 'chat' } },
    yaml: { egress: { networks: ['127.0.0.1'], ports: [Number(new URL(home).port)] } },
  },
);

for (const format of CLIENT_FORMATS) {
  test(`the model reads a page within the settings of the plugin | ${format}`, async () => {
    const ask = async (plugin: Json, tools?: Json[]) => {
      const call = { id: 'call_1', name: 'web_fetch', arguments: JSON.stringify({ url: home }) };
      gateway.upstream.script(
        'chat',
        [{ calls: [call] }, { text: 'ok' }].map((told) => answerOf('chat', false, told)),
      );
      const messages = [{ role: 'user', content: 'hi' }];
      const reply = await gateway.post(PATH_OF[format], {
        model: 'test/chat',
        ...(format === 'messages' && { max_tokens: 1000 }),
        ...(format === 'responses' ? { input: messages } : { messages }),
        ...(tools && { tools }),
        plugins: [{ id: 'web-fetch', ...plugin }],
      });
      const text = await reply.text();
      const [first, last] = gateway.upstream.requests('chat').slice(-2) as [Json, Json];
      return {
        status: reply.status,
        text,
        names: first?.json.tools?.map((tool: Json) => tool.function.name),
        last: last?.json,
      };
    };
    const read = await ask({});
    assert.equal(read.status, 200, read.text);
    assert.deepEqual(read.names, ['web_fetch']);
    assert.match(read.last.messages.at(-1).content, /Bees dance/);
    const blocked = await ask({ blocked_domains: ['127.0.0.1'] });
    assert.match(blocked.last.messages.at(-1).content, /may not be fetched/);
    const declared = await ask({}, [{ type: 'svc:web_fetch' }]);
    assert.deepEqual(declared.names, ['web_fetch']);
    const refused = await ask({ max_uses: 0 });
    assert.equal(refused.status, 400);
    assert.match(refused.text, /plugins\[0\]\.max_uses/);
  });
}
