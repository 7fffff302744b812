/** `/files` through a whole gateway, with official SDKs as clients. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { after, test } from 'node:test';
import Anthropic, { toFile as toAnthropicFile } from '@anthropic-ai/sdk';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI, { toFile } from 'openai';
import { RawClient } from '../../src/testing/clients/raw-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf } from '../workspaces/control.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {} } },
);
const control = controlOf(gateway);

const PDF = Buffer.concat([Buffer.from('%PDF-1.4\n%\xe2\xe3\xcf\xd3\n', 'latin1'), Buffer.alloc(3000, 'x')]);
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

interface Sent {
  status: number;
  body: Json;
}

async function send(
  method: string,
  route: string,
  {
    key = INFERENCE_KEY,
    headers = {},
    body,
    of = gateway,
  }: {
    key?: string;
    headers?: Record<string, string>;
    body?: FormData | string | Buffer<ArrayBuffer>;
    of?: Gateway;
  } = {},
): Promise<Sent> {
  const response = await fetch(of.api + route, {
    method,
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...(body && { body }),
  });
  return { status: response.status, body: await response.json() };
}

function form(content: Uint8Array | string, filename: string, fields: Record<string, string> = {}): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  data.append('file', new Blob([content as Uint8Array<ArrayBuffer>]), filename);
  return data;
}

const upload = (content: Uint8Array | string, filename: string, more: Parameters<typeof send>[2] = {}) =>
  send('POST', '/files', { ...more, body: form(content, filename) });

/** A form with a file of so many bytes, which never are in memory at once. */
async function sendLarge(of: Gateway, bytes: number, fields: readonly ('purpose' | 'file')[], purpose = '') {
  const piece = Buffer.alloc(2 ** 20, 'x');
  function* written() {
    for (const name of fields) {
      yield `--b\r\ncontent-disposition: form-data; name="${name}"${name === 'file' ? '; filename="big.jsonl"' : ''}\r\n\r\n`;
      if (name === 'purpose') yield purpose;
      else
        for (let left = bytes; left > 0; left -= piece.length)
          yield left < piece.length ? piece.subarray(0, left) : piece;
      yield '\r\n';
    }
    yield '--b--\r\n';
  }
  const headers = { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'multipart/form-data; boundary=b' };
  const request = http.request(`${of.api}/files`, { method: 'POST', headers });
  const answered = once(request, 'response');
  // A form that is refused is not read to its end.
  void pipeline(Readable.from(written()), request).catch(() => {});
  const [response] = (await answered) as [http.IncomingMessage];
  return { status: response.statusCode!, body: (await json(response)) as Json };
}

async function refused(pending: Promise<Sent>, status: number, message: RegExp): Promise<void> {
  const { status: is, body } = await pending;
  assert.equal(is, status, JSON.stringify(body));
  assert.match(body.error.message, message);
}

test('a file is uploaded, shown, listed and deleted, and its content goes from the disk', async () => {
  const { status, body: file } = await upload(PDF, 'reports/2026 – März.pdf');
  assert.equal(status, 200);
  assert.deepEqual(
    [file.filename, file.mime_type, file.size_bytes, file.type, file.downloadable, file._shape],
    ['reports/2026 – März.pdf', 'application/pdf', PDF.length, 'file', false, 'svc'],
  );
  assert.deepEqual((await send('GET', `/files/${file.id}`)).body, file);
  const list = (await send('GET', '/files')).body;
  assert.deepEqual([list.data.at(-1), list.last_id, list.has_more, list.cursor], [file, file.id, false, null]);
  await refused(send('GET', `/files/${file.id}/content`), 400, /cannot be downloaded/);
  const blobs = path.join(gateway.dataDir, 'blobs');
  const before = readdirSync(blobs, { recursive: true, withFileTypes: true }).filter((each) => each.isFile()).length;
  assert.deepEqual((await send('DELETE', `/files/${file.id}`)).body, {
    _shape: 'svc',
    id: file.id,
    type: 'file_deleted',
  });
  await refused(send('GET', `/files/${file.id}`), 404, /no file with this id/);
  await refused(send('DELETE', `/files/${file.id}`), 404, /no file with this id/);
  assert.equal(before, 1);
  const entries = (await send('GET', '/audit?limit=5', { key: MANAGEMENT_KEY })).body.data.map(
    (entry: Json) => `${entry.action} ${entry.resource_id}`,
  );
  assert.ok(entries.includes(`file.created ${file.id}`) && entries.includes(`file.deleted ${file.id}`), entries.join());
});

