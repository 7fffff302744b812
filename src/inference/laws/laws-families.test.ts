/**
 * Laws of translation for the formats that are spoken but not served, on generated answers of Bedrock and Cohere
 * through the whole pipeline: the answer reaches a client of every format, cut anywhere, and what the client sends back
 * on the next turn reaches the service as it was.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  assertServed,
  CLIENT_FORMATS,
  type ClientFormat,
  readServedStream,
  readServedWhole,
} from '../../testing/clients/served-answer.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';
import { samples } from '../../testing/laws/samples.ts';
import { awsMessage } from '../../testing/recordings/corpus.ts';
import { cutBytes } from '../../testing/recordings/cuts.ts';
import { exactText, parsedExactly, type RecordedAnswer } from '../../testing/recordings/recorded-answer.ts';

const RUNS = samples(60, 2000);

// biome-ignore lint/suspicious/noExplicitAny: JSON of all formats
type Json = any;

interface Said {
  thinking: string | undefined;
  text: string | undefined;
  calls: { name: string; arguments: string }[];
}

const graphemes = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter((text) => text.trim() !== '');
const said: fc.Arbitrary<Said> = fc
  .record({
    thinking: fc.option(graphemes, { nil: undefined }),
    text: fc.option(graphemes, { nil: undefined }),
    calls: fc.array(
      fc.record({
        name: fc.stringMatching(/^[a-z][a-z0-9_]{0,11}$/),
        arguments: fc.constantFrom('{}', '{"n":12345678901234567890,"f":0.5}', '{"text":"東京 👩‍🚀","l":[{"m":null}]}'),
      }),
      { maxLength: 3 },
    ),
  })
  .filter(({ text, calls }) => text !== undefined || calls.length > 0);
const cuts = fc.array(fc.nat({ max: 3000 }), { maxLength: 6 });

const pieces = (text: string) => [text.slice(0, 2), text.slice(2)].filter((piece) => piece !== '');
const idOf = (at: number) => `call_${at}`;

/** A simulated service, written from its documentation. */
interface Family {
  stream(answer: Said): { type: string; bytes: Buffer };
  whole(answer: Said): string;
  /** The answer as it must appear in the request of the next turn. */
  sentBack(answer: Said): unknown;
}

const event = (type: string, payload: object) =>
  awsMessage(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    Buffer.from(JSON.stringify(payload)),
  );
const CONVERSE_USAGE = { inputTokens: 10, outputTokens: 5, totalTokens: 15 };

/** As text, because the digits of a call's input must stay as the model wrote them. */
function converseContent({ thinking, text, calls }: Said): string {
  const blocks = calls.map(
    (call, at) => `{"toolUse":{"toolUseId":"${idOf(at)}","name":"${call.name}","input":${call.arguments}}}`,
  );
  if (text !== undefined) blocks.unshift(JSON.stringify({ text }));
  const reasoningText = { text: thinking, signature: 'c2lnbmVk' };
  if (thinking !== undefined) blocks.unshift(JSON.stringify({ reasoningContent: { reasoningText } }));
  return `[${blocks.join(',')}]`;
}

