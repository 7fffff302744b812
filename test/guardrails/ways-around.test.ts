/**
 * Ways to carry a text past the filters of a key, tried on a whole gateway: in places that are no messages, in pieces, and
 * written so that a model reads it and a filter might not. Nothing of it may go out.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import type { Json } from '../workspaces/control.ts';
import { sentTo, startGuarded } from './guarded.ts';

const { gateway, guarded } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {}, messages: { kind: 'messages' } } },
);
gateway.upstream.script('chat', chatWhole('fine'));

const SSN = '078-05-1120';
const EMAIL = 'ann@example.org';
const CODE = 'PRJ-1234';
const HI = { role: 'user', content: 'hi' };
type Sent = readonly [string, Json];

const base64 = (text: string, encoding: BufferEncoding = 'utf8') => Buffer.from(text, encoding).toString('base64');
const user = (content: Json, more: Json = {}) => ({ role: 'user', content, ...more });
const text = (said: string, more: Json = {}) => ({ type: 'text', text: said, ...more });
const chat = (messages: Json[], more: Json = {}): Sent => [
  '/chat/completions',
  { model: 'test/chat', messages, ...more },
];
const said = (content: Json): Sent => chat([user(content)]);
const messages = (content: Json, more: Json = {}): Sent => [
  '/messages',
  { model: 'test/messages', max_tokens: 9, messages: [user(content)], ...more },
];
const responses = (input: Json, more: Json = {}): Sent => ['/responses', { model: 'test/chat', input, ...more }];
const call = (args: Json) => [
  HI,
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }],
  },
  { role: 'tool', tool_call_id: 'c', content: 'r' },
];
const used = (input: Json): Sent => [
  '/messages',
  {
    model: 'test/messages',
    max_tokens: 9,
    messages: [
      HI,
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input }] },
      user([{ type: 'tool_result', tool_use_id: 't', content: 'r' }]),
    ],
  },
];
const schema = (parameters: Json) =>
  chat([HI], { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', ...parameters } } }] });
const file = (file_data: string) => said([text('see'), { type: 'file', file: { filename: 'a.txt', file_data } }]);
const source = (one: Json) => messages([{ type: 'document', source: one }, text('see')]);
const escaped = (said: string) =>
  [...said].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
const tags = (said: string) => [...said].map((one) => String.fromCodePoint(0xe0000 + one.charCodeAt(0))).join('');

const IN_PLACES: Record<string, Sent> = {
  'an id of an input': used({ id: SSN }),
  'a signature in an input': used({ signature: CODE }),
  'data in an input': used({ data: [{ data: CODE }] }),
  'a short number in an input': used({ pin: 778899 }),
  'an id in metadata': chat([HI], { metadata: { id: SSN } }),
  'an id in an unknown member': chat([user('hi', { extra: { id: SSN } })]),
  'an unknown member of the body by its name': chat([HI], { [SSN]: 1 }),
  'the name of an argument': used({ [SSN]: 1 }),
  'a default': schema({ properties: { a: { type: 'string', default: SSN } } }),
  'an allowed value': schema({ properties: { a: { enum: ['x', SSN] } } }),
  'the name of a property': schema({ properties: { [SSN]: { type: 'string' } } }),
  'a title of a schema': schema({ title: CODE }),
  'a required property': schema({ required: [SSN] }),
  'a response format': chat([HI], {
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object', description: SSN } } },
  }),
  'the name of a chosen tool': chat([HI], {
    tools: [{ type: 'function', function: { name: CODE } }],
    tool_choice: { type: 'function', function: { name: CODE } },
  }),
  'the name of a file': said([text('see'), { type: 'file', file: { filename: SSN, file_id: 'x' } }]),
  'an address': said([text('see'), { type: 'image_url', image_url: { url: `https://example.com/${SSN}` } }]),
  'a logit bias': chat([HI], { logit_bias: { [SSN]: 1 } }),
  'what counts as a setting': chat([HI], { verbosity_note: { id: SSN } }),
  'a marked part': said([text(SSN, { cache_control: { type: 'ephemeral' } })]),
  'a title': messages([
    { type: 'document', title: SSN, source: { type: 'text', media_type: 'text/plain', data: 'x' } },
  ]),
  'a context': messages([
    { type: 'document', context: SSN, source: { type: 'text', media_type: 'text/plain', data: 'x' } },
  ]),
  'a document whose text looks encoded': source({ type: 'text', media_type: 'text/plain', data: CODE }),
  'blocks of a document': source({ type: 'content', content: [text(SSN)] }),
  'a search result': messages([{ type: 'search_result', source: SSN, title: 't', content: [text('x')] }]),
  thinking: chat([HI, { role: 'assistant', content: 'x', reasoning: SSN }, HI]),
  'details of thinking': chat([
    HI,
    { role: 'assistant', content: 'x', reasoning_details: [{ type: 'reasoning.text', text: SSN }] },
    HI,
  ]),
  'a custom call': responses([
    { type: 'custom_tool_call', call_id: 'c', name: 'f', input: SSN },
    { type: 'custom_tool_call_output', call_id: 'c', output: 'x' },
    { role: 'user', content: 'hi' },
  ]),
  'a call of responses': responses([
    { type: 'function_call', call_id: 'c', name: 'f', arguments: `{"a":"${escaped(SSN)}"}` },
    { type: 'function_call_output', call_id: 'c', output: 'x' },
  ]),
  'a summary of responses': responses([
    { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: SSN }] },
    { role: 'user', content: 'hi' },
  ]),
  'several prompts': ['/completions', { model: 'test/chat', prompt: ['x', SSN] }],
  'a suffix': ['/completions', { model: 'test/chat', prompt: 'x', suffix: SSN }],
  'a picture to change': [
    '/images',
    {
      model: 'test/chat',
      prompt: 'x',
      input_references: [{ type: 'image_url', image_url: { url: `https://a.b/${SSN}` } }],
    },
  ],
  'a structured document': [
    '/rerank',
    { model: 'test/chat', query: 'q', documents: [{ text: 'x', more: { id: SSN } }] },
  ],
  'parts of an embedding': [
    '/embeddings',
    {
      model: 'test/chat',
      input: [
        {
          content: [
            { type: 'text', text: '078-05-' },
            { type: 'text', text: '1120' },
          ],
        },
      ],
    },
  ],
};

const IN_PIECES: Record<string, Sent> = {
  parts: said([text('078-0'), text('5-1120')]),
  'parts with roles': said([text('078-0', { role: 'user' }), text('5-1120', { role: 'user' })]),
  'parts around an empty one': said([text('078-0'), text(''), text('5-1120')]),
  'parts around a mark': messages([text('078-0'), text('5-11', { cache_control: { type: 'ephemeral' } }), text('20')]),
  'blocks of the system': messages('hi', { system: [text('078-0'), text('5-1120')] }),
  'parts of a result': messages([{ type: 'tool_result', tool_use_id: 't', content: [text('078-0'), text('5-1120')] }]),
  'parts of an item': responses([
    {
      role: 'user',
      content: [
        { type: 'input_text', text: '078-0' },
        { type: 'input_text', text: '5-1120' },
      ],
    },
  ]),
  'parts of an output': responses([
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    {
      type: 'function_call_output',
      call_id: 'c',
      output: [
        { type: 'input_text', text: '078-0' },
        { type: 'input_text', text: '5-1120' },
      ],
    },
  ]),
};

const ENCODED: Record<string, Sent> = {
  'a text that begins as an address of data': said(`data:;base64,${SSN}`),
  'an address of data in a text': said(`data:text/plain;base64,${base64(SSN)}`),
  'an attachment': file(`data:text/plain;base64,${base64(`is ${SSN} mine`)}`),
  'an attachment without padding': file(`data:text/plain;base64,${base64(`is ${SSN}`).replace(/=+$/, '')}`),
  'an attachment with too much padding': file(`data:text/plain;base64,${base64(`is ${SSN}`)}==`),
  'an attachment in lines': file(`data:text/plain;base64,${base64(`is it ${SSN}`).replace(/(.{8})/g, '$1\n')}`),
  'an attachment in two pieces': file(`data:text/plain;base64,${base64('is it')}${base64(`${SSN}`)}`),
  'an attachment that is no UTF-8': file(`data:text/plain;base64,${base64(`caf\xe9 ${SSN}`, 'latin1')}`),
  'an attachment in UTF-16': file(`data:text/plain;base64,${base64(`\ufeff${SSN}`, 'utf16le')}`),
  'an attachment in UTF-16 without a mark': file(`data:text/plain;charset=utf-16;base64,${base64(SSN, 'utf16le')}`),
  'an attachment of an unknown kind': file(`data:application/octet-stream;base64,${base64(`\xff ${SSN}`, 'latin1')}`),
  'an attachment with a zero': file(`data:text/csv;base64,${base64(`a\0,${SSN}`)}`),
  'an attachment with escapes': file('data:text/plain,078%2D05%2D1120'),
  'an attachment with its kind in capitals': file(`DATA:text/plain;BASE64,${base64(`is ${SSN}`)}`),
  'a document that is no UTF-8': source({
    type: 'base64',
    media_type: 'text/plain',
    data: base64(`caf\xe9 ${SSN}`, 'latin1'),
  }),
  'escapes in arguments': chat(call(`{"a":"${escaped(EMAIL)}"}`)),
  'escapes in arguments that are cut off': chat(call(`{"a":"${escaped(EMAIL)}`)),
  'escapes in the first of two arguments of one name': chat(call(`{"a":"${escaped(EMAIL)}","a":"x"}`)),
  'escapes in JSON in JSON': chat(call(JSON.stringify({ a: `{"b":"${escaped(EMAIL)}"}` }))),
  'escapes in a result': chat([
    ...call('{}').slice(0, 2),
    { role: 'tool', tool_call_id: 'c', content: `{"a":"${escaped(SSN)}"}` },
  ]),
  'escapes in a text': said(`say ${escaped(CODE)}`),
  'long escapes in a text': said(`say \\u{50}\\u{52}\\u{4a}-1234`),
  entities: said('ann&#64;example&#x2e;org'),
  'named entities': said('ann&commat;example&period;org'),
  'entities of entities': said('ann&amp;#64;example.org'),
  'an address with percent signs': said('https://example.com/?to=ann%40example.org'),
  'percent signs twice': said('https://example.com/?to=ann%2540example.org'),
  'percent signs in another script': said('%ef%bc%90%ef%bc%97%ef%bc%98-05-1120'),
  'letters that nobody sees': said('0\u200b78-0\u20605-11\u00ad20'),
  'control characters': said('0\u000778-0\u00015-1\u007f1\u008220'),
  'marks of direction': said('078\u202e-05\u202c-\u20661120\u2069'),
  'other digits': said('٠٧٨-٠٥-١١٢٠'),
  'other letters': said('аnn@ехample.оrg'),
  'wide letters of a pattern': said('ＰＲＪ－１２３４'),
  'tag characters among others': said(`ann@exa${tags('mple')}.org`),
  'tag characters of a pattern': said(`P${tags('RJ')}-1234`),
};

async function assertNonePasses(key: Awaited<ReturnType<typeof guarded>>, table: Record<string, Sent>): Promise<void> {
  const ways: string[] = [];
  const seen = [sentTo(gateway, 'chat'), sentTo(gateway, 'messages')];
  for (const [way, [path, body]] of Object.entries(table)) {
    const answer = await key.post(path, body);
    const blocked = /guardrail of this key blocks/.test(JSON.stringify(answer.body));
    if (!blocked) ways.push(`${way}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 120)}`);
  }
  assert.deepEqual([ways, seen.flatMap((sent) => sent().map((body) => JSON.stringify(body)))], [[], []]);
}

const RULES = {
  content_filter_builtins: ['ssn', 'email'].map((slug) => ({ slug, action: 'block' })),
  content_filters: [
    { pattern: 'PRJ-[0-9]+', action: 'block' },
    { pattern: '778899', action: 'block' },
  ],
};

for (const [name, table] of Object.entries({ IN_PLACES, IN_PIECES, ENCODED })) {
  test(`nothing passes that is hidden ${name.toLowerCase().replace('_', ' ')}`, async () => {
    await assertNonePasses(await guarded(RULES), table);
  });
}

test('a redaction in an escape, a name or a file keeps the rest, and counts once', async () => {
  const key = await guarded({
    content_filters: [
      { pattern: 'PRJ-[0-9]+', action: 'redact', label: '[X]' },
      { pattern: 'é.bra', action: 'redact', label: '"' },
      { pattern: 'zulu', action: 'flag' },
    ],
  });
  const sent = sentTo(gateway, 'chat');
  const utf16 = `data:text/plain;base64,${base64('\ufeffis PRJ-12', 'utf16le')}`;
  const answer = await key.post(
    ...chat(
      [
        user([
          text('&#80;RJ-1&#50; and 5% of \\u0050RJ-3\\n, zulu \\u007aulu'),
          text(' PRJ-\u000745 é①bra'),
          { type: 'file', file: { filename: 'PRJ-6.txt', file_data: utf16 } },
        ]),
        ...call(`{"a":"${escaped('PRJ-7')}","n":9007199254740993}`).slice(1),
        ...call('{"b":"ézbra"}').slice(1),
      ],
      { 'PRJ-8': 71, plain: 1 },
    ),
  );
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const [body] = sent();
  const [first, second, { file }] = body.messages[0].content;
  assert.equal(first.text, '[X] and 5% of [X]\\n, zulu \\u007aulu');
  assert.equal(second.text, ' [X] "');
  assert.equal(file.filename, '[X].txt');
  assert.equal(Buffer.from(file.file_data.split(',')[1], 'base64').toString('utf16le'), '\ufeffis [X]');
  assert.equal(body.messages[1].tool_calls[0].function.arguments, '{"a":"[X]","n":9007199254740993}');
  assert.deepEqual(JSON.parse(body.messages[3].tool_calls[0].function.arguments), { redacted: '{"b":"""}' });
  assert.match(gateway.upstream.requests('chat').at(-1)!.body.toString(), /"\[X\]":71/);
  const flagged = await key.post(...said('zulu é ①'), { 'x-svc-metadata': 'enabled' });
  assert.equal(flagged.body.svc_metadata.pipeline[0].data.matches, 1);
});

test('token ids are refused where a filter blocks or replaces, as nothing can be found in them', async () => {
  const strict = await guarded({ content_filters: [{ pattern: 'x', action: 'redact' }] });
  const noting = await guarded({ content_filters: [{ pattern: 'x', action: 'flag' }] });
  for (const [path, member] of [
    ['/embeddings', 'input'],
    ['/completions', 'prompt'],
  ] as const) {
    for (const ids of [
      [1, 2],
      [[1, 2], [3]],
    ]) {
      const refused = await strict.post(path, { model: 'test/chat', [member]: ids });
      assert.equal(refused.status, 403, JSON.stringify(refused.body));
      assert.match(refused.body.error.message, /^(prompt|input): token ids cannot/);
      assert.notEqual((await noting.post(path, { model: 'test/chat', [member]: ids })).status, 403);
    }
  }
});
