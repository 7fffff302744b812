import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { samples } from '../../testing/laws/samples.ts';
import { converse } from '../converse/index.ts';
import { messages } from '../messages/index.ts';
import { withBreakpoints } from './cache-breakpoints.ts';
import type { Conversation, Message, Part } from './conversation.ts';
import type { EncodeTarget } from './format.ts';
import { Losses } from './losses.ts';

// biome-ignore lint/suspicious/noExplicitAny: encoded bodies are read freely
type Json = any;

const TARGET: EncodeTarget = {
  model: 'anthropic.claude-sonnet-4-5',
  stream: false,
  maxOutputTokens: 1000,
  origin: 'anthropic-claude-v1',
  user: 'u-hash',
  dialect: {},
  promptCaching: 'translated',
};

const text = (words: string): Part => ({ type: 'text', text: words });
const words = fc.constantFrom('a', 'é "cache_control"', '北京', '  ');
const tool = { type: 'function' as const, name: 'look', parameters: { type: 'object' } };

/** One step of an agent: the model calls tools and their results follow, or the user continues. */
const step = fc.record({ calls: fc.integer({ min: 0, max: 3 }), said: words, late: fc.boolean() });

/** The conversation after these steps; a longer one starts with the shorter one. */
function after(steps: readonly { calls: number; said: string; late: boolean }[]): Message[] {
  const list: Message[] = [
    { role: 'system', parts: [text('rules')] },
    { role: 'user', parts: [text('begin')] },
  ];
  for (const [round, { calls, said, late }] of steps.entries()) {
    const ids = Array.from({ length: calls }, (_, index) => `call_${round}_${index}`);
    list.push({
      role: 'assistant',
      parts: [
        text(`step ${round}`),
        ...ids.map((id): Part => ({ type: 'toolCall', id, name: 'look', arguments: '{}' })),
      ],
    });
    for (const id of ids)
      list.push({ role: 'tool', parts: [{ type: 'toolResult', callId: id, parts: [text('seen')] }] });
    if (late) list.push({ role: 'system', parts: [text('a reminder')] });
    list.push({ role: 'user', parts: [text('go on'), text(said)] });
  }
  return list;
}

/**
 * The length of each prefix that ends at a breakpoint, in the prompt text as the provider reads it without breakpoints.
 */
function breakpoints(body: Json): { prompt: string; ends: number[] } {
  let prompt = '';
  const ends: number[] = [];
  const add = (blocks: Json[]) => {
    for (const block of blocks) {
      if (block.cachePoint !== undefined) ends.push(prompt.length);
      else {
        const { cache_control: mark, ...rest } = block;
        prompt += stringifyJson(rest);
        if (mark !== undefined) ends.push(prompt.length);
      }
    }
  };
  add(body.tools ?? body.toolConfig?.tools ?? []);
  add(body.system ?? []);
  for (const message of body.messages) {
    prompt += `<${message.role}>`;
    add(message.content);
  }
  return { prompt, ends };
}

for (const format of [messages, converse]) {
  test(`${format.id}: each request of a growing conversation reads the cache entry written by the previous one`, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), fc.boolean(), (steps, hasTools) => {
        let written: { prompt: string; end: number } | undefined;
        for (let count = 0; count <= steps.length; count += 1) {
          const conversation: Conversation = {
            messages: after(steps.slice(0, count)),
            ...((hasTools || steps.some(({ calls }) => calls > 0)) && { tools: [tool] }),
            settings: {},
          };
          const losses = new Losses();
          const { prompt, ends } = breakpoints(format.encode(conversation, TARGET, losses));
          assert.ok(ends.length >= 1 && ends.length <= 4, `${ends.length} breakpoints`);
          assert.ok(!losses.dropped.some(({ what }) => what === 'cache_control'));
          if (written !== undefined) {
            assert.ok(prompt.startsWith(written.prompt.slice(0, written.end)));
            assert.ok(ends.includes(written.end), 'the end of the request before has a breakpoint');
          }
          if (count > 0 || conversation.tools !== undefined) written = { prompt, end: ends.at(-1)! };
        }
      }),
      { numRuns: samples(200) },
    );
  });
}

