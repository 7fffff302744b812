/** Chat streams of services with unusual variants of the format, relayed and translated. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readChatStream } from '../../testing/clients/chat-client.ts';
import { CLIENT_FORMATS } from '../../testing/clients/served-answer.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';

// biome-ignore lint/suspicious/noExplicitAny: events are written freely
type Json = any;

const chunk = (delta: object, finish_reason: string | null = null, index = 0) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'm',
  choices: [{ index, delta, finish_reason }],
});
const HELLO = chunk({ role: 'assistant', content: 'Hello' });
const USAGE = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };

function play(served: (typeof CLIENT_FORMATS)[number], events: readonly Json[], usage: object = USAGE) {
  const all = [...events, { ...chunk({}), choices: [], usage }, '[DONE]'];
  const text = all.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');
  return playThrough({ served, kind: 'chat', spoken: 'chat', stream: true }, { pieces: [Buffer.from(text)] });
}

const ERRORS = {
  'detail as a text': { detail: 'boom' },
  'detail as a list': { detail: [{ msg: 'boom', type: 'value_error' }] },
  'code and message': { code: 'InternalError', message: 'boom', request_id: 'x' },
  'a number as code': { code: 1301, msg: 'boom' },
  'success is false': { success: false, message: 'boom' },
  'error_code and error_msg': { error_code: 336_100, error_msg: 'boom' },
  'base_resp with a status': { base_resp: { status_code: 1000, status_msg: 'boom' }, choices: null },
  'base_resp next to choices': { ...HELLO, base_resp: { status_code: 1000, status_msg: 'boom' } },
  'message alone': { message: 'boom' },
  'an unknown object': { fault: { reason: 'boom' } },
};

describe('an error chunk of any shape ends the stream as an error', () => {
  for (const [shape, error] of Object.entries(ERRORS)) {
    for (const served of CLIENT_FORMATS) {
      test(`${shape}, to ${served}`, async () => {
        const { row, text } = await play(served, [HELLO, error]);
        assert.equal(row.error !== null, true, text);
        assert.match(text, /Hello/);
      });
    }
  }
});

test('objects without choices that report no error leave an answer complete', async () => {
  for (const other of [
    { base_resp: { status_code: 0, status_msg: '' }, choices: [] },
    { type: 'ping' },
    { object: 'chat.completion.chunk', timings: { ms: 4 } },
    {},
  ]) {
    for (const events of [
      [HELLO, other],
      [other, HELLO, chunk({}, 'stop')],
    ]) {
      const { row } = await play('chat', events);
      assert.equal(row.error, null, JSON.stringify(events));
    }
  }
  // Unknown objects are tolerated in a stream that has a finish word.
  for (const other of [{ metrics: { ms: 4 } }, { code: 0, message: 'success' }]) {
    assert.equal((await play('chat', [HELLO, other, chunk({}, 'stop'), other])).row.error, null);
  }
});

test('finish words mean the same in any case and with any separator', async () => {
  const words = {
    MAX_TOKENS: 'length',
    LENGTH: 'length',
    'Max-Tokens': 'length',
    STOP: 'stop',
    End_Turn: 'stop',
    CONTENT_FILTER: 'content_filter',
    SAFETY: 'content_filter',
    Recitation: 'content_filter',
  };
  for (const [word, finish] of Object.entries(words)) {
    const { text } = await play('chat', [HELLO, chunk({}, word)]);
    const read = readChatStream(text, 'finish');
    assert.equal(read.choices[0]!.finish, finish, word);
  }
});

test('an unknown finish word ends an answer with content, and fails one without', async () => {
  for (const served of CLIENT_FORMATS) {
    const said = await play(served, [HELLO, chunk({}, 'finished_somehow')]);
    assert.equal(said.row.error, null);
    const silent = await play(served, [chunk({ role: 'assistant', content: '' }), chunk({}, 'finished_somehow')]);
    assert.notEqual(silent.row.error, null);
    assert.match(silent.text, /finished_somehow/);
    // Nothing was sent yet, so the client gets an error status instead of a stream.
    assert.equal(silent.status, 502);
  }
});

test('an answer that the service broke off is an error after its content', async () => {
  for (const word of ['insufficient_system_resource', 'abort', 'Aborted', 'network_error']) {
    for (const served of CLIENT_FORMATS) {
      const { row, text } = await play(served, [HELLO, chunk({}, word)]);
      assert.notEqual(row.error, null, `${word}, to ${served}`);
      assert.match(text, /Hello/);
    }
  }
});

test('arguments received as an object reach clients as text', async () => {
  const args = { city: 'Zürich', n: 9_007_199_254_740_993n };
  const object = `{"city":"Zürich","n":9007199254740993}`;
  const call = (index: number, id: string) =>
    JSON.stringify(
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name: 'get', arguments: '@' } }] }),
    ).replace('"@"', object);
  for (const served of CLIENT_FORMATS) {
    const { text, row } = await play(served, [call(0, 'a'), call(1, 'b'), chunk({}, 'tool_calls')]);
    assert.equal(row.error, null);
    assert.doesNotMatch(text, /\[object Object\]/);
    assert.match(text, new RegExp(String(args.n)));
    if (served !== 'chat') continue;
    const { calls } = readChatStream(text, 'finish').choices[0]!;
    assert.deepEqual(
      calls.map((one: Json) => [one.id, one.name, one.arguments]),
      [
        ['a', 'get', object],
        ['b', 'get', object],
      ],
    );
  }
});

test('an invalid choice index means the first choice', async () => {
  for (const index of [1_000_000_000, -1, 1.5]) {
    const { text } = await play('chat', [
      chunk({ role: 'assistant', content: 'Hi' }, null, index),
      chunk({}, 'stop', index),
    ]);
    assert.deepEqual([...readChatStream(text, 'finish').choices.keys()], [0]);
  }
});
