/** File ids in conversations through a whole gateway: a file by its id is the same request as the file inlined. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic, { toFile as toAnthropicFile } from '@anthropic-ai/sdk';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI, { toFile } from 'openai';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { controlOf } from '../workspaces/control.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    yaml: {
      io_logging: { enabled: true },
      limits: { fetched_media: 3, fetched_medium_bytes: 4096, fetched_media_bytes: 6000 },
    },
    providers: {
      openai: { kind: 'openai' },
      responses: { kind: 'responses' },
      anthropic: { kind: 'anthropic' },
      google: { kind: 'google' },
      converse: { kind: 'converse' },
      mistral: { kind: 'mistral' },
      cohere: { kind: 'cohere' },
      blind: { kind: 'openai', model: { input_modalities: ['text'] } },
      sees: { kind: 'openai', model: { input_modalities: ['text', 'image'] } },
    },
  },
);
const { upstream } = gateway;
const control = controlOf(gateway);

const json = (value: unknown, status = 200): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(value)],
});
const gemini = json({
  candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
});
const converse = json({
  output: { message: { role: 'assistant', content: [{ text: 'ok' }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
});
const cohere = json({
  id: 'c',
  finish_reason: 'COMPLETE',
  message: { role: 'assistant', content: [{ type: 'text', text: 'ok' }] },
  usage: { tokens: { input_tokens: 1, output_tokens: 1 } },
});
const chatOk = answerOf('chat', false, { text: 'ok' });
for (const key of ['openai', 'mistral', 'blind', 'sees']) upstream.script(key, chatOk);
upstream.script('responses', responsesAnswer(false, { text: 'ok' }));
upstream.script('anthropic', answerOf('messages', false, { text: 'ok' }));
upstream.script('google', gemini);
upstream.script('converse', converse);
upstream.script('cohere', cohere);

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const PDF = Buffer.concat([Buffer.from('%PDF-1.4\n%\xe2\xe3\xcf\xd3\n', 'latin1'), Buffer.alloc(300, 'x')]);
const WAV = Buffer.concat([Buffer.from('RIFF$\0\0\0WAVEfmt ', 'latin1'), Buffer.alloc(60)]);
const NOTES = 'Grüße: 2^53+1 is 9007199254740993.\n';

interface Sample {
  name: string;
  type: string;
  content: Buffer;
}

const SAMPLES: Record<string, Sample> = {
  image: { name: 'a.png', type: 'image/png', content: PNG },
  document: { name: 'a.pdf', type: 'application/pdf', content: PDF },
  audio: { name: 'a.wav', type: 'audio/wav', content: WAV },
  text: { name: 'a.md', type: 'text/markdown', content: Buffer.from(NOTES) },
};

async function upload(content: Buffer | string, name: string, key = INFERENCE_KEY): Promise<string> {
  const form = new FormData();
  form.append('file', new Blob([content as Buffer<ArrayBuffer>]), name);
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${gateway.api}/files`, { method: 'POST', headers, body: form });
  const body: Json = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  assert.match(body.id, /^svc_file_[0-9a-f]{32}$/);
  return body.id;
}

const ids: Record<string, string> = {};
for (const [kind, { content, name }] of Object.entries(SAMPLES)) ids[kind] = await upload(content, `folder/${name}`);

type Served = 'chat' | 'messages' | 'responses' | 'gemini';

/** A part with a file: by its id, or as the client would inline it; undefined where the format has no such part. */
const PARTS: Record<Served, { byId(id: string, kind: string): Json; inline(kind: string, sample: Sample): Json }> = {
  chat: {
    byId: (file_id) => ({ type: 'file', file: { file_id } }),
    inline(kind, { name, type, content }) {
      const data = content.toString('base64');
      if (kind === 'image') return { type: 'image_url', image_url: { url: `data:${type};base64,${data}` } };
      if (kind === 'audio') return { type: 'input_audio', input_audio: { data, format: 'wav' } };
      if (kind === 'text') return { type: 'text', text: NOTES };
      return { type: 'file', file: { filename: name, file_data: `data:${type};base64,${data}` } };
    },
  },
  messages: {
    byId: (file_id, kind) => ({ type: kind === 'image' ? 'image' : 'document', source: { type: 'file', file_id } }),
    inline(kind, { name, type, content }) {
      const source = { type: 'base64', media_type: type, data: content.toString('base64') };
      if (kind === 'image') return { type: 'image', source };
      if (kind === 'audio') return undefined;
      if (kind === 'document') return { type: 'document', source, title: name };
      return { type: 'document', title: name, source: { type: 'text', media_type: 'text/plain', data: NOTES } };
    },
  },
  responses: {
    byId: (file_id, kind) => ({ type: kind === 'image' ? 'input_image' : 'input_file', file_id }),
    inline(kind, { name, type, content }) {
      const data = content.toString('base64');
      if (kind === 'image') return { type: 'input_image', image_url: `data:${type};base64,${data}` };
      if (kind === 'audio') return { type: 'input_audio', input_audio: { data, format: 'wav' } };
      if (kind === 'text') return { type: 'input_text', text: NOTES };
      return { type: 'input_file', filename: name, file_data: `data:${type};base64,${data}` };
    },
  },
  gemini: {
    byId: (id, kind) => ({
      fileData: { fileUri: `https://gateway.test/llm/v1beta/${nameOf(id)}`, mimeType: SAMPLES[kind]?.type ?? '' },
    }),
    inline(kind, { name, type, content }) {
      const data = content.toString('base64');
      return kind === 'text' ? { text: NOTES } : { inlineData: { mimeType: type, data, displayName: name } };
    },
  },
};