test('the openai SDK uploads, lists page by page, shows and deletes files', async () => {
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const made = [];
  for (const name of ['a.jsonl', 'b.jsonl', 'c.jsonl']) {
    made.push(await openai.files.create({ file: await toFile(Buffer.from('{"a":1}\n'), name), purpose: 'batch' }));
  }
  assert.deepEqual(
    made.map(({ object, bytes, purpose, status, filename }) => [object, bytes, purpose, status, filename]),
    ['a', 'b', 'c'].map((name) => ['file', 8, 'batch', 'processed', `${name}.jsonl`]),
  );
  assert.ok(Math.abs(made[0]!.created_at - gateway.clock.now() / 1000) < 60);
  const listed = [];
  for await (const file of openai.files.list({ limit: 2, order: 'asc', purpose: 'batch' })) listed.push(file.id);
  assert.deepEqual(
    listed,
    made.map(({ id }) => id),
  );
  assert.equal((await openai.files.retrieve(made[1]!.id)).filename, 'b.jsonl');
  assert.deepEqual(
    { ...(await openai.files.delete(made[1]!.id)) },
    { _shape: 'openai', id: made[1]!.id, object: 'file', deleted: true },
  );
  await assert.rejects(openai.files.retrieve(made[1]!.id), { status: 404 });
});

test('the Anthropic SDK uploads, lists page by page, shows and deletes files', async () => {
  const { id: workspace } = await control.made({ name: 'Anthropic', slug: 'anthropic-files' });
  const { token } = await control.keyIn(workspace, 'anthropic');
  const anthropic = new Anthropic({ baseURL: `${gateway.url}/api`, apiKey: token, maxRetries: 0 });
  const made = [];
  for (const name of ['a.png', 'b.png', 'c.png'])
    made.push(await anthropic.beta.files.upload({ file: await toAnthropicFile(PNG, name) }));
  assert.deepEqual(
    made.map(({ type, mime_type, size_bytes, filename, downloadable }) => [
      type,
      mime_type,
      size_bytes,
      filename,
      downloadable,
    ]),
    ['a', 'b', 'c'].map((name) => ['file', 'image/png', PNG.length, `${name}.png`, false]),
  );
  const listed = [];
  for await (const file of anthropic.beta.files.list({ limit: 2 })) listed.push(file.id);
  assert.deepEqual(
    listed,
    made.map(({ id }) => id),
  );
  const some = await anthropic.beta.files.list({ ids: [made[2]!.id, 'file_none', made[0]!.id] });
  assert.deepEqual(
    some.data.map(({ id }) => id),
    [made[0]!.id, made[2]!.id],
  );
  await assert.rejects(anthropic.beta.files.list({ ids: ['x'], limit: 1 }), /ids cannot be combined with limit/);
  await assert.rejects(anthropic.beta.files.list({ scope_id: 'x' }), /scope_id is not a parameter/);
  assert.equal((await anthropic.beta.files.retrieveMetadata(made[0]!.id)).filename, 'a.png');
  assert.equal((await anthropic.beta.files.delete(made[0]!.id)).type, 'file_deleted');
});

test('the OpenRouter SDK uploads, lists, shows and deletes files', async (t) => {
  const of = await startGateway(t, { providers: { chat: {} }, env: { GATEHOUSE_NAMESPACE: 'openrouter' } });
  const sdk = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: of.api }) as Json;
  const file = await sdk.files.upload({
    requestBody: { file: new File([PDF], 'a.pdf') },
    RequestBody: { file: new File([PDF], 'a.pdf') },
  });
  assert.deepEqual([file.shape, file.mimeType, file.sizeBytes], ['openrouter', 'application/pdf', PDF.length]);
  const list = await sdk.files.list({});
  const first = (list.result ?? list).data[0];
  assert.equal(first.id, file.id);
  assert.equal((await sdk.files.retrieve({ fileId: file.id })).filename, 'a.pdf');
  assert.equal((await sdk.files.delete({ fileId: file.id })).id, file.id);
});

