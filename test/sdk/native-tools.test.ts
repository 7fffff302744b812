/** Searches of providers with unmodified client libraries: recorded answers, streamed and not, and the next request. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { OpenRouter } from '@openrouter/sdk';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { type Json, startBench } from '../../src/testing/gateway/sdk.ts';
import { corpusMissing, recordings } from '../../src/testing/recordings/corpus.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const { gateway } = await startBench({
  providers: {
    claude: { kind: 'anthropic', model: { upstream_id: 'claude-sonnet-4-6' } },
    gemini: { kind: 'google', model: { upstream_id: 'gemini-2.5-flash' } },
    plain: { kind: 'chat' },
  },
});

const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: INFERENCE_KEY, authToken: null, maxRetries: 0 });
const openrouter = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY });
const TOOLS = [{ type: 'svc:web_search', parameters: { engine: 'native' } }] as Json[];

const RECORDED = [
  { upstream: 'claude', stream: false, id: 'messages-web-search.json' },
  { upstream: 'claude', stream: true, id: 'claude-haiku-4-5-streams-search' },
  { upstream: 'gemini', stream: true, id: 'google-model-web-search-tool-stream' },
] as const;

/** Scripts the recording. */
function play({ upstream, id }: (typeof RECORDED)[number]): void {
  const { bytes, stream } = recordings(undefined, /anthropic|google/).find((each) => each.id.includes(id))!;
  const type = stream ? 'text/event-stream' : 'application/json';
  gateway.upstream.script(upstream, [{ headers: { 'content-type': type }, chunks: [bytes] } satisfies Answer]);
}

/** Scripts an upstream without a search for the next request, and checks that it got nothing that only others read. */
async function continued(ask: () => PromiseLike<unknown>): Promise<void> {
  gateway.upstream.script('plain', [answerOf('chat', false, { text: 'ok' })]);
  await ask();
  assert.doesNotMatch(JSON.stringify(gateway.upstream.requests('plain').at(-1)!.json), /_shown_|sealed-block|srvtoolu/);
}

describe('recorded searches', { skip: corpusMissing }, () => {
  for (const recorded of RECORDED) {
    const { upstream, stream } = recorded;
    const way = `${upstream}${stream ? ', streamed' : ''}`;
    const model = `test/${upstream}`;

    test(`openai chat | ${way}`, async () => {
      play(recorded);
      const asked = { model, messages: [{ role: 'user', content: 'News?' }], tools: TOOLS } as Json;
      const completion: Json = stream
        ? await openai.chat.completions.stream(asked).finalChatCompletion()
        : await openai.chat.completions.create(asked);
      const [{ message }] = completion.choices;
      assert.notEqual(message.content, '');
      assert.equal(message.tool_calls?.length ?? 0, 0);
      const messages = [...asked.messages, message, { role: 'user', content: 'More' }];
      await continued(() => openai.chat.completions.create({ model: 'test/plain', messages }));
    });

    test(`openai responses | ${way}`, async () => {
      play(recorded);
      const asked = { model, input: [{ role: 'user', content: 'News?' }], tools: TOOLS } as Json;
      const { output }: Json = stream
        ? await openai.responses.stream(asked).finalResponse()
        : await openai.responses.create(asked);
      const search = output.find(({ type }: Json) => type === 'web_search_call');
      assert.deepEqual([search.status, search.action.type], ['completed', 'search']);
      const input = [...asked.input, ...output, { role: 'user', content: 'More' }];
      await continued(() => openai.responses.create({ model: 'test/plain', input }));
    });

    test(`anthropic | ${way}`, async () => {
      play(recorded);
      const asked = { model, max_tokens: 100, messages: [{ role: 'user', content: 'News?' }], tools: TOOLS } as Json;
      const { content }: Json = stream
        ? await anthropic.messages.stream(asked).finalMessage()
        : await anthropic.messages.create(asked);
      const types = content.map(({ type }: Json) => type);
      assert.ok(types.includes('server_tool_use') && types.includes('web_search_tool_result'), types.join());
      const messages = [...asked.messages, { role: 'assistant', content }, { role: 'user', content: 'More' }];
      await continued(() => anthropic.messages.create({ model: 'test/plain', max_tokens: 100, messages }));
    });

    test(`openrouter responses | ${way}`, async () => {
      play(recorded);
      const tools = TOOLS.map(({ type, ...tool }) => ({ type: type.replace('svc', 'openrouter'), ...tool }));
      const reply: Json = await openrouter.responses.send({
        responsesRequest: { model, input: 'News?', tools, stream } as Json,
      });
      let response = reply;
      if (stream) for await (const event of reply) if (event.type === 'response.completed') response = event.response;
      assert.ok(response.output.some(({ type }: Json) => type === 'web_search_call'));
    });

    test(`ai with the clients of OpenAI and Anthropic | ${way}`, async () => {
      const extra = (body: string) => JSON.stringify({ ...JSON.parse(body), tools: TOOLS });
      const fetchWith = (url: Json, init: Json) => fetch(url, { ...init, body: extra(init.body) });
      const settings = { baseURL: gateway.api, apiKey: INFERENCE_KEY, fetch: fetchWith as typeof fetch };
      for (const client of [createOpenAI(settings).responses(model), createAnthropic(settings)(model)]) {
        play(recorded);
        const asked = { model: client, prompt: 'News?', maxRetries: 0 };
        const text = stream ? await streamText(asked).text : (await generateText(asked)).text;
        assert.notEqual(text, '');
      }
    });
  }
});
