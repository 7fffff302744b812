/**
 * Client libraries beyond the two vendors' own (`sdk-openai`, `sdk-anthropic`), unmodified, against the gateway in front
 * of upstreams of both formats. Every cell of the table library x feature x upstream is a test. The gateway speaks under
 * OpenRouter's name, as its own library wants it; no other minds.
 */
import assert from 'node:assert/strict';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenRouter } from '@openrouter/ai-sdk-provider';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { ANSWER_SCHEMA, begun, type Json, PNG, startBench, thrownBy, USAGE } from '../../src/testing/gateway/sdk.ts';
import { answerOf, errorEvent, errorOf, type Format } from '../../src/testing/upstream/answers.ts';
import { aiSdk } from './ai.ts';
import { langchain } from './langchain.ts';
import { openrouterSdk } from './openrouter.ts';

const { gateway, cell, script } = await startBench({ env: { GATEHOUSE_NAMESPACE: 'openrouter' } });
const apiKey = INFERENCE_KEY;
const baseURL = `${gateway.url}/v1`;
const openrouter = createOpenRouter({ baseURL: gateway.api, apiKey });
const openai = createOpenAI({ baseURL, apiKey });
const anthropic = createAnthropic({ baseURL, apiKey });

const CLIENTS = [
  openrouterSdk(gateway.api, apiKey),
  aiSdk({
    name: 'ai + @openrouter/ai-sdk-provider',
    model: (format) => openrouter(`test/${format}`),
    thinking: { openrouter: { reasoning: { effort: 'high' } } },
    keepsSignatures: true,
  }),
  aiSdk({
    name: 'ai + @ai-sdk/openai (chat)',
    model: (format) => openai.chat(`test/${format}`),
    thinking: { openai: { reasoningEffort: 'high' } },
    thinks: false,
    keepsSignatures: false,
  }),
  aiSdk({
    name: 'ai + @ai-sdk/openai (responses)',
    model: (format) => openai.responses(`test/${format}`),
    always: { openai: { store: false } },
    thinking: {
      openai: {
        reasoningEffort: 'high',
        forceReasoning: true,
        reasoningSummary: 'auto',
        store: false,
        include: ['reasoning.encrypted_content'],
      },
    },
    thinks: false,
    keepsSignatures: false,
  }),
  aiSdk({
    name: 'ai + @ai-sdk/anthropic',
    model: (format) => anthropic(`test/${format}`),
    thinking: { anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } } },
    keepsSignatures: true,
  }),
  langchain(baseURL, apiKey),
];

/** Each library's word for an end by calls. */
/** Of a client that may forget to abort. */
const CHANCES = 4;

const CALLED = /^tool[-_]calls$/;
const CALLS = [
  { id: 'toolu_a', name: 'weather', arguments: '{"city":"Köln"}' },
  { id: 'toolu_b', name: 'weather', arguments: '{"city":"Oslo"}' },
  { id: 'toolu_c', name: 'time', arguments: '{}' },
];
const CALLS_SEEN = CALLS.map(({ id, name, arguments: text }) => ({ id, name, input: JSON.parse(text) }));
const THINKING = { text: ' line one\n\n  zwei é ', signature: 'c2lnbmF0dXJlIG9mIGl0' };

