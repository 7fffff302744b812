/** Copies of files at vendors: uploaded once, named in conversations, made again when lost, removed with their file. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, type TestContext, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { until } from '../../src/testing/clock/clock.ts';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import { controlOf } from '../workspaces/control.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

interface Seen {
  method: string;
  path: string;
  beta: string | undefined;
  protocol: unknown;
  key: string | undefined;
  body: Buffer;
}

/** Three vendors, each with a file store, that refuse conversations naming files which they do not have. */
const stored = new Set<string>();
let seen: Seen[] = [];
let made = 0;
let uploadStatus = 200;
/** It has no file any more when a conversation names one. */
let forgetful = false;
/** Uploads wait for it. */
let gate: Promise<void> = Promise.resolve();
const vendors = createServer(async (request, response) => {
  const { method = '', url = '', headers } = request;
  const path = url.replace(/\?.*$/, '');
  const body = await buffer(request);
  const key = headers.authorization ?? (headers['x-api-key'] as string) ?? (headers['x-goog-api-key'] as string);
  seen.push({
    method,
    path: url,
    protocol: headers['x-goog-upload-protocol'],
    beta: headers['anthropic-beta'] as string | undefined,
    key,
    body,
  });
  const send = (status: number, value: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  const play = (answer: { chunks?: readonly unknown[] }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(String(answer.chunks![0]));
  if (method === 'POST' && path.endsWith('/files')) {
    await gate;
    if (uploadStatus !== 200) return void send(uploadStatus, { error: { message: 'no uploads' } });
    made += 1;
    const id = path.startsWith('/anthropic')
      ? `file_011C${made}`
      : path.startsWith('/openai')
        ? `file-${made}`
        : `g${made}`;
    stored.add(id);
    const uri = `http://vendor.test/v1beta/files/${id}`;
    return void send(
      200,
      path.startsWith('/google') ? { file: { name: `files/${id}`, uri, state: 'PROCESSING' } } : { id },
    );
  }
  const id = /\/files\/([^/]+)$/.exec(path)?.[1];
  if (id !== undefined && !stored.has(id)) return void send(404, { error: { message: 'not here' } });
  if (method === 'GET')
    return void send(200, { name: `files/${id}`, uri: `http://vendor.test/v1beta/files/${id}`, state: 'ACTIVE' });
  if (method === 'DELETE') {
    stored.delete(id!);
    return void send(200, {});
  }
  if (forgetful) stored.clear();
  const named = [...body.toString().matchAll(/"(?:file_id|fileUri)":"(?:[^"]*\/)?([^"/]+)"/g)].map(
    (match) => match[1]!,
  );
  const missing = named.find((each) => !stored.has(each));
  if (path.startsWith('/anthropic')) {
    if (missing)
      return void send(404, {
        type: 'error',
        error: { type: 'not_found_error', message: `File not found: ${missing}` },
      });
    return void play(answerOf('messages', false, { text: 'ok' }));
  }
  if (path.startsWith('/google')) {
    const message = `You do not have permission to access the File ${missing} or it may not exist.`;
    if (missing) return void send(403, { error: { code: 403, message, status: 'PERMISSION_DENIED' } });
    const candidates = [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }];
    return void send(200, {
      candidates,
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    });
  }
  if (missing)
    return void send(400, {
      error: { message: `File with ID ${missing} not found.`, type: 'invalid_request_error', param: null, code: null },
    });
  play(path.endsWith('/responses') ? responsesAnswer(false, { text: 'ok' }) : answerOf('chat', false, { text: 'ok' }));
});
await new Promise<void>((listening) => vendors.listen(0, '127.0.0.1', listening));
const root = `http://127.0.0.1:${(vendors.address() as AddressInfo).port}`;
after(() => {
  vendors.closeAllConnections();
  vendors.close();
});

const providers = {
  openai: {
    kind: 'openai',
    base_url: `${root}/openai/v1`,
    model: { data_policy: { zdr: true, trains: false, publishes: false } },
  },
  anthropic: { kind: 'anthropic', base_url: `${root}/anthropic/v1` },
  google: { kind: 'google', base_url: `${root}/google/v1beta` },
  mistral: { kind: 'mistral', base_url: `${root}/mistral/v1` },
};
const options = { providers, yaml: { limits: { fetched_medium_bytes: 600_000, fetched_media_bytes: 1_200_000 } } };
const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) }, options);
const control = controlOf(gateway);

