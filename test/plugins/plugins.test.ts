/** Plugins through a whole gateway: which names are taken, response healing and context compression, in every format. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import {
  BODY_FORMATS,
  type BodyFormat,
  readServedStream,
  readServedWhole,
} from '../../src/testing/clients/served-answer.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Format, type Told } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: { kind: 'chat' },
      messages: { kind: 'messages' },
      small: { kind: 'chat', model: { upstream_id: 'gpt-4o-mini', context_length: 400 } },
    },
  },
);

const ROUTES: Record<BodyFormat, string> = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
};
const HEALING = { id: 'response-healing' };

/** A request in the format for one question, with JSON as the output. */
function bodyOf(served: BodyFormat, model: string, more: Json = {}): Json {
  const { schema, ...rest } = more;
  const wanted = schema ?? { type: 'object' };
  if (served === 'responses') {
    const format = { type: 'json_schema', name: 'place', schema: wanted };
    return { model, input: 'Where?', text: { format }, ...rest };
  }
  const output =
    served === 'chat'
      ? { response_format: { type: 'json_schema', json_schema: { name: 'place', schema: wanted } } }
      : { output_config: { format: { type: 'json_schema', schema: wanted } }, max_tokens: 1000 };
  return { model, messages: [{ role: 'user', content: 'Where?' }], ...output, ...rest };
}

async function ask(served: BodyFormat, spoken: Format, told: Told, more: Json) {
  gateway.upstream.script(spoken, answerOf(spoken, more.stream === true, told));
  const reply = await gateway.post(ROUTES[served], bodyOf(served, `test/${spoken}`, more), {
    'x-svc-metadata': 'enabled',
  });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  const read = more.stream ? readServedStream(served, text, 'finish') : readServedWhole(served, text);
  const metadata = /"svc_metadata":(\{.*\})/.exec(text);
  return {
    ...read.choices[0]!,
    pipeline: metadata?.[0] ?? '',
    sent: gateway.upstream.requests(spoken).at(-1)!.json as Json,
  };
}

for (const served of BODY_FORMATS) {
  test(`${served}: a plugin that does not exist, is named twice or has wrong settings is refused with its path`, async () => {
    const cases: [Json[], string][] = [
      [[{ id: 'nothing' }], 'plugins[0].id'],
      [[{ id: 'nothing', enabled: false }], 'plugins[0].id'],
      [[HEALING, { id: 'response-healing', enabled: false }], 'plugins[1].id'],
      [[HEALING, { id: 'context-compression', engine: 'zip' }], 'plugins[1].engine'],
      [[{ id: 'switchyard-router', judge_model: 'test/chat' }], 'plugins[0].judge_model'],
      [[{ id: 'response-healing', enabled: 'yes' }], 'plugins[0].enabled'],
      [[{}], 'plugins[0].id'],
    ];
    for (const [plugins, path] of cases) {
      const reply = await gateway.post(ROUTES[served], bodyOf(served, 'test/chat', { plugins }));
      const text = await reply.text();
      assert.equal(reply.status, 400, text);
      assert.ok(text.includes(path), `${path} in ${text}`);
    }
  });

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole';

    test(`${served}: JSON in fences is healed, whatever the upstream speaks, and the plugin stays here | ${how}`, async () => {
      for (const spoken of ['chat', 'messages'] as const) {
        const told = { text: 'Here it is:\n```json\n{"city": "Zürich", "n": 9007199254740993,}\n```' };
        const answer = await ask(served, spoken, told, { stream, plugins: [HEALING] });
        assert.equal(answer.text, '{"city": "Zürich", "n": 9007199254740993}');
        assert.equal('plugins' in answer.sent, false);
        assert.match(answer.pipeline, /"type":"response_healing","name":"response-healing"/);
      }
    });

    test(`${served}: without the plugin, disabled, or where the schema says no, the text is as the model wrote it | ${how}`, async () => {
      const text = '```json\n{"city": "Bern",}\n```';
      const schema = { type: 'object', properties: {}, required: ['town'] };
      for (const more of [{}, { plugins: [{ ...HEALING, enabled: false }] }, { plugins: [HEALING], schema }]) {
        assert.equal((await ask(served, 'chat', { text }, { ...more, stream })).text, text);
      }
    });

    test(`${served}: thinking and calls are shown as they are | ${how}`, async () => {
      const call = { id: 'call_1', name: 'get_time', arguments: '{}' };
      const definition = { name: 'get_time', description: 'x' };
      const parameters = { type: 'object', properties: {} };
      const tools =
        served === 'chat'
          ? [{ type: 'function', function: { ...definition, parameters } }]
          : served === 'messages'
            ? [{ ...definition, input_schema: parameters }]
            : [{ type: 'function', ...definition, parameters }];
      const told = { thinking: { text: 'Hm.' }, text: 'One moment: {', calls: [call] };
      const answer = await ask(served, 'chat', told, { stream, tools, plugins: [HEALING] });
      assert.deepEqual([answer.reasoning, answer.text, answer.calls[0]?.name], ['Hm.', 'One moment: {', 'get_time']);
    });
  }
}

const LONG = 'word '.repeat(60);

/** A history of questions and answers in the format. */
function historyOf(served: BodyFormat): Json {
  const turns = [1, 2, 3, 4, 5, 6, 7].flatMap((n) => [
    { role: 'user', content: `question ${n} ${LONG}` },
    { role: 'assistant', content: `answer ${n}` },
  ]);
  const history = [...turns, { role: 'user', content: 'the last question' }];
  return served === 'responses' ? { input: history } : { messages: history };
}