for (const client of CLIENTS) {
  for (const stream of [false, true]) {
    const way = stream ? 'streamed' : 'whole';

    cell(client.name, `text, ${way}`, async (format) => {
      script(format, stream, { text: 'Bonjour, 北京 🌤' });
      const pieces: string[] = [];
      const seen = await client.ask({ format, stream, onText: (piece) => pieces.push(piece) });
      assert.equal(seen.text, 'Bonjour, 北京 🌤');
      assert.match(seen.finish, /^(stop|end_turn)$/);
      if (stream) assert.equal(pieces.join(''), seen.text);
    });

    for (const [feature, calls] of [
      ['tools', CALLS.slice(0, 1)],
      ['parallel tools', CALLS],
    ] as const) {
      cell(client.name, `${feature}, ${way}`, async (format) => {
        const sent = script(format, stream, { text: 'Let me look.', calls: [...calls] }, { text: 'Done.' });
        const first = await client.ask({ format, stream, tools: true });
        assert.deepEqual(first.calls.toSorted(byId), CALLS_SEEN.slice(0, calls.length));
        assert.equal(first.text, 'Let me look.');
        assert.match(first.finish, CALLED);
        const results = client.results(
          first,
          calls.map(({ id }) => `result of ${id}`),
        );
        const second = await client.ask({ format, stream, tools: true, history: [...first.turns, ...results] });
        assert.equal(second.text, 'Done.');
        const [asked, answered] = sent();
        assert.deepEqual(
          asked.tools.map((tool: Json) => tool.name ?? tool.function.name),
          ['weather', 'time'],
        );
        for (const { id } of calls) assert.ok(JSON.stringify(answered).includes(`result of ${id}`), id);
        // A library may report calls in the order of completion.
        assert.deepEqual(callsOf(answered).toSorted(byId), CALLS_SEEN.slice(0, calls.length));
      });
    }

    cell(client.name, `reasoning, ${way}`, async (format) => {
      const calls = CALLS.slice(0, 1);
      const sent = script(format, stream, { thinking: THINKING, text: 'I will look.', calls }, { text: 'ok' });
      const first = await client.ask({ format, stream, tools: true, think: true });
      assert.equal(first.text, 'I will look.');
      if (client.thinks) assert.equal(first.reasoning, THINKING.text);
      const history = [...first.turns, ...client.results(first, ['sun'])];
      assert.equal((await client.ask({ format, stream, tools: true, think: true, history })).text, 'ok');
      const [asked, replayed] = sent();
      assert.ok(
        format === 'chat' ? (asked.reasoning_effort ?? asked.reasoning) : asked.thinking,
        'the upstream was not told to think',
      );
      if (!client.keepsSignatures) return;
      const parts = format === 'chat' ? replayed.messages[1].reasoning_details : replayed.messages[1].content;
      const told = parts.filter((part: Json) => /^(thinking|reasoning\.text)$/.test(part.type));
      assert.equal(told.map((part: Json) => part.thinking ?? part.text ?? '').join(''), THINKING.text);
      assert.equal(told.map((part: Json) => part.signature ?? '').join(''), THINKING.signature);
    });

    cell(client.name, `structured output, ${way}`, async (format) => {
      const sent = script(format, stream, { text: '{"city":"Rome","degrees":21.5}' });
      const seen = await client.ask({ format, stream, schema: ANSWER_SCHEMA });
      assert.deepEqual(seen.object, { city: 'Rome', degrees: 21.5 });
      const text = JSON.stringify(sent()[0]);
      assert.ok(text.includes('"degrees":{"type":"number"}'), text);
    });

    cell(client.name, `usage, ${way}`, async (format) => {
      script(format, stream, { text: 'x', usage: USAGE });
      const { usage } = await client.ask({ format, stream });
      assert.deepEqual([usage.input, usage.output, usage.cacheRead], [20, 7, 5]);
      if (!client.name.includes('anthropic')) assert.equal(usage.reasoning, 2);
    });

    cell(client.name, `errors of the upstream, ${way}`, async (format) => {
      for (const [status, shown] of [
        [400, 400],
        [404, 404],
        [429, 429],
        [500, 502],
        [529, 529],
      ] as const) {
        gateway.upstream.script(format, errorOf(format, status, `failure ${status}`));
        const error = await thrownBy(() => client.ask({ format, stream }));
        assert.equal(client.statusOf(error), shown, `${status}: ${error}`);
      }
    });

    cell(client.name, `abort, ${way}`, async (format) => {
      for (let chance = 1; client.mayForget && chance < CHANCES; chance++) if (await aborts(format, 3_000)) return;
      assert.ok(await aborts(format, 20_000), 'the upstream call is closed');
    });

    const aborts = async (format: Format, withinMs: number): Promise<boolean> => {
      const count = gateway.upstream.requests(format).length + 1;
      gateway.upstream.script(format, [stream ? begun(format, 'stall') : { end: 'stall-before-headers' }]);
      const controller = new AbortController();
      const asking = thrownBy(() =>
        client.ask({ format, stream, signal: controller.signal, onText: () => controller.abort() }),
      );
      const asked = await gateway.upstream.request(format, count);
      if (!stream) controller.abort();
      const closed = () => asked.closedEarlyAt !== undefined;
      if (!(await until(closed, 'the upstream call to be closed', withinMs).catch(() => false))) return false;
      const error = await asking;
      assert.ok(client.isAbort(error), String(error));
      return true;
    };
  }

  cell(client.name, 'images', async (format) => {
    const sent = script(format, false, { text: 'a dot' });
    await client.ask({ format, stream: false, image: PNG });
    const [, picture] = sent()[0].messages[0].content;
    if (format === 'chat') assert.equal(picture.image_url.url, `data:image/png;base64,${PNG}`);
    else assert.deepEqual(picture.source, { type: 'base64', media_type: 'image/png', data: PNG });
  });

  cell(client.name, 'a stream that breaks is never an end', async (format) => {
    for (const answer of [
      begun(format, 'reset'),
      begun(format, 'close'),
      begun(format, 'close', errorEvent(format, 'it broke')),
    ]) {
      gateway.upstream.script(format, [answer]);
      let text = '';
      const collect = (piece: string) => {
        text += piece;
      };
      // Most throw; one cannot represent an error next to a chunk's choices and reports it as the finish reason.
      const finish = await client.ask({ format, stream: true, onText: collect }).then(
        (seen) => seen.finish,
        () => 'thrown',
      );
      assert.match(finish, /^(thrown|error|other|unknown)$/);
      assert.ok('Half an answer'.startsWith(text), text);
    }
  });

  cell(client.name, 'an answer that was cut short says so', async (format) => {
    gateway.upstream.script(format, answerOf(format, false, { text: 'x', finish: 'length' }));
    assert.match((await client.ask({ format, stream: false })).finish, /^(length|max_tokens)$/);
  });
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id.localeCompare(b.id);
}

/** The calls of the assistant's turn in what an upstream of either format got. */
function callsOf(body: Json) {
  const { content, tool_calls } = body.messages[1];
  if (tool_calls) {
    return tool_calls.map((call: Json) => ({
      id: call.id,
      name: call.function.name,
      input: JSON.parse(call.function.arguments),
    }));
  }
  return content.flatMap(({ type, id, name, input }: Json) => (type === 'tool_use' ? [{ id, name, input }] : []));
}
