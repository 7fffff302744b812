import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../base/errors.ts';
import { chat, gemini, messages, responses } from './index.ts';

type Body = Record<string, unknown>;

const FORMATS = {
  chat: { format: chat, start: { model: 'm', messages: [{ role: 'user', content: 'hi' }] } },
  messages: { format: messages, start: { model: 'm', messages: [{ role: 'user', content: 'hi' }] } },
  responses: { format: responses, start: { model: 'm', input: 'hi' } },
  gemini: { format: gemini, start: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] } },
};

/** The path of the refusal; undefined if the request is accepted. */
function refused(name: keyof typeof FORMATS, members: Body): string | undefined {
  const { format, start } = FORMATS[name];
  try {
    format.check({ ...start, ...members });
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.status === 400, String(error));
    return error.details.path;
  }
  return undefined;
}

const ofChat = (...names: string[]) => names.map((name) => ({ type: 'function', function: { name } }));
const ofMessages = (...names: string[]) => names.map((name) => ({ name, input_schema: { type: 'object' } }));
const ofResponses = (...names: string[]) => names.map((name) => ({ type: 'function', name }));
const ofGemini = (...names: string[]) => [{ functionDeclarations: names.map((name) => ({ name })) }];
const MODE = 'toolConfig.functionCallingConfig.mode';
const calling = (mode: string) => ({ toolConfig: { functionCallingConfig: { mode } } });

test('two tools of one name are refused where the vendor of the format refuses them', () => {
  assert.equal(refused('chat', { tools: ofChat('a', 'a') }), undefined);
  assert.equal(refused('responses', { tools: ofResponses('a', 'a') }), undefined);
  assert.equal(refused('messages', { tools: ofMessages('a', 'b', 'a') }), 'tools[2].name');
  const search = { type: 'web_search_20250305', name: 'web_search' };
  assert.equal(refused('messages', { tools: [search, ...ofMessages('web_search')] }), 'tools[1].name');
  assert.equal(refused('gemini', { tools: ofGemini('a', 'a') }), 'tools[0].functionDeclarations[1].name');
  const spread = [...ofGemini('a'), { function_declarations: [{ name: 'b' }, { name: 'a' }] }];
  assert.equal(refused('gemini', { tools: spread }), 'tools[1].functionDeclarations[1].name');
});

test('a choice that forces a tool needs tools, and one that forces nothing does not', () => {
  for (const tools of [undefined, null, []]) {
    assert.equal(refused('chat', { tools, tool_choice: 'required' }), 'tool_choice');
    assert.equal(refused('responses', { tools, tool_choice: 'required' }), 'tool_choice');
    assert.equal(refused('messages', { tools, tool_choice: { type: 'any' } }), 'tool_choice');
    assert.equal(refused('gemini', { tools, ...calling('ANY') }), MODE);
    for (const nothing of ['auto', 'none', null]) {
      assert.equal(refused('chat', { tools, tool_choice: nothing }), undefined);
      assert.equal(refused('responses', { tools, tool_choice: nothing }), undefined);
    }
    for (const type of ['auto', 'none']) assert.equal(refused('messages', { tools, tool_choice: { type } }), undefined);
    for (const mode of ['AUTO', 'NONE']) assert.equal(refused('gemini', { tools, ...calling(mode) }), undefined);
  }
  assert.equal(refused('chat', { tool_choice: { type: 'svc:datetime' } }), 'tool_choice');
  assert.equal(refused('gemini', { tools: [{ googleSearch: {} }], ...calling('ANY') }), MODE);
  assert.equal(refused('gemini', { tools: [{ type: 'svc:datetime' }], ...calling('ANY') }), undefined);
  for (const more of [{ plugins: [{ id: 'web' }] }, { functions: [{ name: 'f' }] }, { web_search_options: {} }]) {
    assert.equal(refused('chat', { ...more, tool_choice: 'required' }), undefined);
  }
});

