/** The file parser through a whole gateway: PDFs become text in every format, annotations, and refusals. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { BODY_FORMATS, type BodyFormat } from '../../src/testing/clients/served-answer.ts';
import { docxOf } from '../../src/testing/documents/docx.ts';
import { pdfOf } from '../../src/testing/documents/pdf.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: { kind: 'chat', model: { input_modalities: ['text'] } },
      reads: { kind: 'chat', model: { input_modalities: ['text', 'file'] } },
    },
    yaml: { egress: { networks: ['127.0.0.0/8'], ports: ['1024-65535'] } },
  },
);

const ROUTES: Record<BodyFormat, string> = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
};
const PDF = pdfOf('The answer is forty-two', 'Second page');
const HASH = createHash('sha256').update(PDF).digest('hex');
const TEXT = /Text of the file report\.pdf:\n\n\[Page 1\]\nThe answer is forty-two\n\n\[Page 2\]\nSecond page/;

function partOf(served: BodyFormat, bytes: Buffer, url?: string): Json {
  const data = `data:application/pdf;base64,${bytes.toString('base64')}`;
  if (served === 'chat') return { type: 'file', file: { filename: 'report.pdf', file_data: url ?? data } };
  if (served === 'responses') {
    return { type: 'input_file', filename: 'report.pdf', ...(url ? { file_url: url } : { file_data: data }) };
  }
  const source = url
    ? { type: 'url', url }
    : { type: 'base64', media_type: 'application/pdf', data: bytes.toString('base64') };
  return { type: 'document', title: 'report.pdf', source };
}

function bodyOf(served: BodyFormat, model: string, part: Json, more: Json = {}): Json {
  const text = { type: served === 'responses' ? 'input_text' : 'text', text: 'What is it?' };
  const history = [{ role: 'user', content: [text, part] }];
  const asked = served === 'responses' ? { input: history } : { messages: history, max_tokens: 100 };
  return { model, ...asked, ...more };
}

async function ask(served: BodyFormat, body: Json, provider = 'chat') {
  gateway.upstream.script(provider, answerOf('chat', body.stream === true, { text: 'Forty-two.' }));
  const reply = await gateway.post(ROUTES[served], body, { 'x-svc-metadata': 'enabled' });
  const text = await reply.text();
  return { status: reply.status, text, sent: gateway.upstream.requests(provider).at(-1)?.json as Json };
}

const PLUGINS = [{ id: 'file-parser', pdf: { engine: 'cloudflare-ai' } }];

for (const served of BODY_FORMATS) {
  test(`${served}: a PDF, inline or by URL, reaches a model that reads no files as text`, async () => {
    gateway.upstream.script('site', { headers: { 'content-type': 'application/pdf' }, chunks: [PDF], repeat: true });
    const site = gateway.upstream.script('site', {
      headers: { 'content-type': 'application/pdf' },
      chunks: [PDF],
      repeat: true,
    });
    for (const url of [undefined, `${site}/report.pdf`]) {
      const { status, text, sent } = await ask(
        served,
        bodyOf(served, 'test/chat', partOf(served, PDF, url), { plugins: PLUGINS }),
      );
      assert.equal(status, 200, text);
      assert.match(textsOf(sent), TEXT);
      assert.equal(JSON.stringify(sent).includes('base64'), false);
      const { pipeline } = JSON.parse(text).svc_metadata;
      assert.deepEqual(
        [pipeline[0].name, pipeline[0].data.files],
        ['file-parser', [{ hash: HASH, pages: 2, annotated: false }]],
      );
    }
  });

  test(`${served}: what is no readable PDF is refused with its path, other documents stay`, async () => {
    const broken = await ask(
      served,
      bodyOf(served, 'test/chat', partOf(served, Buffer.from('%PDF-1.4 x')), { plugins: PLUGINS }),
    );
    assert.equal(broken.status, 400, broken.text);
    assert.match(broken.text, /(messages|input)\[0\]\.content\[1\] is a PDF that cannot be read/);
  });
}

test('Gemini: a PDF, inline, by URL, stored, or in a function response, reaches a model that reads no files as text', async () => {
  const site = gateway.upstream.script('site', {
    ...{ headers: { 'content-type': 'application/pdf' }, chunks: [PDF], repeat: true },
  });
  const form = new FormData();
  form.append('file', new Blob([PDF as Buffer<ArrayBuffer>]), 'report.pdf');
  const headers = { authorization: `Bearer ${INFERENCE_KEY}` };
  const uploaded = await fetch(`${gateway.api}/files`, { method: 'POST', headers, body: form });
  const { id }: Json = await uploaded.json();
  const about = { mimeType: 'application/pdf', displayName: 'report.pdf' };
  const parts: Json[] = [
    { inlineData: { ...about, data: PDF.toString('base64') } },
    { file_data: { mime_type: 'application/pdf', display_name: 'report.pdf', file_uri: `${site}/report.pdf` } },
    { fileData: { fileUri: id.replace('svc_file_', 'files/') } },
  ];
  const call = { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] };
  const response = { name: 'f', response: { output: 'x' }, parts: [parts[0], parts[2]] };
  const contents: Json[] = [
    ...parts.map((part) => [{ parts: [{ text: 'What is it?' }, part] }]),
    [{ parts: { text: 'f' } }, call, { parts: [{ functionResponse: response }] }],
  ];
  for (const each of contents) {
    gateway.upstream.script('chat', answerOf('chat', false, { text: 'Forty-two.' }));
    const reply = await gateway.post('/models/test/chat:generateContent', { contents: each, plugins: PLUGINS });
    assert.equal(reply.status, 200, await reply.clone().text());
    const sent = gateway.upstream.requests('chat').at(-1)!.json as Json;
    assert.match(JSON.stringify(sent).replaceAll('\\n', '\n'), TEXT);
    assert.equal(JSON.stringify(sent).includes('base64'), false);
  }
});

for (const served of ['chat', 'responses'] as const) {
  test(`${served}: a Word document reaches a model as text, and one that unpacks to too much is refused`, async () => {
    const type = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
    const wordOf = (bytes: Buffer, filename?: string) => {
      const data = `data:${type};base64,${bytes.toString('base64')}`;
      const file = { file_data: data, ...(filename !== undefined && { filename }) };
      return served === 'chat' ? { type: 'file', file } : { type: 'input_file', ...file };
    };
    const asked = (bytes: Buffer, filename?: string) =>
      ask(served, bodyOf(served, 'test/chat', wordOf(bytes, filename), { plugins: PLUGINS }));
    const { status, text, sent } = await asked(docxOf(['The answer', 'is forty-two']), 'report.docx');
    assert.equal(status, 200, text);
    assert.match(textsOf(sent), /Text of the file report\.docx:\n\nThe answer\n\nis forty-two/);
    const nameless = await asked(docxOf(['The answer']));
    assert.match(textsOf(nameless.sent), /Text of the file document\.docx:/);
    const bomb = await asked(docxOf(['text'], { 'word/media/a.png': Buffer.alloc(65 * 1024 * 1024) }));
    assert.equal(bomb.status, 400, bomb.text);
    assert.match(bomb.text, /(messages|input)\[0\]\.content\[1\] is a Word document with too much text/);
  });
}

function textsOf(sent: Json): string {
  return sent.messages
    .flatMap(({ content }: Json) => (typeof content === 'string' ? content : content.map(({ text }: Json) => text)))
    .join('\n');
}

test('without an engine a model that reads files gets the file, and any other its text; native keeps the file', async () => {
  const plugins = [{ id: 'file-parser' }];
  const native = await ask('chat', bodyOf('chat', 'test/reads', partOf('chat', PDF), { plugins }), 'reads');
  assert.equal(native.sent.messages[0].content[1].type, 'file');
  const text = await ask('chat', bodyOf('chat', 'test/chat', partOf('chat', PDF), { plugins }));
  assert.match(textsOf(text.sent), TEXT);
  const asked = [{ id: 'file-parser', pdf: { engine: 'native' } }];
  const refused = await ask('chat', bodyOf('chat', 'test/chat', partOf('chat', PDF), { plugins: asked }));
  assert.equal(refused.status, 404);
  assert.match(refused.text, /feature:file_input/);
  const ocr = [{ id: 'file-parser', pdf: { engine: 'mistral-ocr' } }];
  const none = await ask('chat', bodyOf('chat', 'test/chat', partOf('chat', PDF), { plugins: ocr }));
  assert.equal(none.status, 400);
  assert.match(none.text, /plugins\[0\]\.pdf\.engine/);
});

for (const stream of [false, true]) {
  test(`the answer brings the text as an annotation, which saves the next parse | ${stream ? 'streamed' : 'whole'}`, async () => {
    const first = await ask('chat', bodyOf('chat', 'test/chat', partOf('chat', PDF), { plugins: PLUGINS, stream }));
    const found = stream
      ? first.text
          .split('\n')
          .filter((line) => line.startsWith('data: {'))
          .flatMap((line) => JSON.parse(line.slice(6)).choices[0]?.delta.annotations ?? [])
      : JSON.parse(first.text).choices[0].message.annotations;
    const content = [
      { type: 'text', text: '[Page 1]\nThe answer is forty-two' },
      { type: 'text', text: '[Page 2]\nSecond page' },
    ];
    assert.deepEqual(found, [{ type: 'file', file: { hash: HASH, name: 'report.pdf', content } }]);
    const body = bodyOf('chat', 'test/chat', partOf('chat', PDF), { plugins: PLUGINS });
    const annotations = [
      { type: 'file', file: { hash: HASH, name: 'report.pdf', content: [{ type: 'text', text: 'as parsed before' }] } },
    ];
    body.messages.push({ role: 'assistant', content: 'Forty-two.', annotations }, { role: 'user', content: 'Sure?' });
    const { sent, text } = await ask('chat', body);
    assert.match(textsOf(sent), /as parsed before/);
    assert.equal('annotations' in sent.messages[1], false);
    assert.equal(JSON.parse(text).svc_metadata.pipeline[0].data.files[0].annotated, true);
  });
}

test('a stored file is read too', async () => {
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const stored = await openai.files.create({ file: await toFile(PDF, 'report.pdf'), purpose: 'user_data' });
  gateway.upstream.script('chat', answerOf('chat', false, { text: 'ok' }));
  const asked: Json = bodyOf('chat', 'test/chat', { type: 'file', file: { file_id: stored.id } }, { plugins: PLUGINS });
  const answer = await openai.chat.completions.create(asked);
  assert.equal(answer.choices[0]!.message.content, 'ok');
  assert.match(textsOf(gateway.upstream.requests('chat').at(-1)!.json), TEXT);
});