const converse: Family = {
  stream({ thinking, text, calls }) {
    const events = [event('messageStart', { role: 'assistant' })];
    let contentBlockIndex = 0;
    const deltas = (list: object[]) => {
      for (const delta of list) events.push(event('contentBlockDelta', { contentBlockIndex, delta, p: 'abc' }));
      events.push(event('contentBlockStop', { contentBlockIndex: contentBlockIndex++ }));
    };
    if (thinking !== undefined) {
      const thoughts = pieces(thinking).map((piece) => ({ reasoningContent: { text: piece } }));
      deltas([...thoughts, { reasoningContent: { signature: 'c2lnbmVk' } }]);
    }
    if (text !== undefined) deltas(pieces(text).map((piece) => ({ text: piece })));
    calls.forEach(({ name, arguments: written }, at) => {
      events.push(event('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId: idOf(at), name } } }));
      deltas(pieces(written).map((piece) => ({ toolUse: { input: piece } })));
    });
    events.push(event('messageStop', { stopReason: calls.length > 0 ? 'tool_use' : 'end_turn' }));
    events.push(event('metadata', { usage: CONVERSE_USAGE }));
    return { type: 'application/vnd.amazon.eventstream', bytes: Buffer.concat(events) };
  },
  whole(answer) {
    const stopReason = answer.calls.length > 0 ? 'tool_use' : 'end_turn';
    const rest = JSON.stringify({ stopReason, usage: CONVERSE_USAGE }).slice(1);
    return `{"output":{"message":{"role":"assistant","content":${converseContent(answer)}}},${rest}`;
  },
  sentBack: (answer) => parsedExactly(`{"role":"assistant","content":${converseContent(answer)}}`),
};

const COHERE_USAGE = {
  billed_units: { input_tokens: 3, output_tokens: 2 },
  tokens: { input_tokens: 10, output_tokens: 5 },
};
const callOf = ({ name, arguments: written }: Said['calls'][number], at: number) => ({
  id: idOf(at),
  type: 'function',
  function: { name, arguments: written },
});

function cohereMessage({ thinking, text, calls }: Said): Json {
  const content = text === undefined ? [] : [{ type: 'text', text }];
  const plans = thinking !== undefined && calls.length > 0;
  return {
    role: 'assistant',
    ...(thinking !== undefined && !plans && { content: [{ type: 'thinking', thinking }, ...content] }),
    ...((thinking === undefined || plans) && content.length > 0 && { content }),
    ...(plans && { tool_plan: thinking }),
    ...(calls.length > 0 && { tool_calls: calls.map(callOf) }),
  };
}

const cohere: Family = {
  stream({ thinking, text, calls }) {
    const events: Json[] = [{ type: 'message-start', id: 'c1', delta: { message: { role: 'assistant' } } }];
    let index = 0;
    const content = (type: string, list: string[]) => {
      events.push({ type: 'content-start', index, delta: { message: { content: { type, [type]: '' } } } });
      for (const piece of list) {
        events.push({ type: 'content-delta', index, delta: { message: { content: { [type]: piece } } } });
      }
      events.push({ type: 'content-end', index: index++ });
    };
    if (thinking !== undefined && calls.length > 0) {
      for (const piece of pieces(thinking)) {
        events.push({ type: 'tool-plan-delta', delta: { message: { tool_plan: piece } } });
      }
    } else if (thinking !== undefined) content('thinking', pieces(thinking));
    if (text !== undefined) content('text', pieces(text));
    calls.forEach((call, at) => {
      const { function: called, ...head } = callOf(call, at);
      const start = { ...head, function: { name: called.name, arguments: '' } };
      events.push({ type: 'tool-call-start', index: at, delta: { message: { tool_calls: start } } });
      for (const piece of pieces(called.arguments)) {
        const delta = { message: { tool_calls: { function: { arguments: piece } } } };
        events.push({ type: 'tool-call-delta', index: at, delta });
      }
      events.push({ type: 'tool-call-end', index: at });
    });
    const finish = calls.length > 0 ? 'TOOL_CALL' : 'COMPLETE';
    events.push({ type: 'message-end', delta: { finish_reason: finish, usage: COHERE_USAGE } });
    const lines = events.map((value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`);
    return { type: 'text/event-stream', bytes: Buffer.from(`${lines.join('')}data: [DONE]\n\n`) };
  },
  whole(answer) {
    const finish = answer.calls.length > 0 ? 'TOOL_CALL' : 'COMPLETE';
    return JSON.stringify({ id: 'c1', message: cohereMessage(answer), finish_reason: finish, usage: COHERE_USAGE });
  },
  sentBack: (answer) => parsedExactly(JSON.stringify(cohereMessage(answer))),
};

const FAMILIES = { converse, cohere };

for (const spoken of ['converse', 'cohere'] as const) {
  const family = FAMILIES[spoken];
  for (const served of CLIENT_FORMATS) {
    test(`${spoken} to ${served}: a client reads exactly what the upstream writes, cut anywhere`, async () => {
      await fc.assert(
        fc.asyncProperty(said, cuts, async (answer, positions) => {
          const { type, bytes } = family.stream(answer);
          const asked = { served, kind: spoken, spoken, more: THINKS[served] };
          const played = { headers: { 'content-type': type }, pieces: cutBytes(bytes, positions) };
          const streamed = await playThrough({ ...asked, stream: true }, played);
          assertServed(served, readServedStream(served, streamed.text, 'finish'), expectedOf(answer), 'stream');
          const whole = await playThrough({ ...asked, stream: false }, playedWhole(family.whole(answer)));
          assertServed(served, readServedWhole(served, whole.text), expectedOf(answer), 'whole');
        }),
        { numRuns: RUNS },
      );
    });

    test(`${spoken} to ${served}: an answer sent back on the next turn reaches the service unchanged`, async () => {
      await fc.assert(
        fc.asyncProperty(said, async (answer) => {
          // A plan has a name only in formats with names for pieces of reasoning.
          if (spoken === 'cohere' && served !== 'chat' && answer.calls.length > 0) return;
          const asked = { served, kind: spoken, spoken, stream: false, more: THINKS[served] };
          const first = await playThrough(asked, playedWhole(family.whole(answer)));
          const history = historyOf(served, parsedExactly(first.text), answer.calls.length);
          const second = await playThrough(
            { ...asked, messages: exactText(history) },
            playedWhole(family.whole(answer)),
          );
          const sent: Json = parsedExactly(second.sent);
          assert.equal(exactText(sent.messages[1]), exactText(family.sentBack(answer)));
        }),
        { numRuns: RUNS },
      );
    });
  }
}

/** The settings with which a client of the format receives the reasoning and what it needs to send it back. */
const THINKS: Record<ClientFormat, Record<string, unknown>> = {
  chat: {},
  messages: {},
  responses: { include: ['reasoning.encrypted_content'] },
  gemini: {},
};

function playedWhole(text: string) {
  return { headers: { 'content-type': 'application/json' }, pieces: [Buffer.from(text)] };
}

function expectedOf({ thinking = '', text = '', calls }: Said): RecordedAnswer {
  const told = calls.map((call, at) => ({ ...call, id: idOf(at), custom: false }));
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  return {
    complete: true,
    choices: [{ text, reasoning: thinking, refusal: '', calls: told, finish }],
    usage: null,
    uncounted: 0,
    other: false,
  };
}

/** The next turn of a client that sends the answer back unchanged. */
function historyOf(served: ClientFormat, reply: Json, calls: number): Json[] {
  const ids = Array.from({ length: calls }, (_, at) => idOf(at));
  const user = { role: 'user', content: 'go on' };
  if (served === 'chat') {
    const results = ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'r' }));
    return [user, reply.choices[0].message, ...results, user];
  }
  if (served === 'gemini') {
    const names = reply.candidates[0].content.parts.flatMap(({ functionCall }: Json) => functionCall?.name ?? []);
    const responses = ids.map((id, at) => ({
      functionResponse: { id, name: names[at], response: { output: 'r' } },
    }));
    const parts = [{ text: 'go on' }];
    return [{ parts }, reply.candidates[0].content, ...(calls > 0 ? [{ parts: responses }] : []), { parts }];
  }
  if (served === 'messages') {
    const results = ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'r' }));
    const content = [...results, { type: 'text', text: 'go on' }];
    return [user, { role: 'assistant', content: reply.content }, { role: 'user', content }];
  }
  const results = ids.map((id) => ({ type: 'function_call_output', call_id: id, output: 'r' }));
  return [user, ...reply.output, ...results, user];
}
