/** The Files API of Gemini, with the official `@google/genai` package, unmodified, and with the protocol itself. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { ApiError, createPartFromUri, createUserContent, type File as GoogleFile, GoogleGenAI } from '@google/genai';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { RawClient } from '../../src/testing/clients/raw-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { controlOf } from '../workspaces/control.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const MIB = 2 ** 20;
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {} } },
);
const control = controlOf(gateway);
const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog });
after(() => database.close());
const genaiOf = (apiKey: string, apiVersion = 'v1') =>
  new GoogleGenAI({ apiKey, apiVersion, httpOptions: { baseUrl: gateway.url, retryOptions: { attempts: 1 } } });
const genai = genaiOf(INFERENCE_KEY);

const PDF = Buffer.concat([Buffer.from('%PDF-1.4\n%\xe2\xe3\xcf\xd3\n', 'latin1'), Buffer.alloc(3000, 'x')]);
const pdfOf = (bytes: number) => Buffer.concat([PDF, Buffer.alloc(bytes - PDF.length, 'y')]);
const blobOf = (bytes: Buffer, type = 'application/pdf') => new Blob([bytes as Buffer<ArrayBuffer>], { type });

/** Rows of uploads and chunks, and blobs that something keeps. */
async function leftovers(): Promise<number[]> {
  const [row] = await database.query<{ counts: number[] }>(
    `select array[(select count(*)::int from file_uploads where file_id is null),
      (select count(*)::int from file_upload_chunks),
      (select count(*)::int from blobs where state = 'kept') - (select count(*)::int from files)] as counts`,
  );
  return row!.counts;
}

const NOTHING = [0, 0, 0];

interface Sent {
  status: number;
  state: string | null;
  received: string | null;
  url: string | null;
  body: Json;
}

async function send(url: string, headers: Record<string, string>, body?: Buffer | string): Promise<Sent> {
  const response = await fetch(url, { method: 'POST', headers, ...(body && { body: body as string }) });
  return {
    status: response.status,
    state: response.headers.get('x-goog-upload-status'),
    received: response.headers.get('x-goog-upload-size-received'),
    url: response.headers.get('x-goog-upload-url'),
    body: await response.json(),
  };
}

const START = `${gateway.url}/upload/v1beta/files`;

function start(bytes: number | undefined, more: Record<string, string> = {}, body?: object): Promise<Sent> {
  const headers = {
    'x-goog-api-key': INFERENCE_KEY,
    'x-goog-upload-protocol': 'resumable',
    'x-goog-upload-command': 'start',
    ...(bytes !== undefined && { 'x-goog-upload-header-content-length': String(bytes) }),
    ...(body && { 'content-type': 'application/json' }),
    ...more,
  };
  return send(START, headers, body && JSON.stringify(body));
}

const proceed = (url: string, command: string, offset?: number, body?: Buffer) =>
  send(
    url,
    { 'x-goog-upload-command': command, ...(offset !== undefined && { 'x-goog-upload-offset': String(offset) }) },
    body,
  );