/** A test that begins with well-behaved vendors. */
function check(name: string, run: (t: TestContext) => Promise<void>): void {
  test(name, async (t) => {
    seen = [];
    uploadStatus = 200;
    forgetful = false;
    gate = Promise.resolve();
    await run(t);
  });
}

const uploads = () => seen.filter(({ method, path }) => method === 'POST' && /\/files(\?|$)/.test(path));
const conversations = () => seen.filter(({ path }) => /completions|responses|messages|generateContent/.test(path));
const bodies = (): Json[] => conversations().map(({ body }) => JSON.parse(body.toString()));

let fill = 0;
/** A PDF or a PNG of so many bytes, with content of its own. */
function contentOf(type: 'pdf' | 'png', bytes: number): Buffer {
  const head =
    type === 'pdf'
      ? Buffer.from('%PDF-1.4\n')
      : Buffer.from(
          'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
          'base64',
        );
  return Buffer.concat([head, Buffer.alloc(bytes - head.length, `content ${++fill} `)]);
}

async function uploaded(type: 'pdf' | 'png' = 'pdf', bytes = 300_000, key = INFERENCE_KEY, of: Gateway = gateway) {
  const content = contentOf(type, bytes);
  const form = new FormData();
  form.append('file', new Blob([content as Buffer<ArrayBuffer>]), `my report.${type}`);
  const response = await fetch(`${of.api}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: form,
  });
  const { id }: Json = await response.json();
  return { id: id as string, content };
}

const chatBody = (model: string, ...ids: string[]) => ({
  model: `test/${model}`,
  messages: [{ role: 'user', content: ids.map((file_id) => ({ type: 'file', file: { file_id } })) }],
});
const ask = (model: string, ...ids: string[]) => gateway.post('/chat/completions', chatBody(model, ...ids));
async function asked(model: string, ...ids: string[]): Promise<void> {
  const response = await ask(model, ...ids);
  assert.equal(response.status, 200, await response.text());
}

check('OpenAI gets a PDF once, and every later conversation names it, in both of its formats', async () => {
  const { id, content } = await uploaded();
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const messages = chatBody('openai', id).messages as OpenAI.ChatCompletionMessageParam[];
  await openai.chat.completions.create({ model: 'test/openai', messages });
  await openai.chat.completions.create({ model: 'test/openai', messages });
  await openai.responses.create({
    model: 'test/openai',
    input: [{ role: 'user', content: [{ type: 'input_file', file_id: id }] }],
  });
  const [upload, ...others] = uploads();
  assert.equal(others.length, 0);
  assert.ok(upload!.body.includes(content));
  assert.match(
    upload!.body.toString('latin1'),
    /name="purpose"\r\n\r\nuser_data[\s\S]*name="expires_after\[seconds\]"\r\n\r\n2592000[\s\S]*filename="my report\.pdf"/,
  );
  const part = { type: 'file', file: { file_id: `file-${made}` } };
  const [first, second, third] = bodies();
  assert.deepEqual([first.messages[0].content, second.messages[0].content], [[part], [part]]);
  assert.deepEqual(third.input[0].content, [{ type: 'input_file', file_id: `file-${made}` }]);
});

check(
  'Anthropic gets documents and images once; the conversation carries the beta header next to those of the client',
  async () => {
    const [pdf, png] = [await uploaded('pdf'), await uploaded('png')];
    const anthropic = new Anthropic({
      baseURL: gateway.api.replace(/\/v1$/, ''),
      apiKey: INFERENCE_KEY,
      maxRetries: 0,
    });
    for (let n = 0; n < 2; n++) {
      await anthropic.beta.messages.create({
        model: 'test/anthropic',
        max_tokens: 10,
        betas: ['context-1m-2025-08-07'],
        messages: [
          {
            role: 'user',
            content: [
              { type: 'document', source: { type: 'file', file_id: pdf.id }, title: 'Mine' },
              { type: 'image', source: { type: 'file', file_id: png.id } },
            ],
          },
        ],
      });
    }
    assert.equal(uploads().length, 2);
    for (const { beta } of uploads()) assert.equal(beta, 'files-api-2025-04-14');
    const names = new Set(bodies().map((body) => JSON.stringify(body.messages[0].content)));
    assert.equal(names.size, 1);
    const [document, image] = JSON.parse([...names][0]!);
    assert.deepEqual(
      [document.type, document.title, document.source.type, image.type, image.source.type],
      ['document', 'Mine', 'file', 'image', 'file'],
    );
    for (const { beta } of conversations()) {
      assert.deepEqual(new Set(beta!.split(',')), new Set(['context-1m-2025-08-07', 'files-api-2025-04-14']));
    }
  },
);

check(
  'Gemini gets a file once, waits until it is processed, and gets it again before it expires after 48 hours',
  async (t) => {
    const of = await startGateway(t, options);
    const { id, content } = await uploaded('png', 300_000, INFERENCE_KEY, of);
    const post = async () => {
      const response = await of.post('/chat/completions', chatBody('google', id));
      assert.equal(response.status, 200, await response.text());
    };
    await post();
    await post();
    assert.equal(uploads().length, 1);
    assert.equal(uploads()[0]!.protocol, 'multipart');
    assert.match(uploads()[0]!.path, /^\/google\/upload\/v1beta\/files\?uploadType=multipart$/);
    assert.ok(uploads()[0]!.body.includes(content));
    for (const body of bodies()) {
      const fileUri = `http://vendor.test/v1beta/files/g${made}`;
      assert.deepEqual(body.contents[0].parts, [{ fileData: { mimeType: 'image/png', fileUri } }]);
    }
    of.clock.jump(48 * 3_600_000);
    await post();
    assert.equal(uploads().length, 2);
  },
);

