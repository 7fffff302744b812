import assert from 'node:assert/strict';
import test from 'node:test';
import { Compile } from 'typebox/compile';
import { GatewayError } from '../../base/errors.ts';
import { corpusMissing, recordings } from '../../testing/recordings/corpus.ts';
import { messages } from './index.ts';

const schema = Compile(messages.schema);
const message = { role: 'user', content: 'hi' };
const body = (rest: Record<string, unknown> = {}) => ({ model: 'm', max_tokens: 2000, messages: [message], ...rest });
const blocks = (...content: unknown[]) => body({ messages: [{ role: 'user', content }] });

/** The path of the error. */
function refused(request: unknown): string | undefined {
  try {
    messages.check(request);
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.status === 400);
    assert.ok(error.details.path === '' || error.message.includes(error.details.path ?? '?'));
    return error.details.path;
  }
  return undefined;
}

test('every recorded request is accepted', { skip: corpusMissing }, () => {
  const requests = recordings(['messages']).flatMap((recording) => recording.request ?? []);
  assert.ok(requests.length >= 10);
  for (const request of requests) {
    assert.deepEqual(schema.Errors(request), []);
    assert.equal(refused(request), undefined);
  }
});

test('unknown members are accepted, limits and enums of known ones are enforced', () => {
  assert.ok(schema.Check(body({ future: { a: 1 }, thinking: { type: 'adaptive', later: true } })));
  const wrong = {
    model: '',
    max_tokens: 0,
    messages: null,
    system: 3,
    stream: 'yes',
    session_id: 'x'.repeat(257),
    user: 'x'.repeat(257),
    fallbacks: [1, 2, 3, 4].map((n) => ({ model: `m${n}` })),
    speed: 'slow',
    thinking: { type: 'sometimes' },
    tool_choice: { type: 'required' },
    output_config: { format: { type: 'xml' } },
    cache_control: { type: 'ephemeral', ttl: '2h' },
    top_p: 1.1,
  };
  for (const [name, value] of Object.entries(wrong)) {
    const errors = schema.Errors(body({ [name]: value }));
    assert.ok(errors.length > 0 && errors.every((error) => error.instancePath.startsWith(`/${name}`)), name);
  }
  assert.ok(!schema.Check(body({ messages: [{ role: 'tool', content: 'x' }] })));
});

test('contradictory members are rejected with the path of the field', () => {
  assert.equal(refused(body({ fallbacks: [{ model: 'a' }], models: ['b'] })), 'fallbacks');
  assert.equal(refused(body({ thinking: { type: 'enabled', budget_tokens: 2000 } })), 'thinking.budget_tokens');
  assert.equal(refused(body({ thinking: { type: 'enabled' } })), 'thinking.budget_tokens');
  assert.equal(refused(body({ thinking: { type: 'enabled', budget_tokens: 1999 } })), undefined);
  assert.equal(refused(body({ messages: [] })), 'messages');
  assert.equal(refused(body({ messages: [{ role: 'assistant', content: 'x' }] })), 'messages[0].role');
  assert.equal(refused(body({ messages: [{ role: 'system', content: 'x' }, message] })), undefined);
  assert.equal(refused(body({ tool_choice: { type: 'tool' } })), 'tool_choice.name');
  assert.equal(refused(body({ tools: [{ name: 'f' }] })), 'tools[0].input_schema');
  assert.equal(refused(body({ tools: [{ input_schema: {} }] })), 'tools[0].name');
});

test('an unknown or incomplete content block is rejected with its path', () => {
  assert.equal(refused(blocks({ type: 'text', text: 'a' }, { type: 'hologram' })), 'messages[0].content[1].type');
  assert.equal(refused(blocks({ type: 'text' })), 'messages[0].content[0].text');
  assert.equal(refused(blocks('text')), 'messages[0].content[0]');
  assert.equal(refused(blocks({ type: 'tool_use', id: 't', name: 'f', input: [] })), 'messages[0].content[0].input');
  const image = (source: unknown) => ({ type: 'image', source });
  assert.equal(
    refused(blocks(image({ type: 'base64', media_type: 'image/tiff', data: '' }))),
    'messages[0].content[0].source.media_type',
  );
  for (const type of ['blob', 'constructor', 'toString', '']) {
    assert.equal(refused(blocks(image({ type }))), 'messages[0].content[0].source.type', type);
  }
  const nested = { type: 'tool_result', tool_use_id: 't', content: [image({ type: 'url' })] };
  assert.equal(refused(blocks(nested)), 'messages[0].content[0].content[0].source.url');
  for (const type of ['mcp_tool_use', 'web_fetch_tool_result', 'container_upload', 'compaction', 'fallback']) {
    assert.equal(refused(blocks({ type })), undefined, type);
  }
});

test('unsupported features are rejected by name, and accepted when absent or empty', () => {
  assert.equal(refused(body({ tools: [{ type: 'openrouter:nothing' }] })), 'tools[0].type');
  assert.equal(refused(body({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] })), undefined);
  assert.equal(refused(body({ stop_server_tools_when: [{ type: 'never' }] })), 'stop_server_tools_when[0].type');
  for (const value of [7, '', true, {}]) {
    assert.equal(refused(body({ stop_server_tools_when: value })), 'stop_server_tools_when');
  }
  assert.equal(refused(body({ deferred_tools: { protocol: 'v2' } })), 'deferred_tools.protocol');
  assert.equal(refused(body({ deferred_tools: null, stop_server_tools_when: null })), undefined);
  assert.equal(refused(body({ provider: { enforce_distillable_text: true } })), 'provider.enforce_distillable_text');
  assert.equal(refused(body({ provider: { only: ['a'], sort: 'price', zdr: true } })), undefined);
  assert.equal(refused(body({ route: 'sort' })), undefined);
});

test('the facts of a request are read', () => {
  const url = { type: 'url', url: 'https://a.example/x' };
  const request = {
    ...body({
      stream: true,
      fallbacks: [{ model: 'b' }, { model: 'm' }],
      session_id: 's',
      metadata: { user_id: 'alice' },
    }),
    provider: { only: ['acme'] },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: url },
          {
            type: 'tool_result',
            tool_use_id: 't',
            content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }],
          },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
        ],
      },
    ],
  };
  assert.deepEqual(messages.facts(request), {
    model: 'm',
    fallbackModels: ['b'],
    fallbackOnRefusal: true,
    provider: { only: ['acme'] },
    stream: true,
    choices: 1,
    media: { images: 2, documents: 1 },
    needs: { inputs: ['image', 'file'], outputs: [], features: [], parameters: [] },
    maxOutputTokens: 2000,
    user: 'alice',
    sessionId: 's',
  });
  const plain = messages.facts(body({ models: ['m', 'c'], user: 'bob', metadata: { user_id: 'alice' } }));
  assert.deepEqual(
    [plain.fallbackModels, plain.fallbackOnRefusal, plain.user, plain.stream],
    [['c'], false, 'bob', false],
  );
});
