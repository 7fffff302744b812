import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { readDocument } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { documentCheck } from '../../http/validate.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { Losses } from '../conversation/losses.ts';
import type { ChatDialect } from './dialect.ts';
import { chat } from './index.ts';

const HELLO = [{ role: 'user', content: 'hi' }];
const checkSchema = documentCheck(chat.schema);

/** The path of the error; '' when the request is accepted. */
function refused(more: object): string {
  const document = readDocument(Buffer.from(JSON.stringify({ model: 'a/b', messages: HELLO, ...more })));
  try {
    checkSchema(document);
    chat.check(document.value);
    return '';
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.status === 400, String(error));
    assert.ok(error.message.startsWith(error.details.path!), error.message);
    return error.details.path!;
  }
}

const user = (part: object) => ({ messages: [{ role: 'user', content: [part] }] });
const tool = (more: object) => ({ tools: [{ type: 'function', function: { name: 'f' }, ...more }] });

test('an invalid field is rejected with 400 and its path', () => {
  const cases: [object, string][] = [
    [{ messages: [] }, 'messages'],
    [{ messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role'],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].tool_call_id'],
    [{ messages: [{ role: 'assistant', tool_calls: [{ id: 'x' }] }] }, 'messages[0].tool_calls[0].function'],
    [user({ type: 'text' }), 'messages[0].content[0].text'],
    [user({ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }), 'messages[0].content[0].image_url.url'],
    [
      user({ type: 'image_url', image_url: { url: 'data:image/*;base64,AAAA' } }),
      'messages[0].content[0].image_url.url',
    ],
    [user({ type: 'image_url', image_url: {} }), 'messages[0].content[0].image_url.url'],
    [user({ type: 'file', file: { file_data: 'JVBERi0xLjQK' } }), 'messages[0].content[0].file.file_data'],
    [user({ type: 'file', file: {} }), 'messages[0].content[0].file'],
    [{ temperature: 2.1 }, 'temperature'],
    [{ top_p: -0.1 }, 'top_p'],
    [{ frequency_penalty: 3 }, 'frequency_penalty'],
    [{ repetition_penalty: 0 }, 'repetition_penalty'],
    [{ top_logprobs: 21, logprobs: true }, 'top_logprobs'],
    [{ top_logprobs: 2 }, 'top_logprobs'],
    [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ n: 0 }, 'n'],
    [{ service_tier: 'warp' }, 'service_tier'],
    [{ session_id: 'x'.repeat(257) }, 'session_id'],
    [{ metadata: { ['k'.repeat(65)]: 'v' } }, 'metadata'],
    [{ metadata: { k: 'v'.repeat(513) } }, 'metadata.k'],
    [{ reasoning_effort: 'huge' }, 'reasoning_effort'],
    [{ reasoning_effort: 'low', reasoning: { effort: 'high' } }, 'reasoning_effort'],
    [{ reasoning: { effort: 'high', max_tokens: 2_000 } }, 'reasoning.max_tokens'],
    [{ reasoning_effort: 'high', reasoning: { max_tokens: 2_000 } }, 'reasoning.max_tokens'],
    [{ reasoning: { enabled: false, effort: 'high' } }, 'reasoning.enabled'],
    [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools[0].function.name'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    [{ tool_choice: 'any' }, 'tool_choice'],
    [{ tool_choice: { type: 'function' } }, 'tool_choice.function.name'],
    [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    [{ response_format: { type: 'json_schema', json_schema: { name: 'a b' } } }, 'response_format.json_schema.name'],
    [{ response_format: { type: 'grammar' } }, 'response_format.grammar'],
  ];
  for (const [more, path] of cases) assert.equal(refused(more), path, JSON.stringify(more));
});

test('an unsupported feature is rejected by name, and accepted when empty or disabled', () => {
  const cases: [object, string][] = [
    [tool({ defer_loading: true }), 'tools[0].defer_loading'],
    [{ tools: [{ type: 'svc:web_search' }] }, ''],
    [{ tools: [{ type: 'openrouter:nothing' }] }, 'tools[0].type'],
    [{ tools: [{ type: 'web_search_preview_2025_03_11' }] }, ''],
    [{ tool_choice: { type: 'svc:nothing' } }, 'tool_choice.type'],
    [{ stop_server_tools_when: [{ type: 'step_count_is', step_count: 1 }] }, ''],
    [{ stop_server_tools_when: [{ type: 'never' }] }, 'stop_server_tools_when[0].type'],
    [{ stop_server_tools_when: { type: 'step_count_is' } }, 'stop_server_tools_when'],
    [{ stop_server_tools_when: 5 }, 'stop_server_tools_when'],
    [{ stop_server_tools_when: [] }, 'stop_server_tools_when'],
    [{ models: ['a/b', '@preset/mine'] }, 'models[1]'],
    [{ transforms: ['middle-out'] }, ''],
    [{ transforms: [] }, ''],
    [{ route: 'sort' }, ''],
    [{ route: 'fallback' }, ''],
    [{ provider: { enforce_distillable_text: true } }, 'provider.enforce_distillable_text'],
    [{ provider: { zdr: true, sort: 'price' } }, ''],
    [{ provider: { zdr: false, data_collection: 'allow', order: ['x'] } }, ''],
    [{ messages: [{ role: 'system', content: '', configuration_update: { reasoning: { effort: 'low' } } }] }, ''],
    [
      { messages: [{ role: 'user', content: 'x', configuration_update: { reasoning: { effort: 'low' } } }] },
      'messages[0].configuration_update',
    ],
  ];
  for (const [more, path] of cases) assert.equal(refused(more), path, JSON.stringify(more));
});

test('a call without a name is rejected with its path', () => {
  for (const kind of ['function', 'custom']) {
    const call = { id: 'c', type: kind, [kind]: { name: '', arguments: '{}', input: '' } };
    const messages = [{ role: 'assistant', tool_calls: [call] }];
    assert.equal(refused({ messages }), `messages[0].tool_calls[0].${kind}.name`);
  }
});

test('the name of an inherited object member is an unknown kind of part', () => {
  for (const type of ['constructor', 'toString']) {
    assert.equal(refused({ messages: [{ role: 'user', content: [{ type }] }] }), '', type);
  }
});

test('null and unknown fields are accepted', () => {
  const nulls = Object.fromEntries(
    [
      'temperature',
      'stop',
      'tools',
      'tool_choice',
      'reasoning',
      'reasoning_effort',
      'stream_options',
      'provider',
      'user',
    ].map((key) => [key, null]),
  );
  assert.equal(refused({ ...nulls, x_vendor: { deep: [1] } }), '');
});

test('the facts of a request are read', () => {
  const asked = chat.facts({
    model: 'a/b',
    models: ['c/d', 'a/b', 'c/d', 'e/f'],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'https://x/y.png' } },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
        ],
      },
    ],
    provider: { only: ['acme'], sort: null },
    stream: true,
    stream_options: { include_usage: false },
    max_completion_tokens: 7,
    n: 2,
    user: 'alice',
    session_id: 's',
    metadata: { k: 'v' },
  });
  assert.deepEqual(asked, {
    model: 'a/b',
    fallbackModels: ['c/d', 'e/f'],
    fallbackOnRefusal: false,
    provider: { only: ['acme'], sort: null },
    stream: true,
    includeUsage: false,
    maxOutputTokens: 7,
    choices: 2,
    user: 'alice',
    sessionId: 's',
    metadata: { k: 'v' },
    media: { images: 2, documents: 0 },
    needs: { inputs: ['image'], outputs: [], features: [], parameters: [] },
  });
  assert.deepEqual(chat.facts({ models: ['c/d', 'e/f'], messages: [] }).model, 'c/d');
});

