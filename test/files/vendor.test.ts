/** Files of the caller's own account at OpenAI and Anthropic, with official SDKs against stores that keep what they get. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, test } from 'node:test';
import Anthropic, { toFile as toAnthropicFile } from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const SECRET = 'own-canary-of-the-account';

interface Kept {
  id: string;
  filename: string;
  type: string;
  purpose: string | undefined;
  /** The other fields of the form. */
  expiry: (string | undefined)[];
  content: Buffer;
}

interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
}

/** A vendor's file store, in both shapes. */
const files = new Map<string, Kept>();
const seen: Seen[] = [];
let broken: { status: number; body: object; headers?: Record<string, string> } | undefined;

function shown(file: Kept, isOpenai: boolean): object {
  const { id, filename, content } = file;
  if (isOpenai) {
    const rest = { purpose: file.purpose, status: 'processed', expires_at: null };
    return { object: 'file', id, bytes: content.length, created_at: 1_785_201_993, filename, ...rest };
  }
  const rest = { mime_type: file.type, created_at: '2026-07-28T02:01:23.266000Z', downloadable: true };
  return { type: 'file', id, filename, size_bytes: content.length, ...rest };
}

function kept(body: Buffer, headers: IncomingMessage['headers'], id: string): Kept {
  const boundary = /boundary=(.+)$/.exec(headers['content-type'] ?? '')?.[1];
  const text = body.toString('latin1');
  const part = (name: string) => text.split(`--${boundary}`).find((each) => each.includes(`name="${name}"`));
  const contentOf = (each: string | undefined) => each?.slice(each.indexOf('\r\n\r\n') + 4, -2);
  const file = part('file') ?? '';
  return {
    id,
    filename: Buffer.from(/filename="([^"]*)"/.exec(file)?.[1] ?? '', 'latin1').toString(),
    type: /content-type: (\S+)/.exec(file)?.[1] ?? '',
    purpose: contentOf(part('purpose')),
    expiry: ['expires_in_seconds', 'expires_after[anchor]', 'expires_after[seconds]'].map((name) =>
      contentOf(part(name)),
    ),
    content: Buffer.from(contentOf(file) ?? '', 'latin1'),
  };
}

const store = createServer(async (request, response) => {
  const { method = '', url = '', headers } = request;
  seen.push({ method, url, headers });
  const body = await buffer(request);
  const send = (status: number, value: object, more: Record<string, string> = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify(value));
  if (broken !== undefined) return void send(broken.status, broken.body, broken.headers);
  const isOpenai = headers.authorization !== undefined;
  const [, id = '', content] = /^\/v1\/files\/?([^/?]*)(\/content)?/.exec(url) ?? [];
  const all = [...files.values()];
  if (id === '' && method === 'GET') {
    const query = new URL(url, 'http://x').searchParams;
    const start = query.get('after') ?? query.get('after_id');
    const limit = Number(query.get('limit') ?? 100);
    const rest = all.slice(all.findIndex((file) => file.id === start) + 1);
    const data = rest.slice(0, limit).map((file) => shown(file, isOpenai));
    const ends = { first_id: rest[0]?.id ?? null, last_id: rest.slice(0, limit).at(-1)?.id ?? null };
    return void send(200, { ...(isOpenai && { object: 'list' }), data, has_more: rest.length > limit, ...ends });
  }
  if (method === 'POST') {
    const file = kept(body, headers, `file-${files.size + 1}${isOpenai ? 'o' : 'a'}`);
    files.set(file.id, file);
    return void send(200, shown(file, isOpenai));
  }
  const file = files.get(id);
  if (file === undefined) return void send(404, { error: { message: `no such file: ${id}` } });
  if (content) return void response.writeHead(200, { 'content-type': 'text/csv' }).end(file.content);
  if (method === 'DELETE') files.delete(id);
  const deleted = isOpenai ? { object: 'file', id, deleted: true } : { type: 'file_deleted', id };
  return void send(200, method === 'DELETE' ? deleted : shown(file, isOpenai));
});
await new Promise<void>((listening) => store.listen(0, '127.0.0.1', listening));
const base_url = `http://127.0.0.1:${(store.address() as AddressInfo).port}/v1`;
after(() => {
  store.closeAllConnections();
  store.close();
});

const providers = { openai: { kind: 'openai', base_url }, anthropic: { kind: 'anthropic', base_url } };

async function started(): Promise<Gateway> {
  const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) }, { providers });
  for (const provider of ['openai', 'anthropic']) {
    await control(gateway, 'POST', '/byok', { provider, key: SECRET });
  }
  return gateway;
}

