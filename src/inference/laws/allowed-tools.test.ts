/** A choice among some of the tools reaches every upstream: where it cannot be expressed, the other tools are left out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of all formats
type Json = any;

const NAMES = ['a', 'b', 'c'];
const chosen = (type: string) =>
  NAMES.slice(1).map((name) => (type === 'chat' ? inChat({ name }) : inResponses({ name })));
const inChat = (members: Json) => ({ type: 'function', function: members });
const inResponses = (members: Json) => ({ type: 'function', ...members });
const parameters = { type: 'object', properties: { x: { type: 'string' } } };

function requestOf(served: 'chat' | 'responses', mode: string) {
  const declared = NAMES.map((name) => ({ name, parameters }));
  if (served === 'chat') {
    const tool_choice = { type: 'allowed_tools', allowed_tools: { mode, tools: chosen('chat') } };
    return { tools: declared.map(inChat), tool_choice };
  }
  return { tools: declared.map(inResponses), tool_choice: { type: 'allowed_tools', mode, tools: chosen('responses') } };
}

async function sent(served: 'chat' | 'responses', kind: string, spoken: FormatId, mode: string): Promise<Json> {
  const asked = { served, kind, spoken, stream: false, more: requestOf(served, mode) };
  // What the upstream answers does not matter.
  return JSON.parse((await playThrough(asked, { pieces: [] })).sent);
}

/** The names of the tools that were sent, and the choice. */
const READ: Record<string, (body: Json) => [string[], unknown]> = {
  messages: ({ tools, tool_choice }) => [tools.map(({ name }: Json) => name), tool_choice?.type],
  converse: ({ toolConfig: { tools, toolChoice } }) => [
    tools.flatMap(({ toolSpec }: Json) => toolSpec?.name ?? []),
    Object.keys(toolChoice ?? { auto: {} })[0],
  ],
  cohere: ({ tools, tool_choice }) => [tools.map((tool: Json) => tool.function.name), tool_choice],
  chat: ({ tools, tool_choice }) => [tools.map((tool: Json) => tool.function.name), tool_choice],
};

for (const served of ['chat', 'responses'] as const) {
  const kinds = [
    ['anthropic', 'messages', 'any', 'auto'],
    ['converse', 'converse', 'any', 'auto'],
    ['cohere', 'cohere', 'REQUIRED', undefined],
    ['chat', 'chat', 'required', 'auto'],
    ['mistral', 'chat', 'required', 'auto'],
    ['vllm', 'chat', 'required', 'auto'],
  ] as const;
  for (const [kind, spoken, required, auto] of kinds) {
    test(`from ${served} to ${kind}`, async () => {
      const read = READ[spoken]!;
      assert.deepEqual(read(await sent(served, kind, spoken, 'required')), [['b', 'c'], required]);
      assert.deepEqual(read(await sent(served, kind, spoken, 'auto')), [['b', 'c'], auto]);
    });
  }

  test(`from ${served} as it is, where it is known`, async () => {
    const openai = await sent(served, 'openai', served, 'required');
    assert.deepEqual(openai.tool_choice, requestOf(served, 'required').tool_choice);
    assert.equal(openai.tools.length, 3);
    const responses = await sent(served, 'responses', 'responses', 'auto');
    assert.deepEqual(responses.tool_choice, requestOf('responses', 'auto').tool_choice);
    assert.equal(responses.tools.length, 3);
    const gemini = await sent(served, 'gemini', 'gemini', 'required');
    const calling = { mode: 'ANY', allowedFunctionNames: ['b', 'c'] };
    assert.deepEqual(gemini.toolConfig.functionCallingConfig, calling);
    assert.equal(gemini.tools[0].functionDeclarations.length, 3);
  });
}