test('a relayed body gets the same breakpoints as a translated one, and no other byte changes', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 5 }), fc.boolean(), fc.boolean(), (steps, hasTools, asText) => {
      const plain: Json = messages.encode(
        {
          messages: after(steps),
          ...((hasTools || steps.some(({ calls }) => calls > 0)) && { tools: [tool] }),
          settings: {},
        },
        { ...TARGET, promptCaching: undefined },
        new Losses(),
      );
      // Clients write short contents as a string.
      if (asText) {
        plain.system = 'rules';
        for (const row of plain.messages)
          if (row.content.length === 1 && row.content[0].text) row.content = row.content[0].text;
      }
      const client = stringifyJson(plain).replace('{', '{ "future" : 1.0,\n');
      const document = readDocument(Buffer.from(client));
      const relayed = (promptCaching: EncodeTarget['promptCaching']) =>
        applyEdits(document, messages.relay.edits(document, { ...TARGET, promptCaching })).toString();
      const unmarked = relayed('translated');
      assert.ok(!unmarked.includes('"cache_control":{'));
      const marked = relayed('always');
      const bare = marked
        .replaceAll(
          /\[\{"type":"text","text":("(?:[^"\\]|\\.)*"),"cache_control":\{"type":"ephemeral"\}\}\]/g,
          asText ? '$1' : '$&',
        )
        .replaceAll(',"cache_control":{"type":"ephemeral"}', '');
      assert.equal(bare, unmarked);
      const translated = messages.encode(messages.decode(document.exact), TARGET, new Losses()) as Json;
      const contents = (body: Json) => ({
        tools: body.tools,
        system: body.system,
        messages: body.messages.map(({ role, content }: Json) => ({
          role,
          content: typeof content === 'string' ? [{ type: 'text', text: content }] : content,
        })),
      });
      assert.deepEqual(contents(JSON.parse(marked)), contents(translated));
    }),
    { numRuns: samples(200) },
  );
});

test('a conversation with any breakpoint of the client is unchanged', () => {
  const base: Conversation = { messages: after([{ calls: 1, said: 'a', late: false }]), tools: [tool], settings: {} };
  const [system, user, assistant, result, last] = base.messages as [Message, Message, Message, Message, Message];
  const marked = (part: Part): Part => ({ ...part, cache: {} });
  const cases: Conversation[] = [
    { ...base, cache: {} },
    { ...base, tools: [{ ...tool, cache: {} }] },
    { ...base, tools: [tool, { type: 'opaque', origin: 'messages', value: { type: 'x_1', cache_control: {} } }] },
    { ...base, messages: [{ ...system, cache: {} }, user, assistant, result, last] },
    { ...base, messages: [system, user, assistant, { ...result, parts: result.parts.map(marked) }, last] },
    {
      ...base,
      messages: [
        system,
        user,
        assistant,
        { role: 'tool', parts: [{ type: 'toolResult', callId: 'call_0_0', parts: [marked(text('r'))] }] },
        last,
      ],
    },
  ];
  for (const conversation of cases) assert.equal(withBreakpoints(conversation, 4), conversation);
});

test('a single question without tools gets a breakpoint only after its system prompt', () => {
  const { messages: list } = withBreakpoints({ messages: after([]), settings: {} }, 4);
  assert.deepEqual(
    list.map(({ cache }) => cache),
    [{}, undefined],
  );
});

test('deferred tools carry no breakpoint', () => {
  const deferred = { ...tool, name: 'later', deferred: true as const };
  const { tools } = withBreakpoints({ messages: after([]), tools: [tool, deferred], settings: {} }, 4);
  assert.deepEqual(tools, [{ ...tool, cache: {} }, deferred]);
});