test('files are known by their content, and what no client can use is refused', async () => {
  const kinds: [Uint8Array | string, string, string][] = [
    [PNG, 'wrong.txt', 'image/png'],
    ['{"a":1}', 'a.json', 'application/json'],
    ['{"a":1}\n{"a":2}\n', 'a.jsonl', 'application/x-ndjson'],
    ['a,b\n1,2\n', 'a.csv', 'text/csv'],
    ['# Grüße, 世界\n'.repeat(20_000), 'a.md', 'text/markdown'],
    ['plain', 'README', 'text/plain'],
    [Buffer.from('RIFF\x24\x00\x00\x00WAVEfmt ', 'latin1'), 'a.wav', 'audio/wav'],
    [Buffer.from(`OggS\0\x02${'\0'.repeat(20)}\x01\x13OpusHead${'\0'.repeat(11)}`, 'latin1'), 'a.opus', 'audio/ogg'],
    ['%PDF-1.4\n', 'a.pdf', 'application/pdf'],
  ];
  for (const [content, name, type] of kinds) assert.equal((await upload(content, name)).body.mime_type, type, name);
  const badEnd = Buffer.concat([Buffer.alloc(200_000, 'x'), Buffer.from([0xe4, 0xb8])]);
  for (const content of [
    Buffer.from([0xff, 0xfe, 0x00, 0x80]),
    badEnd,
    Buffer.from('MZ\x90\x00\x03', 'latin1'),
    Buffer.from('a\0b'),
  ]) {
    await refused(upload(content, 'a.txt'), 400, /^file must be a PDF/);
  }
  await refused(upload('', 'empty.txt'), 400, /file is empty/);
});

test('a text that begins like another kind of file is a text', async () => {
  for (const content of [
    '<?xml version="1.0"?><a/>',
    '{\\rtf1 as written}',
    'BMW and others',
    'MAC addresses',
    'solid ground',
    'MZ',
    'GIF is a format',
    'ID3 tags of songs',
    'fLaC is lossless',
    `BM ${'世界'.repeat(50_000)}`,
  ]) {
    const { status, body } = await upload(content, 'a.md');
    assert.deepEqual([status, body.mime_type], [200, 'text/markdown'], content.slice(0, 20));
  }
});

// Bug 89: a name is a label only.
test('names with anything that a file system reads otherwise are refused', async () => {
  for (const name of [
    '../a.txt',
    'a/../b.txt',
    '/a.txt',
    'a//b.txt',
    'a/',
    './a.txt',
    'a:b.txt',
    'a|b',
    'x'.repeat(256),
  ]) {
    const data = new FormData();
    data.append('file', new Blob(['x']), name);
    await refused(send('POST', '/files', { body: data }), 400, /the filename of file/);
  }
  // Raw: a form of the platform would escape them.
  for (const name of ['a\\"b.txt', 'a\\\\b.txt', 'a\tb.txt', '../../etc/x.txt']) {
    const body = `--b\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\nx\r\n--b--\r\n`;
    await refused(send('POST', '/files', { headers: FORM, body }), 400, /the filename of file/);
  }
  for (const name of [Buffer.from([0x61, 0xe9, 0x2e]), Buffer.from([0xff, 0xfe]), Buffer.from([0xe4, 0xb8])]) {
    const [head, end] = ['--b\r\nContent-Disposition: form-data; name="file"; filename="', '"\r\n\r\nx\r\n--b--\r\n'];
    const body = Buffer.concat([Buffer.from(head), name, Buffer.from(end)]);
    await refused(send('POST', '/files', { headers: FORM, body }), 400, /the filename of file must be UTF-8/);
  }
  assert.equal((await upload('x', 'x'.repeat(255))).status, 200);
  assert.equal((await upload('x', '😀'.repeat(255))).status, 200);
});