for (const served of BODY_FORMATS) {
  test(`${served}: a history beyond the context loses its middle, and the metadata says so`, async () => {
    const body = { model: 'test/small', max_tokens: 50, ...historyOf(served) };
    if (served === 'responses') delete body.max_tokens;
    const more = { max_output_tokens: 50 };
    const asked = { ...body, ...(served === 'responses' && more), plugins: [{ id: 'context-compression' }] };
    gateway.upstream.script('small', answerOf('chat', false, { text: 'ok' }));
    const reply = await gateway.post(ROUTES[served], asked, { 'x-svc-metadata': 'enabled' });
    const text = await reply.text();
    assert.equal(reply.status, 200, text);
    const sent = (gateway.upstream.requests('small').at(-1)!.json as Json).messages.map(({ content }: Json) =>
      (typeof content === 'string' ? content : content[0].text).replace(LONG, '').trim(),
    );
    assert.equal(sent.at(-1), 'the last question');
    assert.equal(sent[0], 'question 1');
    assert.ok(sent.length < 15 && sent.length > 3, `${sent.length} messages were sent`);
    const { pipeline } = JSON.parse(text).svc_metadata;
    const [{ type, name, data }] = pipeline;
    assert.deepEqual(
      [type, name, data.engine, data.estimated],
      ['context_compression', 'context-compression', 'middle-out', false],
    );
    assert.equal(data.dropped_messages, 15 - sent.length);
    assert.ok(data.tokens_before > data.tokens_allowed && data.tokens_after <= data.tokens_allowed);
  });
}

for (const served of ['chat', 'responses'] as const) {
  test(`${served}: transforms with middle-out compresses as the plugin does, which takes precedence`, async () => {
    const limit = served === 'chat' ? { max_tokens: 50 } : { max_output_tokens: 50 };
    const body = { model: 'test/small', ...limit, ...historyOf(served) };
    const post = (more: Json) => gateway.post(ROUTES[served], { ...body, ...more }, { 'x-svc-metadata': 'enabled' });
    gateway.upstream.script('small', answerOf('chat', false, { text: 'ok' }));
    const reply = await post({ transforms: ['middle-out'] });
    const text = await reply.text();
    assert.equal(reply.status, 200, text);
    assert.equal(JSON.parse(text).svc_metadata.pipeline[0].type, 'context_compression');
    assert.equal('transforms' in (gateway.upstream.requests('small').at(-1)!.json as Json), false);
    const plugins = [{ id: 'context-compression', enabled: false }];
    for (const off of [{ transforms: [] }, { transforms: null }, { transforms: ['middle-out'], plugins }]) {
      assert.doesNotMatch(await (await post(off)).text(), /context_compression/);
    }
    const unknown = await post({ transforms: ['middle-out', 'zip'] });
    assert.match(await unknown.text(), /transforms\[1\]/);
  });
}

test('a history that fits is relayed byte for byte, and one that fits nowhere is refused as too long', async () => {
  gateway.upstream.script('small', answerOf('chat', false, { text: 'ok' }));
  const messages = [{ role: 'user', content: 'hi' }];
  const plugins = [{ id: 'context-compression' }];
  const fits = await gateway.post(ROUTES.chat, { model: 'test/small', messages, max_tokens: 50, plugins });
  assert.equal(fits.status, 200);
  await fits.text();
  assert.deepEqual((gateway.upstream.requests('small').at(-1)!.json as Json).messages, messages);
  const huge = [{ role: 'user', content: 'word '.repeat(2000) }];
  const refused = await gateway.post(ROUTES.chat, { model: 'test/small', messages: huge, max_tokens: 50, plugins });
  assert.equal(refused.status, 400);
  assert.equal(((await refused.json()) as Json).error.code, 400);
});

test('the real clients get healed answers', async () => {
  const told = { text: '<think>Hm.</think>```json\n{"city": "Bern"' };
  const heal = (stream: boolean) => gateway.upstream.script('chat', answerOf('chat', stream, told));
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const { stream: _, ...asked } = bodyOf('chat', 'test/chat', { plugins: [HEALING] });
  heal(false);
  const whole = await openai.chat.completions.create(asked);
  assert.equal(whole.choices[0]!.message.content, '{"city": "Bern"}');
  heal(true);
  let text = '';
  for await (const chunk of (await openai.chat.completions.create({
    ...asked,
    stream: true,
  })) as unknown as AsyncIterable<Json>) {
    text += chunk.choices[0]?.delta.content ?? '';
  }
  assert.equal(text, '{"city": "Bern"}');
  heal(false);
  const response: Json = await openai.responses.create(bodyOf('responses', 'test/chat', { plugins: [HEALING] }));
  assert.equal(response.output_text, '{"city": "Bern"}');
  heal(true);
  const anthropic = new Anthropic({ baseURL: gateway.url + '/api', apiKey: INFERENCE_KEY, maxRetries: 0 });
  const message = await anthropic.messages
    .stream(bodyOf('messages', 'test/chat', { plugins: [HEALING] }))
    .finalMessage();
  assert.deepEqual(
    message.content.map((block: Json) => block.text),
    ['{"city": "Bern"}'],
  );
  heal(false);
  const openrouter = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY });
  const sent: Json = await openrouter.chat.send({
    chatRequest: {
      model: 'test/chat',
      messages: [{ role: 'user', content: 'Where?' }],
      responseFormat: { type: 'json_object' },
      plugins: [{ id: 'response-healing' }],
      stream: false,
    },
  });
  assert.equal(sent.choices[0].message.content, '{"city": "Bern"}');
});
