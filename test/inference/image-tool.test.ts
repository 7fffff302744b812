/** `svc:image_generation` through a whole gateway: a request to the images operation within a conversation. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { PNG } from '../../src/testing/gateway/sdk.ts';
import { answerOf, errorOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const IMAGE_USD = 0.04;
const { gateway, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: { kind: 'chat' },
      claude: { kind: 'messages' },
      paint: {
        kind: 'openai',
        model: {
          upstream_id: 'dall-e-3',
          output_modalities: ['image'],
          pricing: { prompt: '0', completion: '0', output_images: [{ price: String(IMAGE_USD) }] },
        },
      },
    },
  },
);

const USAGE = { input: 10, output: 5 };
const TURN_USD = 0.000105;
const CALL = { id: 'call_1', name: 'generate_image', arguments: '{"prompt":"a red dot"}' };
const MADE = wholeOf({ created: 1_760_000_000, data: [{ b64_json: PNG }] });

interface Asked {
  format?: ClientFormat;
  stream?: boolean;
  parameters?: Json;
  made?: Answer;
  key?: string;
  more?: Json;
}

async function ask({ format = 'chat', stream = false, parameters, made = MADE, key, more }: Asked = {}) {
  const turns = [{ calls: [CALL] }, { text: 'Here it is.' }].map((told) =>
    answerOf('chat', stream, { usage: USAGE, ...told }),
  );
  gateway.upstream.script('chat', turns);
  gateway.upstream.script('paint', [made]);
  const before = { chat: gateway.upstream.requests('chat').length, paint: gateway.upstream.requests('paint').length };
  const messages = [{ role: 'user', content: 'Draw.' }];
  const body = {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: messages } : { messages }),
    tools: [{ type: 'svc:image_generation', parameters: { model: 'test/paint', size: '1024x1024', ...parameters } }],
    ...more,
  };
  const reply = await gateway.post(PATH_OF[format], body, key ? { authorization: `Bearer ${key}` } : {});
  const text = await reply.text();
  const sent = (to: 'chat' | 'paint'): Json[] =>
    gateway.upstream
      .requests(to)
      .slice(before[to])
      .map(({ json }) => json);
  return { status: reply.status, text, sent, body: body as Json, read: () => wholeAnswer(format, stream, text) };
}

async function rowsOf(hash: string, count: number): Promise<Json[]> {
  for (;;) {
    const reply = await gateway.get(`/generations?api_key_id=${hash}`, MANAGEMENT_KEY);
    const { data } = (await reply.json()) as Json;
    if (data.length >= count) return data;
  }
}

const near = (one: number, other: number) => assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);

for (const format of CLIENT_FORMATS) {
  for (const stream of [false, true]) {
    test(`an image is made, shown and charged once, and the next request goes anywhere | ${format}${stream ? ', streamed' : ''}`, async () => {
      const key = await control.keyIn(undefined, 'draws');
      const { status, text, sent, body, read } = await ask({ format, stream, key: key.token });
      assert.equal(status, 200, text);
      const [{ prompt, size, n }] = sent('paint');
      assert.deepEqual([prompt, size, n], ['a red dot', '1024x1024', 1]);
      const told = sent('chat')[1].messages.at(-1).content;
      assert.match(told, /image\/png/);
      const { history, usage } = read();
      near(usage.cost, 2 * TURN_USD + IMAGE_USD);
      near(usage.cost_details.server_tool_cost, IMAGE_USD);
      const rows = await rowsOf(key.hash, 2);
      near(rows.find(({ model }) => model === 'test/paint').total_cost, IMAGE_USD);
      if (format === 'chat') assert.equal(history[0].images[0].image_url.url, `data:image/png;base64,${PNG}`);
      else if (format === 'messages') {
        const { type, content } = history[0].content[1];
        assert.deepEqual([type, content.result, content.prompt], ['svc_image_generation_tool_result', PNG, prompt]);
      } else {
        const { type, status: state, result } = history[0];
        assert.deepEqual([type, state, result], ['svc:image_generation', 'completed', PNG]);
      }
      // What a client keeps that knows no additional members.
      const lean = JSON.parse(JSON.stringify(history), (name, value) =>
        /^(text|output)$/.test(name) && typeof value === 'string' && /An image/.test(value) ? undefined : value,
      );
      for (const past of [history, lean]) {
        for (const [upstream, form] of [
          ['chat', 'chat'],
          ['claude', 'messages'],
        ] as const) {
          gateway.upstream.script(upstream, [answerOf(form, false, { text: 'ok' })]);
          const list = format === 'responses' ? 'input' : 'messages';
          const more = { ...body, model: `test/${upstream}`, stream: false };
          more[list] = [...body[list], ...past, { role: 'user', content: 'Thanks.' }];
          const next = await gateway.post(PATH_OF[format], more);
          assert.equal(next.status, 200, await next.text());
          const got = JSON.stringify(gateway.upstream.requests(upstream).at(-1)!.json);
          assert.ok(got.includes('a red dot') && !got.includes(PNG), got);
        }
      }
    });
  }
}

test('settings are those of the operation and refused with their path; a service that fails is an error for the model', async () => {
  for (const [parameters, path] of [
    [{ size: '1x1' }, 'size'],
    [{ size: 7 }, 'size'],
    [{ quality: 'best' }, 'quality'],
    [{ output_format: 'gif' }, 'output_format'],
    [{ background: 'transparent', output_format: 'jpeg' }, 'background'],
    [{ n: 2 }, 'n'],
    [{ model: 'test/none' }, 'model'],
  ] as const) {
    const { status, text } = await ask({ parameters });
    assert.equal(status, 400, text);
    assert.ok(text.includes(`tools[0].parameters.${path}`), text);
  }
  const { status, text, sent, read } = await ask({ made: errorOf('chat', 400, 'no dots'), format: 'responses' });
  assert.equal(status, 200, text);
  assert.match(sent('chat')[1].messages.at(-1).content, /error/);
  const { history, usage } = read();
  assert.deepEqual([history[0].status, history[0].result], ['incomplete', null]);
  near(usage.cost, 2 * TURN_USD);
});

test('a budget that does not cover the image: it is not made', async () => {
  const { token } = await control.keyIn(undefined, 'poor', { limit: 0.02 });
  const { status, text, sent } = await ask({ key: token, more: { max_tokens: 100 } });
  assert.equal(status, 200, text);
  assert.equal(sent('paint').length, 0);
  assert.match(sent('chat')[1].messages.at(-1).content, /USD/);
});
