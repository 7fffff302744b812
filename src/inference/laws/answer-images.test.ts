/** Images and audio of answers: of earlier ones, for services whose assistant messages cannot hold them, and wanted ones. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of all formats
type Json = any;

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';
const IMAGE = { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } };
const DRAW = { role: 'user', content: 'draw' };
const MORE = { role: 'user', content: 'more' };
const CALL = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
const RESULT = { role: 'tool', tool_call_id: 'call_1', content: 'done' };
const drawn = (more: Json = {}) => ({ role: 'assistant', content: 'here', images: [IMAGE], ...more });

async function sent(spoken: FormatId, messages: Json[]): Promise<Json> {
  const asked = { served: 'chat', kind: spoken, spoken, stream: false } as const;
  // What the upstream answers does not matter.
  const { sent: body } = await playThrough({ ...asked, messages: JSON.stringify(messages) }, { pieces: [] });
  return JSON.parse(body);
}

/** The messages as text: roles, and what they hold in order. */
const READ: Partial<Record<FormatId, (body: Json) => string[]>> = {
  messages: ({ messages }) => messages.map(({ role, content }: Json) => [role, ...content.map(wordOf)].join(' ')),
  converse: ({ messages }) => messages.map(({ role, content }: Json) => [role, ...content.map(wordOf)].join(' ')),
  cohere: ({ messages }) =>
    messages.map(({ role, content, tool_calls: calls }: Json) =>
      [role, ...(content ?? []).map(wordOf), ...(calls ? ['call'] : [])].join(' '),
    ),
  responses: ({ input }) =>
    input.map((item: Json) => {
      if (item.type === 'function_call') return 'call';
      if (item.type === 'function_call_output') return 'result';
      return [item.role, ...(typeof item.content === 'string' ? [item.content] : item.content.map(wordOf))].join(' ');
    }),
};

function wordOf(block: Json): string {
  if (JSON.stringify(block).includes(PNG)) return 'IMAGE';
  if (block.type === 'tool_use' || block.toolUse) return 'call';
  if (block.type === 'tool_result' || block.toolResult) return 'result';
  return block.text;
}

const GROUPED = {
  called: ['user draw', 'assistant here call', 'user result IMAGE more'],
  ended: ['user draw', 'assistant here call', 'user result IMAGE'],
};
const SINGLE = {
  called: ['user draw', 'assistant here', 'call', 'result', 'user IMAGE more'],
  ended: ['user draw', 'assistant here', 'call', 'result', 'user IMAGE'],
};
const COHERE = {
  called: ['user draw', 'assistant here call', 'tool done', 'user IMAGE more'],
  ended: ['user draw', 'assistant here call', 'tool done', 'user IMAGE'],
};

describe('an image that a model made begins the next user message', () => {
  const cases = [
    ['messages', GROUPED],
    ['converse', GROUPED],
    ['responses', SINGLE],
    ['cohere', COHERE],
  ] as const;
  for (const [spoken, { called, ended }] of cases) {
    test(`to ${spoken}`, async () => {
      const read = async (...messages: Json[]) => READ[spoken]!(await sent(spoken, messages));
      assert.deepEqual(await read(DRAW, drawn(), MORE), ['user draw', 'assistant here', 'user IMAGE more']);
      const only = (await read(DRAW, drawn({ content: null }), MORE)).join(' | ');
      assert.match(only, /^user draw (\| user )?IMAGE more$/);
      const calls = { tool_calls: [CALL] };
      assert.deepEqual(await read(DRAW, drawn(calls), RESULT, MORE), called);
      assert.deepEqual(await read(DRAW, drawn(calls), RESULT), ended);
      const twice = await read(DRAW, drawn(), MORE, drawn(), DRAW);
      const again = ['assistant here', 'user IMAGE draw'];
      assert.deepEqual(twice, ['user draw', 'assistant here', 'user IMAGE more', ...again]);
    });
  }

  test('and stays in the message to gemini', async () => {
    const { contents } = await sent('gemini', [DRAW, drawn(), MORE]);
    assert.deepEqual(contents[1], {
      role: 'model',
      parts: [{ text: 'here' }, { inlineData: { mimeType: 'image/png', data: PNG } }],
    });
  });
});

test('audio that a model spoke is its transcript, also where the client sends its bytes back', async () => {
  const audio = { id: 'audio_1', data: 'UklGRg==', transcript: 'spoken', expires_at: 1 };
  const spoke = { role: 'assistant', content: null, audio };
  for (const spoken of ['messages', 'converse', 'responses', 'cohere', 'gemini'] as const) {
    const text = JSON.stringify(await sent(spoken, [DRAW, spoke, MORE]));
    assert.match(text, /spoken/, spoken);
    assert.doesNotMatch(text, /UklGRg/, spoken);
  }
});

test('a Gemini client that wants speech asks chat services for the text, too, without which they do not speak', async () => {
  const speechConfig = { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } };
  const more = { generationConfig: { responseModalities: ['AUDIO'], speechConfig } };
  const asked = { served: 'gemini', kind: 'openai', spoken: 'chat', stream: false, more } as const;
  const body = JSON.parse((await playThrough(asked, { pieces: [] })).sent);
  assert.deepEqual(body.modalities, ['text', 'audio']);
  assert.equal(body.audio.voice, 'Kore');
});