for (const version of ['v1', 'v1beta'])
  test(`the SDK uploads, finds, lists, downloads and deletes files with ${version}`, async () => {
    const genai = genaiOf(INFERENCE_KEY, version);
    const name = path.join(gateway.dataDir, 'my notes.md');
    writeFileSync(name, '# Notes');
    const fromPath = await genai.files.upload({ file: name, config: { mimeType: 'text/markdown' } });
    assert.equal(fromPath.mimeType, 'text/markdown');
    assert.equal(fromPath.displayName, 'my notes.md');
    assert.equal(fromPath.sizeBytes, '7');
    const config = { displayName: 'Report: what is new?' };
    const file = await genai.files.upload({ file: blobOf(PDF), config });
    assert.match(file.name!, /^files\/[0-9a-f]{32}$/);
    assert.equal(file.uri, `${gateway.url}/v1beta/${file.name}`);
    assert.equal(file.displayName, config.displayName);
    assert.deepEqual([file.state, file.source, file.mimeType], ['ACTIVE', 'UPLOADED', 'application/pdf']);
    const hours = (Date.parse(file.expirationTime!) - Date.parse(file.createTime!)) / 3_600_000;
    assert.equal(hours, 48);
    assert.deepEqual(plain(await genai.files.get({ name: file.name! })), plain(file));
    const listed: (string | undefined)[] = [];
    for await (const each of await genai.files.list({ config: { pageSize: 1 } })) listed.push(each.name);
    assert.deepEqual(listed, [fromPath.name, file.name]);
    const elsewhere = await gateway.get(`/files/svc_file_${file.name!.slice('files/'.length)}`, INFERENCE_KEY);
    assert.equal(((await elsewhere.json()) as Json).filename, 'file.pdf');
    const copy = path.join(gateway.dataDir, 'copy.pdf');
    const download = () => genai.files.download({ file: file.name!, downloadPath: copy });
    await assert.rejects(download(), /uploaded files cannot be downloaded/);
    await database.query('update files set downloadable = true');
    await download();
    assert.deepEqual(readFileSync(copy), PDF);
    for (const each of listed) await genai.files.delete({ name: each! });
    await assert.rejects(genai.files.get({ name: file.name! }), (error) => {
      assert.ok(error instanceof ApiError && error.status === 404);
      assert.equal(JSON.parse(error.message).error.status, 'NOT_FOUND');
      return true;
    });
    assert.deepEqual(await leftovers(), NOTHING);
  });

/** Without what the SDK adds. */
function plain({ sdkHttpResponse: _, ...file }: GoogleFile & { sdkHttpResponse?: unknown }): object {
  return JSON.parse(JSON.stringify(file));
}

test('the SDK uploads in several chunks, and the file is the same', async () => {
  const content = pdfOf(17 * MIB + 5);
  const file = await genai.files.upload({ file: blobOf(content) });
  assert.equal(file.sizeBytes, String(content.length));
  const [stored] = await database.query<{ sha256: Buffer }>(
    'select b.sha256 from files f join blobs b on b.id = f.blob_id where f.id = $1::uuid',
    [file.name!.slice('files/'.length)],
  );
  assert.deepEqual(stored!.sha256, createHash('sha256').update(content).digest());
  assert.deepEqual(await leftovers(), NOTHING);
  await genai.files.delete({ name: file.name! });
});

test('an uploaded file reaches a model of another format, and the audit log', async () => {
  gateway.upstream.script('chat', [answerOf('chat', false, { text: 'a notebook' })]);
  const file = await genai.files.upload({
    file: blobOf(Buffer.from('a,b'), 'text/csv'),
    config: { displayName: 'Data' },
  });
  assert.deepEqual([file.mimeType, file.displayName], ['text/csv', 'Data']);
  const contents = createUserContent(['what is it?', createPartFromUri(file.uri!, file.mimeType!)]);
  const reply = await genai.models.generateContent({ model: 'test/chat', contents });
  assert.equal(reply.text, 'a notebook');
  const sent = gateway.upstream.requests('chat').at(-1)!.json as Json;
  assert.deepEqual(sent.messages[0].content.at(-1), { type: 'text', text: 'a,b' });
  const audit: Json = await (await gateway.get('/audit?limit=1', MANAGEMENT_KEY)).json();
  assert.equal(audit.data[0].action, 'file.created');
  assert.equal(audit.data[0].resource_id, `svc_file_${file.name!.slice('files/'.length)}`);
  await genai.files.delete({ name: file.name! });
});