async function control(gateway: Gateway, method: string, route: string, body?: object): Promise<Json> {
  const headers = { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' };
  const response = await fetch(gateway.api + route, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const text = await response.text();
  assert.ok(response.ok, text);
  return JSON.parse(text);
}

const gateway = await started();

async function send(method: string, route: string, more: { key?: string; form?: FormData; of?: Gateway } = {}) {
  const { key = INFERENCE_KEY, form, of = gateway } = more;
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(of.api + route, { method, headers, ...(form && { body: form }) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function formOf(content: Uint8Array | string, filename: string): FormData {
  const form = new FormData();
  form.append('file', new Blob([content as string]), filename);
  return form;
}

test('the openai SDK uses the files of its own account: whole, page by page, and with all that OpenAI says', async () => {
  files.clear();
  const client = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, defaultQuery: { provider: 'openai' } });
  const content = Buffer.alloc(3_000_000, 'a,b\n');
  const first = await client.files.create({ file: await toFile(content, 'ünï x.csv'), purpose: 'batch' });
  assert.deepEqual([first.bytes, first.filename, first.purpose], [content.length, 'ünï x.csv', 'batch']);
  assert.equal((first as Json).expires_at, null);
  assert.ok(content.equals(files.get(first.id)!.content));
  for (const name of ['2', '3'])
    await client.files.create({ file: await toFile(Buffer.from(name), name), purpose: 'evals' });
  const expires_after = { anchor: 'created_at', seconds: 7200 } as const;
  const short = await client.files.create({
    file: await toFile(Buffer.from('x'), 'x'),
    purpose: 'evals',
    expires_after,
  });
  assert.deepEqual(files.get(short.id)!.expiry, [undefined, 'created_at', '7200']);
  files.delete(short.id);
  const listed = [];
  for await (const file of client.files.list({ limit: 2 })) listed.push(file.filename);
  assert.deepEqual(listed, ['ünï x.csv', '2', '3']);
  assert.equal((await client.files.retrieve(first.id)).id, first.id);
  const response = await client.files.content(first.id);
  assert.equal(response.headers.get('content-type'), 'text/csv');
  assert.match(response.headers.get('content-disposition')!, /^attachment/);
  assert.ok(content.equals(Buffer.from(await response.arrayBuffer())));
  assert.equal((await client.files.delete(first.id)).deleted, true);
  assert.equal(files.size, 2);
  await assert.rejects(client.files.retrieve(first.id), { status: 404 });
  assert.ok(seen.every(({ headers }) => headers.authorization === `Bearer ${SECRET}`));
});

test('the Anthropic SDK uses the files of its own account', async () => {
  files.clear();
  seen.length = 0;
  const baseURL = gateway.api.replace(/\/v1$/, '');
  const client = new Anthropic({
    authToken: INFERENCE_KEY,
    apiKey: null,
    baseURL,
    defaultQuery: { provider: 'anthropic' },
  });
  const uploaded = await client.beta.files.upload({
    file: await toAnthropicFile(Buffer.from('text'), 'x.txt', { type: 'text/plain' }),
    expires_in_seconds: 7200,
  });
  assert.deepEqual(files.get(uploaded.id)!.expiry, ['7200', undefined, undefined]);
  assert.deepEqual([uploaded.filename, uploaded.size_bytes, uploaded.mime_type], ['x.txt', 4, 'text/plain']);
  const listed = [];
  for await (const file of client.beta.files.list({ limit: 1 })) listed.push(file.id);
  assert.deepEqual(listed, [uploaded.id]);
  assert.equal(await (await client.beta.files.download(uploaded.id)).text(), 'text');
  assert.equal((await client.beta.files.delete(uploaded.id)).type, 'file_deleted');
  assert.ok(seen.every(({ headers }) => headers['x-api-key'] === SECRET));
  assert.ok(seen.every(({ headers }) => String(headers['anthropic-beta']).includes('files-api-2025-04-14')));
});

test('a client of one vendor sees the files of another in the shape that it expects', async () => {
  files.clear();
  const { text } = await send('POST', '/files?provider=openai', { form: formOf('x', 'x.txt') });
  const { id } = JSON.parse(text);
  const headers = { authorization: `Bearer ${INFERENCE_KEY}`, 'anthropic-version': '2023-06-01' };
  const shown = await (await fetch(`${gateway.api}/files/${id}?provider=openai`, { headers })).json();
  const expected = { _shape: 'anthropic', id, type: 'file', filename: 'x.txt', mime_type: 'application/octet-stream' };
  const more = { size_bytes: 1, created_at: '2026-07-28T01:26:33.000Z', downloadable: false };
  assert.deepEqual(shown, { ...expected, ...more });
  const list = await (await fetch(`${gateway.api}/files?provider=openai`, { headers })).json();
  assert.deepEqual([(list as Json).data, (list as Json).last_id], [[shown], id]);
});

test('vendor_a and vendor_b name Anthropic and OpenAI, as in guardrails', async () => {
  files.clear();
  const headers = { authorization: `Bearer ${INFERENCE_KEY}` };
  const reply = async (path: string) => (await (await fetch(gateway.api + path, { headers })).json()) as Json;
  const { text } = await send('POST', '/files?provider=vendor_b', { form: formOf('x', 'x.txt') });
  const uploaded = JSON.parse(text);
  assert.deepEqual(await reply(`/files/${uploaded.id}?provider=openai`), uploaded);
  assert.deepEqual(await reply('/files?provider=vendor_a'), await reply('/files?provider=anthropic'));
  assert.equal((await reply('/files?provider=vendor_a'))._shape, 'anthropic');
  assert.equal((await send('GET', '/files?provider=vendor_c')).status, 400);
});

test('a refusal of a vendor is returned with its status, and never with the credential', async (t) => {
  t.after(() => {
    broken = undefined;
  });
  const said = { error: { message: `Incorrect API key provided: ${SECRET}` } };
  for (const [answer, status, message] of [
    [{ status: 401, body: said }, 502, /refuses the BYOK credential/],
    [{ status: 403, body: said }, 502, /refuses the BYOK credential/],
    [{ status: 400, body: { error: { message: 'bad purpose' } } }, 400, /bad purpose/],
    [{ status: 413, body: { error: { message: 'too large' } } }, 413, /too large/],
    [{ status: 429, body: { error: { message: 'slow down' } }, headers: { 'retry-after': '7' } }, 429, /slow down/],
    [{ status: 500, body: {} }, 502, /answered with 500/],
  ] as const) {
    broken = answer;
    for (const asked of [
      send('GET', '/files?provider=openai'),
      send('POST', '/files?provider=openai', { form: formOf('x', 'x') }),
    ]) {
      const { status: got, text, headers } = await asked;
      assert.equal(got, status, text);
      assert.match(text, message);
      assert.doesNotMatch(text, /canary/);
      if (status === 429) assert.equal(headers.get('retry-after'), '7');
    }
  }
});

test('a form that is refused reaches no vendor', async () => {
  seen.length = 0;
  const broken = formOf('x', 'x.txt');
  broken.append('file', new Blob(['y']), 'y.txt');
  assert.equal((await send('POST', '/files?provider=openai', { form: broken })).status, 400);
  assert.equal((await send('POST', '/files?provider=openai', { form: formOf('x', '../x') })).status, 400);
  assert.equal((await send('GET', '/files/..%2fmodels?provider=openai')).status, 404);
  assert.equal((await send('GET', '/files/..?provider=openai')).status, 404);
  assert.equal((await send('GET', '/files?provider=openai&cursor=a&after=b')).status, 400);
  assert.equal((await send('GET', '/files?provider=anthropic&order=desc')).status, 400);
  assert.equal(seen.length, 0);
});

test('without a BYOK credential of the vendor it is 400, and guardrails of the key hold', async (t) => {
  const bare = await startGateway(t, { providers });
  const refused = await send('GET', '/files?provider=openai', { of: bare });
  assert.equal(refused.status, 400);
  assert.match(refused.text, /BYOK credential/);
  seen.length = 0;
  const guarded = async (settings: object) => {
    const { key, data } = await control(gateway, 'POST', '/keys', { name: 'guarded' });
    const guardrail = (await control(gateway, 'POST', '/guardrails', { name: `for ${data.hash}`, ...settings })).data;
    await control(gateway, 'POST', `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [data.hash] });
    return send('POST', '/files?provider=openai', { key, form: formOf('x', 'x.txt') });
  };
  for (const [settings, reason] of [
    [{ ignored_providers: ['openai'] }, /guardrails of this key exclude the provider/],
    [{ enforce_zdr: true }, /zero data retention/],
    [{ content_filters: [{ pattern: 'secret', action: 'block' }] }, /filter content/],
  ] as const) {
    const { status, text } = await guarded(settings);
    assert.equal(status, 403, text);
    assert.match(text, reason);
  }
  assert.equal(seen.length, 0);
  assert.equal((await guarded({ allowed_providers: ['openai'] })).status, 200);
});

test('uploads and deletions at a vendor are in the audit log', async () => {
  const { text } = await send('POST', '/files?provider=openai', { form: formOf('x', 'audited.txt') });
  const { id } = JSON.parse(text);
  await send('DELETE', `/files/${id}?provider=openai`);
  const { data } = await control(gateway, 'GET', '/audit?limit=10');
  const actions = data.filter((entry: Json) => JSON.stringify(entry).includes(id)).map((entry: Json) => entry.action);
  assert.deepEqual(actions.toSorted(), ['file.created', 'file.deleted']);
});