test('forms without exactly one file, broken forms and other media types are refused', async () => {
  const none = new FormData();
  none.append('purpose', 'batch');
  await refused(send('POST', '/files', { body: none }), 400, /file is missing/);
  const two = form('x', 'a.txt');
  two.append('file', new Blob(['y']), 'b.txt');
  await refused(send('POST', '/files', { body: two }), 400, /one file/);
  const other = new FormData();
  other.append('document', new Blob(['x']), 'a.txt');
  await refused(send('POST', '/files', { body: other }), 400, /unknown file document/);
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  const cut = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nsome';
  await refused(send('POST', '/files', { headers, body: cut }), 400, /broken off or malformed/);
  await refused(
    send('POST', '/files', { headers: { 'content-type': 'multipart/form-data' }, body: cut }),
    400,
    /boundary/,
  );
  await refused(
    send('POST', '/files', { headers: { 'content-type': 'application/json' }, body: '{}' }),
    415,
    /multipart/,
  );
  const text = new FormData();
  text.append('file', 'x');
  await refused(send('POST', '/files', { body: text }), 400, /^file must be a file/);
  const unknown = form('x', 'a.txt', { expires: '1' });
  await refused(send('POST', '/files', { body: unknown }), 400, /^expires is not a field of the form; accepted: file/);
  const twice = { 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '3600', expires_in_seconds: '3600' };
  await refused(send('POST', '/files', { body: form('x', 'a.txt', twice) }), 400, /^expires_in_seconds cannot be/);
  await refused(
    send('POST', '/files', { body: form('x', 'a.txt', { purpose: 'other' }) }),
    400,
    /^purpose must be one of/,
  );
});

const HEAD = '--b\r\nContent-Disposition: form-data; name="file"; filename="cut.txt"\r\n\r\n';
const FORM = { 'content-type': 'multipart/form-data; boundary=b' };