/** The upstream body of a relayed request. */
function relayed(body: object, dialect: ChatDialect = {}, more: Partial<EncodeTarget> = {}): Record<string, unknown> {
  const document = readDocument(Buffer.from(JSON.stringify({ model: 'a/b', messages: HELLO, ...body })));
  const target: EncodeTarget = {
    model: 'up',
    stream: false,
    maxOutputTokens: null,
    origin: 'unknown',
    user: 'hash',
    dialect: { chat: dialect },
    ...more,
  };
  return JSON.parse(applyEdits(document, chat.relay.edits(document, target)).toString());
}

const PLAIN = { model: 'up', messages: HELLO, user: 'hash' };

test('a relayed request loses gateway members and the raw user, and keeps everything else', () => {
  const ours = {
    models: ['x/y'],
    provider: { only: ['z'] },
    route: 'fallback',
    session_id: 's',
    trace: {},
    metadata: { a: 'b' },
    usage: { include: true },
    safety_identifier: 'alice',
    user: 'alice',
    max_tool_calls: 3,
  };
  assert.deepEqual(relayed({ ...ours, seed: 5, x_vendor: [1] }), { ...PLAIN, seed: 5, x_vendor: [1] });
  assert.deepEqual(relayed(ours, { userField: 'none' }), { model: 'up', messages: HELLO });
  assert.deepEqual(relayed(ours, { userField: 'safety_identifier' }), {
    model: 'up',
    messages: HELLO,
    safety_identifier: 'hash',
  });
});

test('usage is requested on streams, except from services that reject it (bug 7)', () => {
  const stream = { stream: true } as const;
  assert.deepEqual(relayed(stream, {}, stream)['stream_options'], { include_usage: true });
  assert.deepEqual(
    relayed({ ...stream, stream_options: { include_usage: false, x: 1 } }, {}, stream)['stream_options'],
    { include_usage: true, x: 1 },
  );
  assert.equal('stream_options' in relayed({ ...stream, stream_options: {} }, { streamUsage: false }, stream), false);
  assert.equal('stream_options' in relayed({ stream_options: {} }), false);
});