/** As Google's clients name a file. */
function nameOf(id: string): string {
  return id.replace('svc_file_', 'files/');
}

const ROUTES: Record<Exclude<Served, 'gemini'>, string> = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
};

function routeOf(served: Served, model: string): string {
  return served === 'gemini' ? `/models/test/${model}:generateContent` : ROUTES[served];
}

function bodyOf(served: Served, model: string, ...parts: Json[]): Json {
  if (served === 'gemini') return { contents: [{ role: 'user', parts: [{ text: 'What is this?' }, ...parts] }] };
  const text = { type: served === 'responses' ? 'input_text' : 'text', text: 'What is this?' };
  const content = [{ role: 'user', content: [text, ...parts] }];
  if (served === 'responses') return { model: `test/${model}`, input: content };
  return { model: `test/${model}`, messages: content, ...(served === 'messages' && { max_tokens: 10 }) };
}

/** Of the upstream's body, what says the conversation. */
function conversationOf(body: Json): Json {
  return [body.messages, body.input, body.contents, body.documents].find((each) => each !== undefined);
}

/** Scripts the answers of OpenAI, which speaks two formats. */
function openaiSpeaks(format: 'chat' | 'responses'): void {
  upstream.script('openai', format === 'chat' ? chatOk : responsesAnswer(false, { text: 'ok' }));
}

async function sent(served: Served, model: string, ...parts: Json[]) {
  openaiSpeaks(served === 'responses' ? 'responses' : 'chat');
  const before = upstream.requests(model).length;
  const response = await gateway.post(routeOf(served, model), bodyOf(served, model, ...parts));
  const answer: Json = await response.json();
  const [request] = upstream.requests(model).slice(before);
  return { status: response.status, answer, conversation: request && conversationOf(request.json) };
}

async function refused(served: Served, model: string, part: Json, status: number, problem: RegExp): Promise<void> {
  const { status: is, answer, conversation } = await sent(served, model, part);
  assert.equal(is, status, JSON.stringify(answer));
  assert.match(answer.error.message, problem);
  assert.equal(conversation, undefined);
}

for (const served of ['chat', 'messages', 'responses', 'gemini'] as const) {
  for (const model of ['openai', 'responses', 'anthropic', 'google', 'converse', 'mistral', 'cohere']) {
    for (const [kind, sample] of Object.entries(SAMPLES)) {
      const { byId, inline } = PARTS[served];
      const inlined = inline(kind, sample);
      if (inlined === undefined) continue;
      test(`${served} to ${model}: ${kind} by id is sent as if it were inline`, async () => {
        const got = await sent(served, model, byId(ids[kind]!, kind));
        const wanted = await sent(served, model, inlined);
        assert.equal(got.status, wanted.status, JSON.stringify([got.answer, wanted.answer]));
        // Google does not read it, so a file that is sent there by id has none.
        const nameless = (value: Json): Json =>
          value && JSON.parse(JSON.stringify(value, (key, inner) => (key === 'displayName' ? undefined : inner)));
        assert.deepEqual(nameless(got.conversation), nameless(wanted.conversation));
        if (got.status === 200) return;
        assert.equal(got.status, 400);
        assert.match(got.answer.error.message, /no endpoint can carry this request/);
      });
    }
  }
}

