/** Server tools with unmodified client libraries: streamed and not, and the next request with what they read. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenRouter } from '@openrouter/ai-sdk-provider';
import { OpenRouter } from '@openrouter/sdk';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { type Json, startBench } from '../../src/testing/gateway/sdk.ts';
import type { Told } from '../../src/testing/upstream/answers.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';

const engines = await startUpstream();
after(() => engines.close());
const PAGE = { url: 'https://a.example/x', title: 'Page A', content: 'All about A.' };
const url = engines.script('searxng', [{ chunks: [JSON.stringify({ results: [PAGE] })], repeat: true }]);
const { gateway, script } = await startBench({ yaml: { web_search: { engines: [{ kind: 'searxng', url }] } } });

const CALLS = [
  { id: 'call_1', name: 'datetime', arguments: '{"timezone":"Asia/Tokyo"}' },
  { id: 'call_2', name: 'web_search', arguments: '{"query":"A"}' },
];
const ANSWER = `See [A](${PAGE.url}).`;
const TURNS: Told[] = [{ text: 'Let me see. ', calls: CALLS }, { text: ANSWER }];
const TOOLS = [{ type: 'svc:datetime' }, { type: 'svc:web_search' }] as Json[];

/** The library knows no other prefix. */
const ALIASED = TOOLS.map(({ type }) => ({ type: type.replace('svc', 'openrouter') }));

const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: INFERENCE_KEY, authToken: null, maxRetries: 0 });
const openrouter = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY });

/** The upstream got both calls with their results, and everything of the first answer. */
function continued(sent: readonly Json[]) {
  const text = JSON.stringify(sent.at(-1).messages);
  assert.ok(text.includes('Asia/Tokyo') && text.includes('All about A.') && text.includes('See [A]'), text);
}

for (const stream of [false, true]) {
  const way = stream ? ', streamed' : '';

  test(`openai chat${way}`, async () => {
    const asked = { model: 'test/chat', messages: [{ role: 'user', content: 'A?' }], tools: TOOLS } as Json;
    script('chat', stream, ...TURNS);
    const message = stream
      ? (await openai.chat.completions.stream(asked).finalChatCompletion()).choices[0]!.message
      : (await openai.chat.completions.create(asked)).choices[0]!.message;
    assert.equal((message as Json).content, `Let me see. ${ANSWER}`);
    const sent = script('chat', false, { text: 'ok' });
    await openai.chat.completions.create({
      ...asked,
      messages: [...asked.messages, message, { role: 'user', content: 'More' }],
    });
    // The library's accumulated stream keeps only the members that it knows.
    if (!stream) continued(sent());
  });

  test(`openai responses${way}`, async () => {
    const asked = { model: 'test/messages', input: [{ role: 'user', content: 'A?' }], tools: TOOLS } as Json;
    script('messages', stream, ...TURNS);
    const response = stream
      ? await openai.responses.stream(asked).finalResponse()
      : await openai.responses.create(asked);
    assert.equal((response as Json).output_text, `Let me see. ${ANSWER}`);
    const { output } = response as Json;
    assert.deepEqual(
      output.map(({ type }: Json) => type),
      ['message', 'svc:datetime', 'svc:web_search', 'message'],
    );
    const sent = script('messages', false, { text: 'ok' });
    await openai.responses.create({ ...asked, input: [...asked.input, ...output, { role: 'user', content: 'More' }] });
    continued(sent());
  });

  test(`anthropic${way}`, async () => {
    const asked = {
      model: 'test/chat',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'A?' }],
      tools: TOOLS,
    } as Json;
    script('chat', stream, ...TURNS);
    const message = stream
      ? await anthropic.messages.stream(asked).finalMessage()
      : await anthropic.messages.create(asked);
    const { content } = message as Json;
    assert.deepEqual(
      content.map(({ type }: Json) => type),
      ['text', 'server_tool_use', 'server_tool_use', 'svc_datetime_tool_result', 'web_search_tool_result', 'text'],
    );
    const sent = script('chat', false, { text: 'ok' });
    await anthropic.messages.create({
      ...asked,
      messages: [...asked.messages, { role: 'assistant', content }, { role: 'user', content: 'More' }],
    });
    continued(sent());
  });

  test(`openrouter${way}`, async () => {
    const asked = { model: 'test/chat', messages: [{ role: 'user', content: 'A?' }], tools: TOOLS } as Json;
    script('chat', stream, ...TURNS);
    const reply: Json = await openrouter.chat.send({ chatRequest: { ...asked, stream } });
    let text = '';
    const details: Json[] = [];
    if (stream) {
      for await (const chunk of reply) {
        const delta = chunk.choices[0]?.delta ?? {};
        text += delta.content ?? '';
        details.push(...(delta.reasoningDetails ?? []));
      }
    } else {
      text = reply.choices[0].message.content;
      details.push(...reply.choices[0].message.reasoningDetails);
    }
    assert.equal(text, `Let me see. ${ANSWER}`);
    assert.deepEqual(
      details.map(({ toolName }) => toolName),
      ['datetime', 'web_search'],
    );
    const sent = script('chat', false, { text: 'ok' });
    const history = [
      { role: 'assistant', content: text, reasoningDetails: details },
      { role: 'user', content: 'More' },
    ];
    await openrouter.chat.send({ chatRequest: { ...asked, messages: [...asked.messages, ...history], stream: false } });
    continued(sent());
  });

  test(`openrouter responses${way}`, async () => {
    const asked = { model: 'test/chat', input: 'A?', tools: ALIASED } as Json;
    script('chat', stream, ...TURNS);
    const reply: Json = await openrouter.responses.send({ responsesRequest: { ...asked, stream } });
    let response = reply;
    if (stream) for await (const event of reply) if (event.type === 'response.completed') response = event.response;
    assert.equal(response.output.length, 4);
    const sent = script('chat', false, { text: 'ok' });
    const input = [{ role: 'user', content: 'A?' }, ...response.output, { role: 'user', content: 'More' }];
    await openrouter.responses.send({ responsesRequest: { ...asked, input, stream: false } });
    const text = JSON.stringify(sent().at(-1).messages);
    assert.ok(text.includes('Asia/Tokyo') && text.includes('See [A]'), text);
  });

  test(`ai${way}`, async () => {
    const provider = createOpenRouter({ baseURL: gateway.api, apiKey: INFERENCE_KEY, extraBody: { tools: TOOLS } });
    const asked = { model: provider.chat('test/chat'), prompt: 'A?', maxRetries: 0 };
    script('chat', stream, ...TURNS);
    const text = stream ? await streamText(asked).text : (await generateText(asked)).text;
    assert.equal(text, `Let me see. ${ANSWER}`);
  });
}