test('a chunk may be sent again, to any process, and nothing is stored twice', async (t) => {
  const other = await startGateway(t, { providers: {}, target: gateway.target, dataDir: gateway.dataDir });
  const content = pdfOf(MIB + 10);
  const { url, state, body } = await start(content.length, {}, { file: { display_name: 'one' } });
  assert.deepEqual([state, body], ['active', {}]);
  const elsewhere = url!.replace(gateway.url, other.url);
  const [first, second, last] = [0, MIB / 2, MIB].map((at) => content.subarray(at, at + MIB / 2));
  assert.deepEqual(pick(await proceed(url!, 'upload', 0, first)), [200, 'active', String(MIB / 2)]);
  assert.deepEqual(pick(await proceed(elsewhere, 'upload', 0, first)), [200, 'active', String(MIB / 2)]);
  assert.deepEqual(pick(await proceed(elsewhere, 'query')), [200, 'active', String(MIB / 2)]);
  for (const [offset, chunk] of [
    [0, second],
    [0, content.subarray(0, MIB)],
    [MIB, last],
    [1, first],
  ] as const) {
    const refused = await proceed(elsewhere, 'upload', offset, chunk);
    assert.deepEqual(pick(refused), [416, 'active', String(MIB / 2)]);
    assert.match(refused.body.error.message, /x-goog-upload-offset must be 524288/);
  }
  // The same chunk at the same time: one of them may be told that the other was first.
  const both = await Promise.all([url!, elsewhere].map((at) => proceed(at, 'upload', MIB / 2, second)));
  for (const { status, received } of both) assert.ok([200, 409].includes(status) && received === String(MIB));
  const ends = await Promise.all([url!, elsewhere].map((at) => proceed(at, 'upload, finalize', MIB, last)));
  for (const end of ends) assert.deepEqual(pick(end), [200, 'final', String(content.length)], JSON.stringify(end.body));
  assert.equal(ends[0]!.body.file.name, ends[1]!.body.file.name);
  const again = await proceed(elsewhere, 'upload, finalize', MIB, last);
  assert.equal(again.body.file.name, ends[0]!.body.file.name);
  assert.equal((await genai.files.list()).page.length, 1);
  assert.deepEqual(await leftovers(), NOTHING);
  await genai.files.delete({ name: again.body.file.name });
  assert.deepEqual(pick(await proceed(url!, 'query')), [404, 'final', null]);
});

const pick = ({ status, state, received }: Sent) => [status, state, received];

test('a chunk that breaks off is not kept, and its upload continues', async () => {
  const content = pdfOf(MIB + 10);
  const { url } = await start(undefined);
  await proceed(url!, 'upload', 0, content.subarray(0, MIB / 2));
  for (const command of ['upload', 'upload, finalize']) {
    const client = await RawClient.open(Number(new URL(gateway.url).port));
    await client.send(
      `POST ${new URL(url!).pathname} HTTP/1.1\r\nhost: x\r\nx-goog-upload-command: ${command}\r\n` +
        `x-goog-upload-offset: ${MIB / 2}\r\ncontent-length: ${MIB / 2 + 10}\r\n\r\n`,
    );
    await client.send(content.subarray(MIB / 2, MIB));
    client.socket.destroy();
    await client.closed;
    await until(
      async () => (await database.query(`select 1 from blobs where state = 'writing'`)).length === 0,
      'the blob of the broken chunk is given up',
    );
    assert.deepEqual(pick(await proceed(url!, 'query')), [200, 'active', String(MIB / 2)]);
  }
  const sent = await proceed(url!, 'upload', MIB / 2, content.subarray(MIB / 2));
  assert.deepEqual(pick(sent), [200, 'active', String(content.length)]);
  const end = await proceed(url!, 'finalize');
  assert.deepEqual(pick(end), [200, 'final', String(content.length)], JSON.stringify(end.body));
  assert.deepEqual(await leftovers(), NOTHING);
  await genai.files.delete({ name: end.body.file.name });
});

