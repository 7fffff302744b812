/** Streams of services with their own variation of a format, each played to clients of every served format. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import { CLIENT_FORMATS, type ClientFormat, readServedWhole } from '../../testing/clients/served-answer.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';
import { cutBytes } from '../../testing/recordings/cuts.ts';
import { answerOf, type Told } from '../../testing/upstream/answers.ts';
import { geminiAnswer } from '../../testing/upstream/gemini-answers.ts';
import { responsesAnswer } from '../../testing/upstream/responses-answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: events are written freely
type Json = any;

interface Event {
  name?: string;
  data: Json;
}

function play(served: ClientFormat, spoken: FormatId, events: readonly Event[]) {
  const frames = events.map(({ name, data }) => {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    return `${name === undefined ? '' : `event: ${name}\n`}data: ${text}\n\n`;
  });
  const pieces = [Buffer.from(frames.join(''))];
  return playThrough({ served, kind: spoken, spoken, stream: true }, { pieces });
}

/** The data of a served stream, without end markers. */
function dataOf(text: string): Json[] {
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!));
}

const HEAD = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', error: null, incomplete_details: null };
const USAGE = { input_tokens: 5, output_tokens: 7, total_tokens: 12 };
const MESSAGE = { type: 'message', id: 'msg_1', role: 'assistant', status: 'in_progress', content: [] };

/** A stream in the responses format that says `Hello`, up to its end. */
const HELLO: Event[] = [
  { type: 'response.created', response: { ...HEAD, status: 'in_progress', output: [], usage: null } },
  { type: 'response.output_item.added', output_index: 0, item: MESSAGE },
  {
    type: 'response.content_part.added',
    output_index: 0,
    item_id: 'msg_1',
    content_index: 0,
    part: { type: 'output_text', text: '', annotations: [] },
  },
  { type: 'response.output_text.delta', output_index: 0, item_id: 'msg_1', content_index: 0, delta: 'Hello' },
].map((data) => ({ name: data.type, data }));

function completed(status: string, more: object = {}): Event {
  const content = [{ type: 'output_text', text: 'Hello', annotations: [] }];
  const output = [{ ...MESSAGE, status: 'completed', content }];
  return {
    name: 'response.completed',
    data: { type: 'response.completed', response: { ...HEAD, status, output, usage: USAGE, ...more } },
  };
}