check(
  'small files, images in chats of OpenAI, and files for vendors without a store are sent with the request',
  async () => {
    const [small, image, other] = [await uploaded('pdf', 2_000), await uploaded('png'), await uploaded()];
    await asked('openai', small.id);
    await asked('openai', image.id);
    await asked('mistral', other.id);
    assert.equal(uploads().length, 0);
    for (const [index, { content }] of [small, image, other].entries()) {
      assert.ok(conversations()[index]!.body.includes(content.toString('base64')));
    }
  },
);

check('a file too large for a request goes to a vendor with a store; one without is 413 with the path', async () => {
  const { id } = await uploaded('pdf', 700_000);
  await asked('openai', id);
  assert.equal(bodies()[0].messages[0].content[0].file.file_id, `file-${made}`);
  const response = await ask('mistral', id);
  const { error }: Json = await response.json();
  assert.equal(response.status, 413);
  assert.match(error.message, /^messages\[0\]\.content\[0\]\.file\.file_id is larger than 600000 bytes/);
});

check('requests at once upload a file once', async () => {
  const { id } = await uploaded();
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = promise;
  const pending = Array.from({ length: 8 }, () => ask('openai', id));
  await until(() => uploads().length === 1, 'the upload begins');
  resolve();
  for (const response of await Promise.all(pending)) assert.equal(response.status, 200);
  assert.equal(uploads().length, 1);
  assert.equal(conversations().length, 8);
});

check('while another process uploads a file, requests carry it; a file too large for that waits', async (t) => {
  const second = await startGateway(t, { ...options, target: gateway.target, dataDir: gateway.dataDir });
  const [small, large] = [await uploaded(), await uploaded('pdf', 700_000)];
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = promise;
  const first = [ask('openai', small.id), ask('openai', large.id)];
  await until(() => uploads().length === 2, 'the uploads begin');
  const elsewhere = await second.post('/chat/completions', chatBody('openai', small.id));
  assert.equal(elsewhere.status, 200);
  assert.ok(conversations()[0]!.body.includes(small.content.toString('base64')));
  const waiting = second.post('/chat/completions', chatBody('openai', large.id));
  resolve();
  for (const response of [...(await Promise.all(first)), await waiting]) assert.equal(response.status, 200);
  assert.equal(uploads().length, 2);
});