test('a file in contents goes by its name, its URI on any host, either spelling, and whatever its type is said to be', async () => {
  const name = nameOf(ids['image']!);
  const data = PNG.toString('base64');
  const spellings = [
    { fileData: { fileUri: name } },
    { fileData: { fileUri: `${gateway.url}/v1beta/${name}`, mimeType: 'application/pdf' } },
    { file_data: { file_uri: `http://other.test:8080/v1beta/${name.toUpperCase().replace('FILES', 'files')}` } },
    { fileData: { fileUri: `https://other.test/v1beta/files/${ids['image']}`, mimeType: 'video/mp4' } },
  ];
  for (const part of spellings) {
    const { status, conversation, answer } = await sent('gemini', 'anthropic', part);
    assert.equal(status, 200, JSON.stringify(answer));
    assert.deepEqual(conversation[0].content[1].source, { type: 'base64', media_type: 'image/png', data });
  }
  const alone = await gateway.post(routeOf('gemini', 'openai'), { contents: [{ parts: spellings[0] }] });
  assert.equal(alone.status, 200, await alone.clone().text());
  assert.match(JSON.stringify(upstream.requests('openai').at(-1)!.json), /data:image\/png/);
});

test('files in function responses of the Gemini format', async () => {
  const part = (kind: string) => PARTS.gemini.byId(ids[kind]!, kind);
  const contentsWith = (...parts: Json[]) => [
    { role: 'user', parts: [{ text: 'look' }] },
    { role: 'model', parts: [{ functionCall: { name: 'look', args: { fileData: part('image').fileData } } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'seen' }, parts } }] },
  ];
  const tools = [{ functionDeclarations: [{ name: 'look' }] }];
  const ask = (...parts: Json[]) =>
    gateway.post(routeOf('gemini', 'anthropic'), { contents: contentsWith(...parts), tools });
  const seen = await ask(part('image'));
  assert.equal(seen.status, 200, await seen.clone().text());
  const body: Json = upstream.requests('anthropic').at(-1)!.json;
  assert.equal(body.messages[2].content[0].content[1].source.data, PNG.toString('base64'));
  assert.deepEqual(body.messages[1].content[0].input, { fileData: part('image').fileData });
  const text = await ask(part('text'));
  assert.equal(text.status, 400);
  const { error }: Json = await text.json();
  assert.match(
    error.message,
    /^contents\[2\]\.parts\[0\]\.functionResponse\.parts\[0\]\.fileData\.fileUri must not be a text/,
  );
});

test('an audio file in the messages format reaches a model that hears', async () => {
  const { status, conversation, answer } = await sent(
    'messages',
    'google',
    PARTS.messages.byId(ids['audio']!, 'audio'),
  );
  assert.equal(status, 200, JSON.stringify(answer));
  assert.deepEqual(conversation[0].parts.at(-1), {
    inlineData: { mimeType: 'audio/wav', data: WAV.toString('base64') },
  });
});

test('an image in a document part is an image, and reaches models that take images but no files', async () => {
  const part = PARTS.chat.byId(ids['image']!, 'document');
  const { status, conversation } = await sent('chat', 'sees', part);
  assert.equal(status, 200);
  assert.equal(conversation[0].content[1].type, 'image_url');
  await refused(
    'chat',
    'sees',
    PARTS.chat.byId(ids['document']!, 'document'),
    404,
    /file_input|No endpoints|no endpoint/i,
  );
  await refused('chat', 'blind', part, 404, /image_input|no endpoint/i);
  const text = await sent('chat', 'blind', PARTS.chat.byId(ids['text']!, 'document'));
  assert.equal(text.status, 200);
  assert.deepEqual(text.conversation[0].content[1], { type: 'text', text: NOTES });
});

test('files inside tool results, and one file several times', async () => {
  const file = { type: 'image', source: { type: 'file', file_id: ids['image'] } };
  const response = await gateway.post('/messages', {
    model: 'test/anthropic',
    max_tokens: 10,
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'a' }, file] },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: { file_id: ids['image'] } }],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [file] }] },
    ],
  });
  assert.equal(response.status, 200, await response.clone().text());
  const body: Json = upstream.requests('anthropic').at(-1)!.json;
  assert.equal(JSON.stringify(body).split(PNG.toString('base64')).length, 3);
  assert.deepEqual(body.messages[1].content[0].input, { file_id: ids['image'] });
});