describe('responses upstreams', () => {
  for (const served of CLIENT_FORMATS) {
    test(`a failed response that is reported as completed fails, to ${served}`, async () => {
      for (const end of [completed('failed'), completed('completed', { error: { code: 'x', message: 'boom' } })]) {
        const { row, text } = await play(served, 'responses', [...HELLO, end]);
        assert.notEqual(row.error, null);
        assert.match(text, /Hello/);
      }
    });

    test(`an error without a type fails the stream, to ${served}`, async () => {
      for (const data of [
        { error: { message: 'boom', code: 500 } },
        { detail: 'boom' },
        { code: 'X', message: 'boom' },
      ]) {
        const { row, text } = await play(served, 'responses', [...HELLO, { data }]);
        assert.notEqual(row.error, null, text);
        for (const event of dataOf(text)) if (served === 'responses') assert.equal(typeof event.type, 'string');
      }
    });
  }

  test('an event whose type is only in its name gets it, and one without any is left out', async () => {
    const bare = HELLO.map(({ name, data: { type: _, ...data } }) => ({ name: name!, data }));
    const events: Event[] = [...bare, { data: { note: 'x' } }, completed('completed')];
    for (const served of CLIENT_FORMATS) {
      const { row, text } = await play(served, 'responses', events);
      assert.equal(row.error, null, text);
      assert.match(text, /Hello/);
      if (served !== 'responses') continue;
      assert.doesNotMatch(text, /"note"/);
      for (const [, name, json] of text.matchAll(/^event: (.*)\ndata: (\{.*)$/gm)) {
        assert.equal(JSON.parse(json!).type, name);
      }
    }
  });
});

describe('cohere upstreams', () => {
  const message = (type: string, index: number, message: Json): Event => ({
    data: { type, index, delta: { message } },
  });
  const start = (index: number, id: string) =>
    message('tool-call-start', index, {
      tool_calls: { id, type: 'function', function: { name: `f_${id}`, arguments: '' } },
    });
  const piece = (index: number, text: string) =>
    message('tool-call-delta', index, { tool_calls: { function: { arguments: text } } });
  const stop = (index: number): Event => ({ data: { type: 'tool-call-end', index } });
  const end = (reason: string): Event => ({
    data: {
      type: 'message-end',
      delta: { finish_reason: reason, usage: { tokens: { input_tokens: 1, output_tokens: 2 } } },
    },
  });
  const ORDERS: Record<string, Event[]> = {
    'one after the other': [start(0, 'a'), piece(0, '{"x":1}'), stop(0), start(1, 'b'), piece(1, '{"y":2}'), stop(1)],
    alternating: [start(0, 'a'), start(1, 'b'), piece(0, '{"x"'), piece(1, '{"y":'), piece(0, ':1}'), piece(1, '2}')],
    'all of index 0': [start(0, 'a'), piece(0, '{"x":1}'), start(0, 'b'), piece(0, '{"y":2}')],
  };
  for (const [order, events] of Object.entries(ORDERS)) {
    test(`calls that arrive ${order} keep their arguments`, async () => {
      const { row, text } = await play('chat', 'cohere', [...events, end('TOOL_CALL')]);
      assert.equal(row.error, null, text);
      const calls: Record<string, string>[] = [];
      for (const { choices } of dataOf(text)) {
        for (const call of choices[0]?.delta.tool_calls ?? []) {
          calls[call.index] ??= { id: '', arguments: '' };
          const known = calls[call.index]!;
          known['id'] += call.id ?? '';
          known['arguments'] += call.function?.arguments ?? '';
        }
      }
      assert.deepEqual(calls, [
        { id: 'a', arguments: '{"x":1}' },
        { id: 'b', arguments: '{"y":2}' },
      ]);
      for (const served of ['messages', 'responses'] as const) {
        const other = await play(served, 'cohere', [...events, end('TOOL_CALL')]);
        assert.equal(other.row.error, null);
        assert.match(other.text, /\{\\"x\\":1\}|x\\"/);
      }
    });
  }
});

/** An answer of each format with a finish word, with or without content. */
const ENDS: Partial<Record<FormatId, (word: string, content: boolean) => Event[]>> = {
  messages: (word, content) => [
    {
      data: {
        type: 'message_start',
        message: {
          id: 'm',
          type: 'message',
          role: 'assistant',
          content: [],
          usage: { input_tokens: 5, output_tokens: 1 },
        },
      },
    },
    { data: { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } },
    ...(content
      ? [{ data: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } } }]
      : []),
    { data: { type: 'content_block_stop', index: 0 } },
    { data: { type: 'message_delta', delta: { stop_reason: word }, usage: { output_tokens: 7 } } },
    { data: { type: 'message_stop' } },
  ],
  gemini: (word, content) => [
    {
      data: {
        candidates: [
          { content: { role: 'model', parts: content ? [{ text: 'Hello' }] : [] }, finishReason: word, index: 0 },
        ],
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 },
      },
    },
  ],
  cohere: (word, content) => [
    { data: { type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } } },
    ...(content
      ? [{ data: { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hello' } } } } }]
      : []),
    {
      data: {
        type: 'message-end',
        delta: { finish_reason: word, usage: { tokens: { input_tokens: 5, output_tokens: 7 } } },
      },
    },
  ],
  chat: (word, content) => [
    {
      data: {
        id: 'c',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta: { role: 'assistant', content: content ? 'Hello' : '' }, finish_reason: word }],
      },
    },
    { data: { choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } } },
    { data: '[DONE]' },
  ],
};

for (const spoken of Object.keys(ENDS) as FormatId[]) {
  test(`${spoken}: a finish word means the same in any case; an unknown one without content is a failure`, async () => {
    for (const served of CLIENT_FORMATS) {
      for (const [word, finish] of [
        ['MAX_TOKENS', 'length'],
        ['max_tokens', 'length'],
        ['Length', 'length'],
        ['stop', 'stop'],
        ['STOP', 'stop'],
        ['something_new', 'stop'],
      ] as const) {
        const { row, text } = await play(served, spoken, ENDS[spoken]!(word, true));
        assert.equal(row.error, null, text);
        assert.equal(row.finishReason, finish, `${word} to ${served}`);
        if (served === 'messages' && word !== 'something_new') {
          const [delta] = dataOf(text).filter(({ type }) => type === 'message_delta');
          assert.equal(delta.delta.stop_reason, finish === 'length' ? 'max_tokens' : 'end_turn');
        }
      }
      const silent = await play(served, spoken, ENDS[spoken]!('something_new', false));
      assert.notEqual(silent.row.error, null, silent.text);
      assert.equal(silent.status, 502);
    }
  });
}