for (const vendor of ['openai', 'anthropic', 'google']) {
  check(`${vendor} lost a file: it is uploaded again, and sent with the request if it is lost once more`, async () => {
    const { id, content } = await uploaded();
    await asked(vendor, id);
    stored.clear();
    seen = [];
    await asked(vendor, id);
    assert.equal(uploads().length, 1);
    assert.equal(conversations().length, 2);
    forgetful = true;
    seen = [];
    await asked(vendor, id);
    forgetful = false;
    assert.equal(uploads().length, 1);
    assert.equal(conversations().length, 3);
    assert.ok(conversations().at(-1)!.body.includes(content.toString('base64')));
    // Nothing is in cooldown.
    await asked(vendor, (await uploaded('pdf', 2_000)).id);
  });
}

check('when uploads fail, files are sent with the request, and the next upload is tried a minute later', async (t) => {
  const of = await startGateway(t, options);
  const { id, content } = await uploaded('pdf', 300_000, INFERENCE_KEY, of);
  const large = await uploaded('pdf', 700_000, INFERENCE_KEY, of);
  uploadStatus = 500;
  for (let n = 0; n < 2; n++) {
    assert.equal((await of.post('/chat/completions', chatBody('anthropic', id))).status, 200);
  }
  assert.equal(uploads().length, 1);
  assert.ok(conversations()[0]!.body.includes(content.toString('base64')));
  assert.equal((await of.post('/chat/completions', chatBody('anthropic', large.id))).status, 413);
  uploadStatus = 200;
  of.clock.jump(61_000);
  assert.equal((await of.post('/chat/completions', chatBody('anthropic', large.id))).status, 200);
  assert.equal(uploads().length, 2);
});

check('BYOK credentials have copies of their own, and nothing is kept under zero data retention', async () => {
  const { id: workspace } = await control.made({ name: 'Own', slug: 'own-copies' });
  const { token } = await control.keyIn(workspace, 'own');
  const { id } = await uploaded('pdf', 300_000, token);
  const post = () => gateway.post('/chat/completions', chatBody('openai', id), { authorization: `Bearer ${token}` });
  assert.equal((await post()).status, 200);
  await control.call('POST', '/byok', { provider: 'openai', key: 'own-key-of-a-customer', workspace_id: workspace });
  assert.equal((await post()).status, 200);
  assert.equal((await post()).status, 200);
  assert.equal(uploads().length, 2);
  assert.notEqual(uploads()[0]!.key, uploads()[1]!.key);
  assert.deepEqual(
    conversations().map(({ key }) => key),
    [uploads()[0]!.key, uploads()[1]!.key, uploads()[1]!.key],
  );
  const other = await uploaded('pdf', 300_000, token);
  for (const provider of [{ data_collection: 'deny' }, { zdr: true }]) {
    const denied = await gateway.post(
      '/chat/completions',
      { ...chatBody('openai', other.id), provider },
      { authorization: `Bearer ${token}` },
    );
    assert.equal(denied.status, 200, await denied.clone().text());
    assert.ok(conversations().at(-1)!.body.includes(other.content.toString('base64')));
  }
  assert.equal(uploads().length, 2);
});

check('with its file, a copy goes at every vendor', async (t) => {
  const of = await startGateway(t, { ...options, jobs: 'now' });
  const { id } = await uploaded('pdf', 300_000, INFERENCE_KEY, of);
  stored.clear();
  for (const vendor of ['openai', 'anthropic', 'google'])
    assert.equal((await of.post('/chat/completions', chatBody(vendor, id))).status, 200);
  assert.equal(stored.size, 3);
  await fetch(`${of.api}/files/${id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${INFERENCE_KEY}` },
  });
  of.clock.jump(61_000);
  await until(() => stored.size === 0, 'the copies are removed');
  assert.equal((await of.post('/chat/completions', chatBody('openai', id))).status, 404);
});
