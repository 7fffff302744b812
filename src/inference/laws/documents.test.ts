/** Documents of text and search results of a messages client: what services without them read instead. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import { messages as messagesFormat } from '../../formats/index.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';
import { decodedMessages, sent as translated } from '../../testing/laws/spoken-requests.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of all formats
type Json = any;

const FOUND = {
  type: 'search_result',
  source: 'https://a.example/page',
  title: 'Page',
  content: [
    { type: 'text', text: 'one' },
    { type: 'text', text: 'two' },
  ],
};
const DOCUMENT = {
  type: 'document',
  title: 'Notes',
  context: 'of today',
  source: { type: 'text', media_type: 'text/plain', data: 'three' },
};
const PDF = { type: 'document', title: 'a.pdf', context: 'a scan', source: base64('application/pdf', 'JVBERi0=') };
const TEXTS = ['Page', 'https://a.example/page', 'one', 'two', 'Notes', 'of today', 'three'];
const HI = { type: 'text', text: 'hi' };
const CALL = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'find', input: {} }] };
const result = (content: Json[]) => ({ type: 'tool_result', tool_use_id: 'toolu_1', content });

function base64(media_type: string, data: string) {
  return { type: 'base64', media_type, data };
}

async function sent(spoken: FormatId, messages: Json[]): Promise<Json> {
  const asked = { served: 'messages', kind: spoken, spoken, stream: false } as const;
  // What the upstream answers does not matter.
  const { sent: body } = await playThrough({ ...asked, messages: JSON.stringify(messages) }, { pieces: [] });
  return JSON.parse(body);
}

const textsOf = (parts: Json[]) => parts.map(({ text }) => text);
const user = (content: Json[]) => [{ role: 'user', content }];
const asked = (content: Json[]) => [{ role: 'user', content: 'hi' }, CALL, ...user([result(content)])];

test('their title, address and context precede their text in user messages', async () => {
  const messages = user([FOUND, DOCUMENT, HI]);
  assert.deepEqual(textsOf((await sent('chat', messages)).messages[0].content), [...TEXTS, 'hi']);
  assert.deepEqual(textsOf((await sent('responses', messages)).input[0].content), [...TEXTS, 'hi']);
  assert.deepEqual(textsOf((await sent('gemini', messages)).contents[0].parts), [...TEXTS, 'hi']);
  const [found, notes] = (await sent('converse', messages)).messages[0].content;
  assert.deepEqual(found.document.source.content, [{ text: 'one' }, { text: 'two' }]);
  assert.deepEqual([found.document.name, found.document.context], ['Page', 'https://a.example/page']);
  assert.deepEqual([notes.document.name, notes.document.context], ['Notes', 'of today']);
  const { documents } = await sent('cohere', messages);
  assert.deepEqual(documents[0].data, { title: 'Page', source: 'https://a.example/page', text: 'one\n\ntwo' });
});

test('they stay in the results of tools', async () => {
  const messages = asked([FOUND, DOCUMENT]);
  const chat = (await sent('chat', messages)).messages;
  assert.deepEqual(
    chat.map(({ role }: Json) => role),
    ['user', 'assistant', 'tool'],
  );
  assert.deepEqual(textsOf(chat[2].content), TEXTS);
  const { input } = await sent('responses', messages);
  assert.deepEqual(textsOf(input.at(-1).output), TEXTS);
  const { contents } = await sent('gemini', messages);
  assert.deepEqual(contents.at(-1).parts[0].functionResponse.response, { output: TEXTS });
});

test('the context of a file precedes it', async () => {
  const messages = user([PDF]);
  const [context, file] = (await sent('chat', messages)).messages[0].content;
  assert.deepEqual([context.text, file.file.filename], ['a scan', 'a.pdf']);
  const [before, input] = (await sent('responses', messages)).input[0].content;
  assert.deepEqual([before.text, input.filename], ['a scan', 'a.pdf']);
});

test('a search result is encoded in its own format as it was', () => {
  const { body } = translated(messagesFormat, decodedMessages({ messages: user([FOUND]) }));
  assert.deepEqual(body.messages[0].content, [FOUND]);
});
