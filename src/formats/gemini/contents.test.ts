/**
 * Request contents in the gemini format: media, results, signatures, roles. Expectations follow the vendor
 * documentation.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { parseJson, stringifyJson } from '../../base/json.ts';
import { chat } from '../chat/index.ts';
import type { Conversation, Part } from '../conversation/conversation.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { Losses, Uncarried } from '../conversation/losses.ts';
import { messages } from '../messages/index.ts';
import { gemini } from './index.ts';

// biome-ignore lint/suspicious/noExplicitAny: encoded bodies are read freely
type Json = any;

function target(model = 'gemini-2.5-flash', more: Partial<EncodeTarget> = {}): EncodeTarget {
  return { model, stream: false, maxOutputTokens: null, origin: 'google-gemini-v1', user: 'u', dialect: {}, ...more };
}

function encode(conversation: Conversation, to = target(), losses = new Losses()): Json {
  return JSON.parse(stringifyJson(gemini.encode(conversation, to, losses)));
}

function fromChat(body: Record<string, unknown>, to = target(), losses = new Losses()): Json {
  return encode(chat.decode(parseJson(JSON.stringify({ messages: HELLO, ...body }))), to, losses);
}

const HELLO = [{ role: 'user', content: 'hello' }];

function refused(body: Record<string, unknown>, to = target()): string {
  try {
    fromChat(body, to);
  } catch (error) {
    if (error instanceof Uncarried) return error.feature;
    throw error;
  }
  return '';
}

test('media are sent as bytes with their real type, or as a URL that the service reads', () => {
  const png = 'iVBORw0KGgoAAAANSUhEUg==';
  const content = [
    { type: 'image_url', image_url: { url: `data:image/jpeg;base64,${png}` } },
    { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQK' } },
    { type: 'file', file: { filename: 'b.pdf', file_data: 'JVBERi0xLjQK' } },
    { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
    { type: 'video_url', video_url: { url: 'https://www.youtube.com/watch?v=x' } },
    { type: 'file', file: { file_id: 'https://generativelanguage.googleapis.com/v1beta/files/abc' } },
  ];
  const parts = fromChat({ messages: [{ role: 'user', content: content.filter((_, at) => at !== 2) }] }).contents[0]
    .parts;
  assert.deepEqual(parts, [
    { inlineData: { mimeType: 'image/png', data: png } },
    { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0xLjQK' } },
    { inlineData: { mimeType: 'audio/mp3', data: 'AAAA' } },
    { fileData: { mimeType: 'video/mp4', fileUri: 'https://www.youtube.com/watch?v=x' } },
    {
      fileData: { mimeType: 'application/pdf', fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/abc' },
    },
  ]);
  assert.equal(
    refused({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-abc' } }] }] }),
    'file',
  );
  const word = 'data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,UEsDBA==';
  for (const part of [
    { type: 'file', file: { filename: 'a.docx', file_data: word } },
    { type: 'image_url', image_url: { url: 'data:image/*;base64,AAAA' } },
  ]) {
    assert.equal(refused({ messages: [{ role: 'user', content: [part] }] }), part.type.replace('_url', ''));
  }
});

test('media of a result go inside it for models that support it, after it for others', () => {
  const history = messages.decode({
    max_tokens: 10,
    messages: [
      { role: 'user', content: 'shot' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'screen', input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 't',
            content: [
              { type: 'text', text: 'here' },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
            ],
          },
        ],
      },
    ],
  });
  const image = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };
  const response = { id: 't', name: 'screen', response: { output: 'here' } };
  assert.deepEqual(encode(history).contents[2].parts, [{ functionResponse: response }, image]);
  assert.deepEqual(encode(history, target('gemini-3-flash-preview')).contents[2].parts, [
    { functionResponse: { ...response, parts: [image] } },
  ]);
});

test('signatures return byte for byte and in position, only to their origin', () => {
  const origin = 'google-gemini-v1';
  const parts: Part[] = [
    { type: 'reasoning', text: 'hm', signature: 'c2ln+/==', origin },
    { type: 'text', text: 'so' },
    { type: 'reasoning', text: '', signature: 'dGV4dA==', origin },
    { type: 'reasoning', text: 'alien', signature: 'x', origin: 'anthropic-claude-v1' },
    { type: 'toolCall', id: 'a', name: 'f', arguments: '{}', signature: { value: 'Y2FsbA==', origin } },
    { type: 'toolCall', id: 'b', name: 'f', arguments: '{}' },
    { type: 'opaque', origin: 'gemini', value: { executableCode: { code: 'x' }, thoughtSignature: 'Y29kZQ==' } },
  ];
  const conversation: Conversation = {
    messages: [
      { role: 'user', parts: [{ type: 'text', text: 'q' }] },
      { role: 'assistant', parts },
    ],
    settings: {},
  };
  const losses = new Losses();
  assert.deepEqual(encode(conversation, target(), losses).contents[1].parts, [
    { text: 'hm', thought: true, thoughtSignature: 'c2ln+/==' },
    { text: 'so' },
    { text: '', thoughtSignature: 'dGV4dA==' },
    { functionCall: { id: 'a', name: 'f', args: {} }, thoughtSignature: 'Y2FsbA==' },
    { functionCall: { id: 'b', name: 'f', args: {} } },
    { executableCode: { code: 'x' }, thoughtSignature: 'Y29kZQ==' },
  ]);
  assert.deepEqual(
    losses.dropped.map(({ what }) => what),
    ['reasoning'],
  );
  const elsewhere = encode(conversation, target('gemini-3-pro', { origin: 'unknown' }));
  assert.ok(!JSON.stringify(elsewhere).includes('Y2FsbA=='));
});

test('the first call of a turn from another model gets the placeholder signature where signatures are checked', () => {
  const calls = ['a', 'b'].map((id): Part => ({ type: 'toolCall', id, name: 'f', arguments: '{}' }));
  const conversation: Conversation = {
    messages: [
      { role: 'user', parts: [{ type: 'text', text: 'q' }] },
      { role: 'assistant', parts: calls },
    ],
    settings: {},
  };
  const signed = (model: string) =>
    encode(conversation, target(model)).contents[1].parts.map((part: Json) => part.thoughtSignature);
  assert.deepEqual(signed('gemini-3-pro-preview'), ['skip_thought_signature_validator', undefined]);
  assert.deepEqual(signed('gemini-2.5-pro'), [undefined, undefined]);
});

test('later instructions become user messages, adjacent turns of one role merge, names are reported', () => {
  const losses = new Losses();
  const body = fromChat(
    {
      messages: [
        { role: 'user', content: 'a', name: 'bob' },
        { role: 'assistant', content: 'b' },
        { role: 'assistant', content: 'c' },
        { role: 'system', content: 'd' },
        { role: 'user', content: 'e' },
      ],
    },
    target(),
    losses,
  );
  assert.deepEqual(body.contents, [
    { role: 'user', parts: [{ text: 'a' }] },
    { role: 'model', parts: [{ text: 'b' }, { text: 'c' }] },
    { role: 'user', parts: [{ text: 'd' }, { text: 'e' }] },
  ]);
  assert.deepEqual(losses.dropped.map(({ what }) => what).sort(), ['messages[].name', 'messages[].role']);
});

test('user messages merge across empty replies, but never with tool results', () => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const contents = (messages: object[]) =>
    fromChat({ messages }).contents.map(({ role, parts }: Json) => [role, parts.map((part: Json) => part.text ?? '*')]);
  const user = (content: string) => ({ role: 'user', content });
  assert.deepEqual(contents([user('a'), user('b')]), [['user', ['a', 'b']]]);
  assert.deepEqual(contents([user('a'), { role: 'assistant', content: '' }, user('b')]), [['user', ['a', 'b']]]);
  assert.deepEqual(
    contents([
      user('a'),
      user('b'),
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', content: 'r' },
      user('d'),
      { role: 'system', content: 'e' },
      user('f'),
    ]),
    [
      ['user', ['a', 'b']],
      ['model', ['*']],
      ['user', ['*']],
      ['user', ['d', 'e', 'f']],
    ],
  );
});
