/** What a chat client sends back, relayed to services of the chat format that accept less of it than OpenAI. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { playThrough } from '../../testing/laws/pipeline.ts';
import { chatReply } from '../../testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const USER = { role: 'user', content: 'hi' };

async function sent(kind: string, messages: Json[], more: Json = {}): Promise<Json> {
  const pieces = [Buffer.from(JSON.stringify(chatReply({ text: 'ok' })))];
  const asked = { served: 'chat', kind, spoken: 'chat', stream: false, more } as const;
  const answer = await playThrough({ ...asked, messages: JSON.stringify(messages) }, { pieces });
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.sent);
}

const called = (written: string) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call12345', type: 'function', function: { name: 'f', arguments: written } }],
});
const RESULT = { role: 'tool', tool_call_id: 'call12345', content: 'no' };

describe('arguments that are no JSON object', () => {
  const cases = [
    ['{"a": "cut o', '{"INVALID_JSON":"{\\"a\\": \\"cut o"}'],
    ['{"ä": "cut ö', '{"INVALID_JSON":"{\\"ä\\": \\"cut ö"}'],
    ['[1]', '{"INVALID_JSON":"[1]"}'],
    ['', '{}'],
  ] as const;
  for (const kind of ['chat', 'vllm', 'ollama', 'mistral', 'groq', 'openrouter']) {
    test(`are wrapped in one for ${kind}`, async () => {
      for (const [written, expected] of cases) {
        const { messages } = await sent(kind, [USER, called(written), RESULT]);
        assert.equal(messages[1].tool_calls[0].function.arguments, expected);
      }
    });
  }

  test('are relayed to OpenAI, and objects to all, as they are', async () => {
    for (const [written] of cases) {
      const { messages } = await sent('openai', [USER, called(written), RESULT]);
      assert.equal(messages[1].tool_calls[0].function.arguments, written);
    }
    const odd = '{ "n": 12345678901234567890, "f": 1.0 }\n';
    for (const kind of ['chat', 'vllm', 'mistral', 'openai']) {
      const { messages } = await sent(kind, [USER, called(odd), RESULT]);
      assert.equal(messages[1].tool_calls[0].function.arguments, odd);
    }
  });
});

describe('an assistant message without content', () => {
  const said = async (kind: string, assistant: Json) => {
    const { messages } = await sent(kind, [USER, { role: 'assistant', ...assistant }, USER]);
    return messages.slice(1, -1);
  };
  for (const kind of ['mistral', 'groq', 'cerebras']) {
    test(`says its refusal and its spoken words to ${kind}, which has no other members`, async () => {
      const refused = await said(kind, { content: null, refusal: 'No, Ä.' });
      assert.deepEqual(refused, [{ role: 'assistant', content: 'No, Ä.' }]);
      const both = await said(kind, { content: 'Well.', refusal: 'No.' });
      assert.deepEqual(both, [{ role: 'assistant', content: 'Well.\n\nNo.' }]);
      const audio = { id: 'audio_1', data: 'UklGRg==', transcript: 'hello', expires_at: 1 };
      assert.deepEqual(await said(kind, { content: null, audio }), [{ role: 'assistant', content: 'hello' }]);
      const parts = await said(kind, { content: [{ type: 'refusal', refusal: 'No.' }] });
      assert.deepEqual(parts, [{ role: 'assistant', content: [{ type: 'text', text: 'No.' }] }]);
    });

    test(`and with nothing else that ${kind} accepts is left out`, async () => {
      for (const nothing of [{ content: null, audio: { id: 'audio_1' } }, { content: '' }, { content: null }]) {
        assert.deepEqual(await said(kind, nothing), []);
      }
      const { messages } = await sent(kind, [USER, called('{}'), RESULT, { role: 'assistant', content: '' }, USER]);
      const roles = messages.map(({ role }: Json) => role);
      const bridge = kind === 'mistral' ? ['assistant'] : [];
      assert.deepEqual(roles, ['user', 'assistant', 'tool', ...bridge, 'user']);
    });
  }
});