test('what is cancelled, refused, or too old leaves nothing behind', async (t) => {
  const cancelled = await start(MIB);
  await proceed(cancelled.url!, 'upload', 0, PDF);
  assert.deepEqual(pick(await proceed(cancelled.url!, 'cancel')), [200, 'cancelled', '0']);
  assert.equal((await proceed(cancelled.url!, 'query')).status, 404);
  const refusals: [number | undefined, Buffer, RegExp][] = [
    [undefined, Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.alloc(600_000)]), /must be a PDF, PNG/],
    [MIB, Buffer.concat([PDF, Buffer.alloc(600_000)]), /announced with 1048576 bytes, but has/],
    [600_000, pdfOf(MIB), /announced with 600000 bytes, but has more/],
  ];
  for (const [bytes, content, problem] of refusals) {
    const { url } = await start(bytes);
    const half = MIB / 2;
    await proceed(url!, 'upload', 0, content.subarray(0, half));
    const refused = await proceed(url!, 'upload, finalize', half, content.subarray(half));
    assert.deepEqual(pick(refused), [400, 'final', null]);
    assert.match(refused.body.error.message, problem);
    assert.equal(refused.body.error.status, 'INVALID_ARGUMENT');
    assert.equal((await proceed(url!, 'query')).status, 404);
  }
  assert.deepEqual(await leftovers(), NOTHING);
  const old = await startGateway(t, { providers: {}, target: gateway.target, dataDir: gateway.dataDir, jobs: 'now' });
  const { url } = await start(MIB);
  await proceed(url!, 'upload', 0, PDF);
  assert.notDeepEqual(await leftovers(), NOTHING);
  old.clock.jump(24 * 3_600_000);
  assert.equal((await proceed(url!.replace(gateway.url, old.url), 'query')).status, 404);
  await until(async () => (await leftovers()).every((count) => count === 0), 'the expired upload is removed');
});

test('headers and fields that have no meaning are refused by name, before anything is stored', async () => {
  const { url } = await start(MIB);
  const refused: [Promise<Sent>, RegExp][] = [
    [start(MIB, { 'x-goog-upload-protocol': 'multipart' }), /header x-goog-upload-protocol must be resumable/],
    [start(MIB, { 'x-goog-upload-command': 'start, upload' }), /header x-goog-upload-command must be start/],
    [start(0), /file is empty/],
    [start(undefined, { 'x-goog-upload-header-content-length': '1e3' }), /content-length must be a number of bytes/],
    [start(MIB, {}, { file: { name: 'files/mine' } }), /file\.name cannot be chosen/],
    [start(MIB, {}, { file: { displayName: 5 } }), /file\.displayName must be a string/],
    [start(MIB, {}, { file: { displayName: 'x'.repeat(513) } }), /file\.displayName must have at most 512/],
    [proceed(url!, 'start', 0, PDF), /header x-goog-upload-command must be upload/],
    [proceed(url!, 'upload', undefined, PDF), /header x-goog-upload-offset is missing/],
    [proceed(url!, 'upload', 0), /the chunk is empty/],
    [proceed((await start(MIB)).url!, 'finalize'), /announced with 1048576 bytes, but has 0/],
    [proceed((await start(undefined)).url!, 'finalize'), /file is empty/],
  ];
  for (const [sent, problem] of refused) {
    const { status, body } = await sent;
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(body.error.message, problem);
  }
  assert.equal((await start(101 * MIB)).status, 413);
  const short = await start(MIB);
  await proceed(short.url!, 'upload', 0, PDF);
  const odd = await proceed(short.url!, 'upload', PDF.length, PDF);
  assert.match(odd.body.error.message, /must be a multiple of 262144/);
  for (const each of [url!, short.url!]) await proceed(each, 'cancel');
  assert.deepEqual(await leftovers(), NOTHING);
});

test('an upload belongs to its workspace and ends with its key', async () => {
  const { id: workspace } = await control.made({ name: 'Other', slug: 'other-google' });
  const { token, hash } = (await control.keyIn(workspace, 'other')) as { token: string; hash: string };
  const theirs = await genaiOf(token).files.upload({ file: blobOf(PDF) });
  await assert.rejects(genai.files.get({ name: theirs.name! }), { status: 404 });
  await assert.rejects(genai.files.delete({ name: theirs.name! }), { status: 404 });
  assert.deepEqual((await genai.files.list()).page, []);
  const { url } = await start(PDF.length, { 'x-goog-api-key': token });
  await control.call('PATCH', `/keys/${hash}`, { disabled: true });
  const refused = await proceed(url!, 'upload, finalize', 0, PDF);
  assert.equal(refused.status, 401);
  assert.equal(refused.body.error.status, 'UNAUTHENTICATED');
  await control.call('DELETE', `/workspaces/${workspace}`);
  assert.deepEqual(await leftovers(), NOTHING);
});