function partialBlobs(): string[] {
  return readdirSync(path.join(gateway.dataDir, 'blobs'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.partial'));
}

test('an upload that the client cuts off leaves nothing on the disk', async () => {
  const client = await RawClient.open(Number(new URL(gateway.api).port));
  const head = [
    'POST /api/v1/files HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${INFERENCE_KEY}`,
    `Content-Type: ${FORM['content-type']}`,
    'Content-Length: 10000000',
  ];
  await client.send(`${head.join('\r\n')}\r\n\r\n${HEAD}${'x'.repeat(300_000)}`);
  await until(() => partialBlobs().length === 1, 'the file is being written');
  client.leave();
  await until(() => partialBlobs().length === 0, 'what was written of it is removed');
});

test('of a form that turns out broken after its file nothing is stored', async () => {
  const names = async () => (await send('GET', '/files?limit=1000')).body.data.map((file: Json) => file.filename);
  const before = await names();
  const field = '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n';
  const broken: [string, RegExp][] = [
    [`${HEAD}some\r\n${HEAD}more\r\n--b--\r\n`, /one file/],
    [`${HEAD}some\r\n${HEAD.replace('"file"', '"other"')}more\r\n--b--\r\n`, /unknown file other/],
    [`${HEAD}some\r\n${field}user_da`, /broken off or malformed/],
    [`${field}batch\r\n${HEAD}some\r\n${field}user_data\r\n--b--\r\n`, /^purpose is given more than once/],
    [
      `${HEAD}some\r\n${Array.from({ length: 21 }, (_, n) => `${field.replace('purpose', `f${n}`)}x\r\n`).join('')}--b--\r\n`,
      /^f0 is not a field of the form/,
    ],
    [`${HEAD}some\r\n${field}wrong\r\n--b--\r\n`, /^purpose must be one of/],
  ];
  for (const [body, message] of broken) {
    await refused(send('POST', '/files', { headers: FORM, body }), 400, message);
    assert.deepEqual(await names(), before);
    assert.deepEqual(partialBlobs(), []);
  }
});

test('cursors of different styles do not mix, and what only vendors have is refused by name', async () => {
  const { id } = (await upload('x', 'a.txt')).body;
  await refused(send('GET', `/files?cursor=${id}&after=${id}`), 400, /^cursor cannot be combined with after/);
  await refused(send('GET', `/files?after_id=${id}&page=${id}`), 400, /^after_id cannot be combined with page/);
  await refused(send('GET', `/files?after=${id}&after_id=${id}`), 400, /^after cannot be combined with after_id/);
  await refused(send('GET', `/files?before_id=${id}`), 400, /^before_id is not supported/);
  await refused(send('GET', '/files?order=desc'), 400, /^order must be asc/);
  await refused(send('GET', '/files?after_id=file_x'), 400, /^after_id is not the id of a file/);
  await refused(send('GET', '/files?provider=openai'), 400, /^provider /);
  await refused(send('GET', '/files?limit=1001'), 400, /limit/);
});

// Bug 88
test('a page ends where the next one begins, in every style', async () => {
  const { id: workspace } = await control.made({ name: 'Pages', slug: 'pages-of-files' });
  const { token: key } = await control.keyIn(workspace, 'pages');
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1) ids.push((await upload('x', `${count}.txt`, { key })).body.id);
  for (const style of ['cursor', 'after', 'after_id']) {
    const seen: string[] = [];
    for (let start = ''; ; ) {
      const { body } = await send('GET', `/files?limit=2${start}`, { key });
      seen.push(...body.data.map((file: Json) => file.id));
      if (!body.has_more) break;
      start = `&${style}=${body.last_id}`;
    }
    assert.deepEqual(seen, ids);
  }
  // The file that the cursor names may be gone.
  const first = (await send('GET', '/files?limit=2', { key })).body;
  await send('DELETE', `/files/${first.last_id}`, { key });
  const added = (await upload('x', 'later.txt', { key })).body.id;
  const rest = (await send('GET', `/files?limit=4&after=${first.last_id}`, { key })).body;
  assert.deepEqual([rest.data.map((file: Json) => file.id), rest.has_more], [[...ids.slice(2), added], false]);
  for (const limit of ['0', '-1', 'x', '1001']) await refused(send('GET', `/files?limit=${limit}`), 400, /limit/);
});

test('a key reaches the files of its own workspace only, a management key those of each', async () => {
  const { id: workspace } = await control.made({ name: 'Apart', slug: 'apart-files' });
  const { token: other } = await control.keyIn(workspace, 'apart');
  const { id } = (await upload('secret', 'a.txt')).body;
  await refused(send('GET', `/files/${id}`, { key: other }), 404, /no file/);
  await refused(send('GET', `/files?workspace_id=${workspace}`), 403, /another workspace/);
  const theirs = (await upload('theirs', 'b.txt', { key: other })).body;
  const seen = await send('GET', `/files/${theirs.id}?workspace_id=${workspace}`, { key: MANAGEMENT_KEY });
  assert.equal(seen.body.filename, 'b.txt');
  await refused(send('GET', `/files/${theirs.id}`, { key: MANAGEMENT_KEY }), 404, /no file/);
});

test('a file past the limit is 413, and one that would fill the workspace is 403', async (t) => {
  const of = await startGateway(t, { providers: { chat: {} } });
  await refused(sendLarge(of, 101 * 1024 * 1024, ['file']), 413, /larger than/);
  const { body } = await send('GET', '/files', { of });
  assert.deepEqual(body.data, []);
});

test('a file expires when its client says so, and files with the purpose batch after 30 days', async (t) => {
  const of = await startGateway(t, { jobs: 'now' });
  const openai = new OpenAI({ baseURL: of.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const made = async (more: Pick<OpenAI.FileCreateParams, 'purpose' | 'expires_after'>) =>
    openai.files.create({ file: await toFile(Buffer.from('{}\n'), 'a.jsonl'), ...more });
  const HOUR = 3_600;
  const short = await made({ purpose: 'user_data', expires_after: { anchor: 'created_at', seconds: HOUR } });
  const batch = await made({ purpose: 'batch' });
  const kept = await made({ purpose: 'user_data' });
  const anthropic = new Anthropic({ baseURL: `${of.url}/api`, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const upload = async (seconds?: number) =>
    anthropic.beta.files.upload({
      file: await toAnthropicFile(Buffer.from('x'), 'a.txt'),
      ...(seconds !== undefined && { expires_in_seconds: seconds }),
    });
  const lasting = await upload(90 * 24 * HOUR);
  assert.equal(Date.parse(lasting.expires_at!) - Date.parse(lasting.created_at), 90 * 24 * HOUR * 1000);
  await assert.rejects(upload(90 * 24 * HOUR + 1), /expires_in_seconds must be an integer from 3600 to 7776000/);
  const endless = await upload();
  assert.equal(endless.expires_at, null);
  for (const { id } of [lasting, endless]) await anthropic.beta.files.delete(id);
  assert.deepEqual(
    [short, batch, kept].map((file) => file.expires_at && file.expires_at - file.created_at),
    [HOUR, 30 * 24 * HOUR, undefined],
  );
  for (const seconds of [0, HOUR - 1, 30 * 24 * HOUR + 1, 4000.5]) {
    const refusal = made({ purpose: 'batch', expires_after: { anchor: 'created_at', seconds } });
    await assert.rejects(refusal, /expires_after\[seconds\] must be an integer from 3600 to 2592000/);
  }
  const listed = async () => (await openai.files.list()).data.map(({ id }) => id);
  assert.deepEqual(await listed(), [short.id, batch.id, kept.id]);
  of.clock.jump(HOUR * 1000);
  assert.deepEqual(await listed(), [batch.id, kept.id]);
  await assert.rejects(openai.files.retrieve(short.id), { status: 404 });
  of.clock.jump(30 * 24 * HOUR * 1000);
  assert.deepEqual(await listed(), [kept.id]);
  const actions = async () =>
    (await send('GET', '/audit?limit=20', { key: MANAGEMENT_KEY, of })).body.data.map((each: Json) => each.action);
  await until(
    async () => (await actions()).filter((action: string) => action === 'file.expired').length === 2,
    'expired files are removed',
  );
});

test('a file with the purpose batch may have 200 MiB, wherever the form says its purpose', async (t) => {
  const of = await startGateway(t);
  const uploaded = async (bytes: number, fields: readonly ('purpose' | 'file')[], purpose = 'batch') =>
    (await sendLarge(of, bytes, fields, purpose)).status;
  const MIB = 1024 * 1024;
  assert.equal(await uploaded(200 * MIB, ['file', 'purpose']), 200);
  assert.equal(await uploaded(200 * MIB + 1, ['purpose', 'file']), 413);
  assert.equal(await uploaded(100 * MIB + 1, ['file', 'purpose'], 'user_data'), 413);
  assert.equal((await send('GET', '/files', { of })).body.data.length, 1);
});

test('regional hosts serve no files', async (t) => {
  const of = await startGateway(t, {
    providers: { chat: {} },
    yaml: { hosts: { europe: ['eu.test'], global: ['127.0.0.1'] } },
  });
  const { port } = new URL(of.url);
  const status = await new Promise((resolve, reject) => {
    const options = {
      port,
      path: '/api/v1/files',
      headers: { host: 'eu.test', authorization: `Bearer ${INFERENCE_KEY}` },
    };
    http.get(options, (response) => resolve(response.resume().statusCode)).on('error', reject);
  });
  assert.equal(status, 403);
});

test('the files of a workspace go with it', async () => {
  const { id: workspace } = await control.made({ name: 'Ends', slug: 'ends-files' });
  const { token: key } = await control.keyIn(workspace, 'ends');
  await upload('x', 'a.txt', { key });
  const { body: keys } = await control.call('GET', `/keys?workspace_id=${workspace}`);
  for (const each of keys.data) await control.call('DELETE', `/keys/${each.hash}`);
  assert.equal((await control.call('DELETE', `/workspaces/${workspace}`)).status, 200);
});