test('reasoning, caps, roles, tiers and marks are relayed in the service dialect', () => {
  assert.deepEqual(relayed({ reasoning: { effort: 'high', summary: 'auto' } }), { ...PLAIN, reasoning_effort: 'high' });
  assert.deepEqual(relayed({ reasoning: { max_tokens: 1_000 }, max_tokens: 2_000 }), {
    ...PLAIN,
    max_tokens: 2_000,
    reasoning_effort: 'medium',
  });
  assert.deepEqual(relayed({ reasoning: { effort: 'high' } }, { reasoning: 'object' }), {
    ...PLAIN,
    reasoning: { effort: 'high' },
  });
  assert.deepEqual(relayed({ reasoning_effort: 'high' }, { reasoning: 'none' }), PLAIN);
  assert.deepEqual(relayed({ max_completion_tokens: 9 }), { ...PLAIN, max_tokens: 9 });
  assert.deepEqual(relayed({ max_tokens: 9 }, { maxTokens: 'max_completion_tokens' }, { capOutputTokens: 5 }), {
    ...PLAIN,
    max_completion_tokens: 5,
  });
  assert.deepEqual(relayed({ service_tier: 'fast' }), { ...PLAIN, service_tier: 'priority' });
  assert.deepEqual(relayed({ logit_bias: {}, seed: 1 }, { refuses: ['logit_bias'] }), { ...PLAIN, seed: 1 });
  const cache_control = { type: 'ephemeral' };
  const marked = {
    messages: [{ role: 'developer', content: [{ type: 'text', text: 'x', cache_control }] }],
    ...tool({ cache_control }),
  };
  assert.deepEqual(relayed(marked), {
    ...PLAIN,
    messages: [{ role: 'system', content: [{ type: 'text', text: 'x' }] }],
    ...tool({}),
  });
  assert.deepEqual(relayed(marked, { cacheControl: true, developerRole: true }), { ...PLAIN, ...marked });
});

test('relayed requests follow a strict template, and one that fits is unchanged (bug 37)', () => {
  const roles = (list: readonly string[]) => list.map((role, index) => ({ role, content: String(index) }));
  const sent = (list: readonly string[]) => relayed({ messages: roles(list) }, { strictTemplate: true })['messages'];
  assert.deepEqual(sent(['system', 'developer', 'user', 'user']), [
    { role: 'system', content: '0\n\n1' },
    { role: 'user', content: '2\n\n3' },
  ]);
  assert.deepEqual(
    (sent(['user', 'assistant', 'system', 'assistant']) as { role: string }[]).map(({ role }) => role),
    ['user', 'assistant', 'user', 'assistant'],
  );
  assert.deepEqual(sent(['system', 'user', 'assistant']), roles(['system', 'user', 'assistant']));
});

test('returned thinking is sent upstream under the name the service knows', () => {
  const details = [{ type: 'reasoning.text', text: 'hm', index: 0 }];
  const back = { role: 'assistant', content: 'x', reasoning: 'hm', reasoning_details: details };
  const sent = (message: object, dialect: ChatDialect) =>
    (relayed({ messages: [message] }, dialect)['messages'] as unknown[])[0];
  assert.deepEqual(sent(back, {}), { role: 'assistant', content: 'x' });
  assert.deepEqual(sent(back, { reasoningReplay: 'reasoning_content' }), {
    role: 'assistant',
    content: 'x',
    reasoning_content: 'hm',
  });
  assert.deepEqual(sent(back, { reasoningReplay: 'reasoning' }), { role: 'assistant', content: 'x', reasoning: 'hm' });
  assert.deepEqual(sent(back, { reasoningDetails: true }), back);
  const vendors = { role: 'assistant', content: 'x', reasoning_content: 'own' };
  assert.deepEqual(sent(vendors, {}), vendors);
});

test('a translated request has the same content in the dialect, and reports what it drops', () => {
  const losses = new Losses();
  const body = chat.encode(
    {
      messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
      settings: { topK: 5, stop: ['END'] },
      reasoning: { budgetTokens: 16_000, exclude: true },
      extras: { messages: { container: 'c' } },
    },
    {
      model: 'up',
      stream: true,
      maxOutputTokens: 20_000,
      origin: 'unknown',
      user: 'hash',
      dialect: { chat: { refuses: ['top_k'] } },
    },
    losses,
  );
  assert.deepEqual(body, {
    ...PLAIN,
    reasoning_effort: 'high',
    stop: ['END'],
    stream: true,
    stream_options: { include_usage: true },
  });
  assert.deepEqual(losses.dropped.map(({ what }) => what).sort(), ['container', 'reasoning.exclude', 'top_k']);
});

test('an error uses the envelope of the format', () => {
  const error = new GatewayError('rate_limit_exceeded', 'too fast', {
    metadata: { provider_name: 'Acme' },
    availability: { code: 'capacity_exhausted' },
  });
  const about = { generationId: 'gen-1', userId: 'org_1', metadata: { key: 'svc_metadata', value: { attempt: 0 } } };
  assert.deepEqual(chat.encodeFailure(error, about), {
    error: {
      code: 429,
      message: 'too fast',
      metadata: { error_type: 'rate_limit_exceeded', provider_name: 'Acme' },
      availability: { code: 'capacity_exhausted', docs_url: '/docs' },
    },
    user_id: 'org_1',
    svc_metadata: { attempt: 0 },
  });
  assert.equal('svc_metadata' in (chat.encodeFailure(new GatewayError('server', 'x'), about) as object), false);
});