test('a choice names a tool of the request', () => {
  const inChat = (tool_choice: unknown, tools: unknown = ofChat('a')) => refused('chat', { tools, tool_choice });
  const named = (name: string) => ({ type: 'function', function: { name } });
  assert.equal(inChat(named('a')), undefined);
  assert.equal(inChat(named('b')), 'tool_choice.function.name');
  assert.equal(inChat(named('a'), null), 'tool_choice.function.name');
  assert.equal(inChat({ type: 'custom', custom: { name: 'b' } }), 'tool_choice.custom.name');
  const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named('a'), named('b')] } };
  assert.equal(inChat(allowed), 'tool_choice.allowed_tools.tools[1].function.name');
  // The gateway and vendors name the functions of their own tools.
  assert.equal(inChat(named('b'), [...ofChat('a'), { type: 'browser_search' }]), undefined);

  const inMessages = (name: string, members: Body = {}) =>
    refused('messages', { tools: ofMessages('a'), tool_choice: { type: 'tool', name }, ...members });
  assert.equal(inMessages('a'), undefined);
  assert.equal(inMessages('b'), 'tool_choice.name');
  assert.equal(inMessages('b', { tools: [] }), 'tool_choice.name');
  assert.equal(inMessages('b', { tools: [{ type: 'mcp_toolset', mcp_server_name: 's' }] }), undefined);
  assert.equal(inMessages('b', { mcp_servers: [{ type: 'url', name: 's', url: 'https://mcp.test' }] }), undefined);
  assert.equal(inMessages('a', { tool_choice: { type: 'any', name: 'a' } }), 'tool_choice.name');
  const added = [{ role: 'user', content: [{ type: 'tool_addition', tool: { type: 'tool_reference', name: 'b' } }] }];
  assert.equal(inMessages('b', { messages: added }), undefined);

  const inResponses = (tool_choice: unknown, members: Body = {}) =>
    refused('responses', { tools: ofResponses('a'), tool_choice, ...members });
  assert.equal(inResponses({ type: 'function', name: 'a' }), undefined);
  assert.equal(inResponses({ type: 'function', name: 'b' }), 'tool_choice.name');
  assert.equal(inResponses({ type: 'image_generation' }), 'tool_choice.type');
  assert.equal(inResponses({ type: 'mcp', server_label: 's' }), 'tool_choice.type');
  const two = [{ type: 'function', name: 'a' }, { type: 'web_search' }];
  assert.equal(inResponses({ type: 'allowed_tools', mode: 'auto', tools: two }), 'tool_choice.tools[1].type');
  for (const type of ['web_search', 'web_search_preview', 'web_search_2025_08_26', 'svc:web_search']) {
    assert.equal(inResponses({ type }, { tools: [{ type: 'web_search_preview_2025_03_11' }] }), undefined, type);
  }
  const namespace = { type: 'namespace', name: 'n', tools: ofResponses('b') };
  assert.equal(inResponses({ type: 'function', namespace: 'n', name: 'b' }, { tools: [namespace] }), undefined);
  const more = { type: 'additional_tools', role: 'developer', tools: [namespace] };
  const input = [more, { role: 'user', content: 'hi' }];
  assert.equal(inResponses({ type: 'function', name: 'b' }, { input }), undefined);
  assert.equal(inResponses({ type: 'function', name: 'b' }, { prompt: { id: 'pmpt_1' } }), undefined);
});

test('a part of a request may choose a tool that is added later', () => {
  for (const [name, tool_choice, wrong] of [
    ['chat', { type: 'function', function: { name: 'b' } }, 'sometimes'],
    ['chat', 'required', { type: 'function' }],
    ['messages', { type: 'any' }, { type: 'tool' }],
    ['messages', { type: 'tool', name: 'b' }, { type: 'auto', name: 'b' }],
    ['responses', { type: 'function', name: 'b' }, { type: 'function' }],
    ['responses', { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'mcp' }] }, { type: 'allowed_tools' }],
  ] as const) {
    const { format, start } = FORMATS[name];
    assert.throws(() => format.check({ ...start, tool_choice }), /tool_choice/);
    format.check({ ...start, tool_choice }, true);
    assert.throws(() => format.check({ ...start, tool_choice: wrong }, true), /tool_choice/);
  }
});

test('the older functions of chat have names, and function_call names one of them', () => {
  const older = (functions: unknown, function_call?: unknown) => refused('chat', { functions, function_call });
  assert.equal(older([{ name: 'f' }], { name: 'f' }), undefined);
  assert.equal(older([{ name: 'f' }], 'auto'), undefined);
  assert.equal(older([{ name: 'f' }], { name: 'g' }), 'function_call.name');
  assert.equal(older(undefined, { name: 'f' }), 'function_call.name');
  assert.equal(older([{ name: 'f' }], 'required'), 'function_call');
  assert.equal(older('f'), 'functions');
  assert.equal(older([{ name: 'f' }, { description: 'no name' }]), 'functions[1].name');
});