test('official SDKs upload a file and use it in a conversation', async () => {
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const pdf = await openai.files.create({ file: await toFile(PDF, 'b.pdf'), purpose: 'user_data' });
  const fileData = `data:application/pdf;base64,${PDF.toString('base64')}`;
  openaiSpeaks('chat');
  await openai.chat.completions.create({
    model: 'test/openai',
    messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: pdf.id } }] }],
  });
  const chat: Json = upstream.requests('openai').at(-1)!.json;
  assert.deepEqual(chat.messages[0].content, [{ type: 'file', file: { file_data: fileData, filename: 'b.pdf' } }]);
  await openai.responses.create({
    model: 'test/responses',
    input: [{ role: 'user', content: [{ type: 'input_file', file_id: pdf.id }] }],
  });
  const responses: Json = upstream.requests('responses').at(-1)!.json;
  assert.deepEqual(responses.input[0].content, [{ type: 'input_file', file_data: fileData, filename: 'b.pdf' }]);
  const anthropic = new Anthropic({ baseURL: gateway.api.replace(/\/v1$/, ''), apiKey: INFERENCE_KEY, maxRetries: 0 });
  const image = await anthropic.beta.files.upload({ file: await toAnthropicFile(PNG, 'b.png') });
  await anthropic.beta.messages.create({
    betas: ['files-api-2025-04-14'],
    model: 'test/anthropic',
    max_tokens: 10,
    messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: image.id } }] }],
  });
  const messages: Json = upstream.requests('anthropic').at(-1)!.json;
  assert.deepEqual(messages.messages[0].content[0].source, {
    type: 'base64',
    media_type: 'image/png',
    data: PNG.toString('base64'),
  });
});

test('the OpenRouter SDK uploads a file and uses it in a chat', async (t) => {
  const of = await startGateway(t, { providers: { chat: {} }, env: { GATEHOUSE_NAMESPACE: 'openrouter' } });
  of.upstream.script('chat', chatOk);
  const sdk = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: of.api }) as Json;
  const file = await sdk.files.upload({ requestBody: { file: new File([NOTES], 'b.txt', { type: 'text/plain' }) } });
  await sdk.chat.send({
    chatRequest: {
      model: 'test/chat',
      messages: [{ role: 'user', content: [{ type: 'file', file: { fileId: file.id } }] }],
    },
  });
  const body: Json = of.upstream.requests('chat').at(-1)!.json;
  assert.deepEqual(body.messages[0].content, [{ type: 'text', text: NOTES }]);
});

test('a file that is gone, another workspace has, or never was is 404 with its path, and nothing is sent', async () => {
  const gone = await upload(PDF, 'gone.pdf');
  const headers = { authorization: `Bearer ${INFERENCE_KEY}` };
  await fetch(`${gateway.api}/files/${gone}`, { method: 'DELETE', headers });
  const { id: workspace } = await control.made({ name: 'Other', slug: 'other-files' });
  const { token } = await control.keyIn(workspace, 'other');
  const foreign = await upload(PDF, 'foreign.pdf', token);
  const part = (served: Served, id: string) => PARTS[served].byId(id, 'document');
  for (const id of [gone, foreign, `svc_file_${'0'.repeat(32)}`, 'svc_file_x']) {
    await refused('chat', 'openai', part('chat', id), 404, /^messages\[0\]\.content\[1\]\.file\.file_id: /);
    await refused(
      'messages',
      'anthropic',
      part('messages', id),
      404,
      /^messages\[0\]\.content\[1\]\.source\.file_id: /,
    );
    await refused('responses', 'responses', part('responses', id), 404, /^input\[0\]\.content\[1\]\.file_id: /);
    if (id === 'svc_file_x') continue;
    const uri = 'contents[0].parts[1].fileData.fileUri';
    const { status, answer } = await sent('gemini', 'google', part('gemini', id));
    assert.equal(status, 404);
    assert.equal(answer.error.status, 'NOT_FOUND');
    assert.equal(answer.error.message, `${uri}: the workspace has no file with the id ${id}`);
    assert.equal(answer.error.details[1].fieldViolations[0].field, uri);
  }
  const counted = await gateway.post('/messages/count_tokens', bodyOf('messages', 'anthropic', part('messages', gone)));
  assert.equal(counted.status, 404);
});

test('ids of vendors reach their vendor untouched, and others refuse them', async () => {
  const chat = { type: 'file', file: { file_id: 'file-abc123' } };
  assert.deepEqual((await sent('chat', 'openai', chat)).conversation[0].content[1], chat);
  const messages = { type: 'document', source: { type: 'file', file_id: 'file_011CNha8iCJcU1wXNR6q4V8w' } };
  assert.deepEqual((await sent('messages', 'anthropic', messages)).conversation[0].content[1], messages);
  await refused('chat', 'anthropic', chat, 400, /stored at another provider/);
  await refused('messages', 'openai', messages, 400, /file/);
  const fileUri = `https://generativelanguage.googleapis.com/v1beta/files/${'0'.repeat(32)}`;
  const atGoogle = { fileData: { fileUri, mimeType: 'application/pdf' } };
  assert.deepEqual((await sent('gemini', 'google', atGoogle)).conversation[0].parts[1], atGoogle);
  await refused('gemini', 'google', { fileData: { fileUri: 'files/abc' } }, 400, /fileUri must be an http/);
});