test('an answer is read by its first byte, whatever its content type says', async () => {
  const events = ENDS.chat!('stop', true)
    .map(({ data }) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)
    .join('');
  const whole = JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
  });
  for (const body of [events, whole, `\ufeff${events}`, `: hello\n\n${events}`, `\n  ${whole}`]) {
    for (const type of ['application/json', 'text/event-stream', 'text/plain', 'text/html', '']) {
      for (const stream of [true, false]) {
        for (const served of CLIENT_FORMATS) {
          const bytes = Buffer.from(body);
          const answer = await playThrough(
            { served, kind: 'chat', spoken: 'chat', stream },
            { pieces: [bytes.subarray(0, 40), bytes.subarray(40)], headers: { 'content-type': type } },
          );
          const about = `${type}, ${stream}, ${served}: ${body.slice(0, 30)}`;
          assert.equal(answer.row.error, null, about);
          assert.equal(answer.streamed, stream, about);
          assert.match(answer.text, /Hello/, about);
        }
      }
    }
  }
});

test('white space and a byte order mark before the content may arrive alone, in any pieces', async () => {
  for (const spoken of ['chat', 'messages'] as const) {
    for (const isEvents of [true, false]) {
      const body = answerOf(spoken, isEvents, { text: 'Hello' }).chunks!.join('');
      for (const before of ['\ufeff', '\n', ' \r\n\ufeff']) {
        for (const type of ['application/json', 'text/event-stream']) {
          for (const stream of [true, false]) {
            const start = Buffer.from(before);
            const answer = await playThrough(
              { served: 'chat', kind: spoken, spoken, stream },
              { pieces: [...cutBytes(start, 1), Buffer.from(body)], headers: { 'content-type': type } },
            );
            const about = `${spoken}, ${JSON.stringify(before)}, ${type}, ${stream}: ${body.slice(0, 30)}`;
            assert.equal(answer.row.error, null, about);
            assert.match(answer.text, /Hel/, about);
          }
        }
      }
    }
  }
});

test('a list of answers in the Gemini format is one answer to every client', async () => {
  const reply = (said: string, more: object) => ({
    candidates: [{ content: { role: 'model', parts: [{ text: said }] }, index: 0, ...more }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  });
  for (const list of [
    [reply('Grüße', { finishReason: 'STOP' })],
    [reply('Gr', {}), reply('üße', { finishReason: 'STOP' })],
  ]) {
    for (const served of CLIENT_FORMATS) {
      const answer = await playThrough(
        { served, kind: 'gemini', spoken: 'gemini', stream: false },
        { pieces: [Buffer.from(JSON.stringify(list))], headers: { 'content-type': 'application/json' } },
      );
      assert.equal(answer.row.error, null, served);
      assert.equal(readServedWhole(served, answer.text).choices[0]!.text, 'Grüße', served);
    }
  }
});

test('counts of tools that an upstream runs reach the client', async () => {
  const counts = { web_search_requests: 1, tool_calls_requested: 3, tool_calls_executed: 2 };
  const [first, , end] = ENDS.chat!('stop', true);
  for (const member of ['server_tool_use', 'server_tool_use_details']) {
    const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, [member]: counts };
    for (const served of CLIENT_FORMATS) {
      const { text } = await play(served, 'chat', [first!, { data: { choices: [], usage } }, end!]);
      assert.match(text, /"tool_calls_requested":3/);
      assert.match(text, /"tool_calls_executed":2/);
    }
  }
});

describe('compatible services', () => {
  const TOLD: Told = { text: 'Hello', calls: [{ id: 'call_1', name: 'f', arguments: '{"a":1}' }] };
  const answers = {
    messages: answerOf('messages', true, TOLD),
    responses: responsesAnswer(true, TOLD),
    gemini: geminiAnswer(true, TOLD),
  };
  for (const spoken of ['messages', 'responses', 'gemini'] as const) {
    test(`may end a stream of the format ${spoken} as chat streams end`, async () => {
      for (const served of CLIENT_FORMATS) {
        const text = answers[spoken].chunks!.join('');
        const plain = await playThrough(
          { served, kind: spoken, spoken, stream: true },
          { pieces: [Buffer.from(text)] },
        );
        const pieces = [Buffer.from(`${text}data: [DONE]\n\n`)];
        const marked = await playThrough({ served, kind: spoken, spoken, stream: true }, { pieces });
        assert.equal(marked.row.error, null, marked.text);
        assert.equal(marked.text, plain.text);
        assert.match(marked.text, /call_1/);
      }
    });
  }
});
