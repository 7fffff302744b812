/** A message that a client sends while its tool runs, toward services that want the result directly after the call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodedChat, type Json, sent } from '../../testing/laws/spoken-requests.ts';
import { chat } from '../chat/index.ts';
import { cohere } from '../cohere/index.ts';
import { converse } from '../converse/index.ts';
import { gemini } from '../gemini/index.ts';
import { messages } from '../messages/index.ts';
import type { Message } from './conversation.ts';
import { resultsFirst } from './result-order.ts';

const call = (...ids: string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'get', arguments: '{}' } })),
});
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: `result ${id}` });
const user = (content: string) => ({ role: 'user', content });

const STEERED = [user('a'), call('c1', 'c2'), result('c1'), user('b'), result('c2'), user('c'), call('c3'), user('d')];
const HISTORY = [...STEERED, { role: 'developer', content: 'e' }, result('c3')];

/** The order of what a model reads. */
const WORDS = /result c\d|"[abcde]"/g;
const ORDER = ['"a"', 'result c1', 'result c2', '"b"', '"c"', 'result c3', '"d"', '"e"'];

test('results follow their calls, and messages sent meanwhile follow the results', () => {
  for (const format of [chat, messages, gemini, converse, cohere]) {
    const { body } = sent(format, decodedChat({ messages: HISTORY }));
    const told = JSON.stringify(body.messages ?? body.contents);
    // Instructions may stand elsewhere in a format.
    const read = (list: readonly string[]) => list.filter((word) => word !== '"e"');
    assert.deepEqual(read(told.match(WORDS) ?? []), read(ORDER), `${format.id}: ${told}`);
  }
});

test('an order that services accept stays as it is, and so do results of other calls', () => {
  const ordered = decodedChat({ messages: [user('a'), call('c1'), result('c1'), user('b')] }).messages;
  assert.equal(resultsFirst(ordered), ordered);
  const stray = [user('a'), call('c1'), user('b'), result('other')];
  const kept = decodedChat({ messages: stray }).messages;
  assert.deepEqual(
    resultsFirst(kept).map((message: Message) => message.role),
    stray.map((message: Json) => message.role),
  );
});