test('what a part cannot hold, and what is too large, is refused with its path', async () => {
  await refused(
    'responses',
    'responses',
    { type: 'input_image', file_id: ids['document'] },
    400,
    /input\[0\]\.content\[1\]\.file_id must be an image, not application\/pdf/,
  );
  await refused(
    'messages',
    'anthropic',
    { type: 'container_upload', file_id: ids['document'] },
    400,
    /messages\[0\]\.content\[1\]\.file_id must be a file at the provider/,
  );
  const large = await upload(Buffer.concat([PDF, Buffer.alloc(5000, 'x')]), 'large.pdf');
  await refused(
    'chat',
    'mistral',
    PARTS.chat.byId(large, 'document'),
    413,
    /^messages\[0\]\.content\[1\]\.file\.file_id is larger than 4096 bytes/,
  );
  const parts = [];
  for (let n = 0; n < 3; n++)
    parts.push(PARTS.chat.byId(await upload(Buffer.concat([PDF, Buffer.alloc(2500, 'x')]), `${n}.pdf`), 'document'));
  const { status, answer } = await sent('chat', 'mistral', ...parts);
  assert.equal(status, 413, JSON.stringify(answer));
  assert.match(answer.error.message, /over the limit of 6000 bytes/);
  const many = await sent('chat', 'mistral', ...Object.values(ids).map((id) => PARTS.chat.byId(id, 'document')));
  assert.equal(many.status, 400);
  assert.match(many.answer.error.message, /more than 3 files/);
  const word = await upload(Buffer.concat([Buffer.alloc(9 * 1024 * 1024, 'word ')]), 'long.txt');
  await refused(
    'chat',
    'openai',
    PARTS.chat.byId(word, 'document'),
    413,
    /messages\[0\]\.content\[1\]\.file\.file_id brings the text files of this request over the limit/,
  );
});

test('guardrails see the text of a file, and redact it; the log keeps the id of a medium', async () => {
  const { body } = await control.call('POST', '/guardrails', {
    name: 'Secrets',
    content_filters: [{ pattern: 'launch code \\d+', action: 'redact' }],
  });
  const guardrail = body.data;
  const { body: made } = await control.call('POST', '/keys', { name: 'guarded' });
  await control.call('POST', `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [made.data.hash] });
  const file = await upload('the launch code 4711 is secret', 'secret.txt');
  const response = await gateway.post(
    '/chat/completions',
    bodyOf('chat', 'openai', PARTS.chat.byId(file, 'document'), PARTS.chat.byId(ids['image']!, 'document')),
    { authorization: `Bearer ${made.key}` },
  );
  assert.equal(response.status, 200, await response.clone().text());
  const content = (upstream.requests('openai').at(-1)!.json as Json).messages[0].content;
  assert.match(content[1].text, /^the \[.*\] is secret$/);
  assert.equal(content[2].type, 'image_url');
  const id = response.headers.get('x-generation-id');
  const logged: Json = await until(async () => {
    const { status, body } = await control.call('GET', `/generation/content?id=${id}`);
    return status === 200 && body.data;
  }, 'the content is logged');
  const [, text, image] = logged.input.messages[0].content;
  assert.equal(text.text, content[1].text);
  assert.deepEqual(image, PARTS.chat.byId(ids['image']!, 'document'));
});

test('the text of a file counts in the bound of its request', async () => {
  const { body } = await control.call('POST', '/keys', { name: 'poor', limit: 0.01 });
  const headers = { authorization: `Bearer ${body.key}` };
  // 20,000 bytes of a model without a public tokenizer are up to 20,000 tokens, at 3 millionths of a dollar.
  const [short, long] = [await upload('short', 'short.txt'), await upload('long '.repeat(4000), 'long.txt')];
  const ask = (id: string) =>
    gateway.post(
      '/chat/completions',
      { ...bodyOf('chat', 'mistral', PARTS.chat.byId(id, 'document')), max_tokens: 10 },
      headers,
    );
  assert.equal((await ask(short)).status, 200);
  assert.equal((await ask(long)).status, 402);
});
