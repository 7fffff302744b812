/** What a browser sees: the start page, the API reference and its document. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { RawClient } from '../../src/testing/clients/raw-client.ts';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';

let gateway: Gateway;
const closers: (() => Promise<void>)[] = [];
before(async () => {
  gateway = await startGateway({ after: (close) => void closers.push(close as () => Promise<void>) });
});
after(async () => {
  for (const close of closers.reverse()) await close();
});
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

async function read(path: string, headers: Record<string, string> = {}) {
  const answer = await fetch(gateway.url + path, { headers });
  return { answer, text: await answer.text() };
}

interface Document {
  openapi: string;
  paths: Record<string, Record<string, { operationId: string }>>;
}

test('the start page shows both base URLs, links and snippets', async () => {
  const { answer, text } = await read('/start', BROWSER);
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
  for (const part of [`${gateway.url}/api/v1</code>`, `${gateway.url}/api</code>`, 'href="/docs"', 'new OpenAI(']) {
    assert.ok(text.includes(part), part);
  }
  assert.equal((await fetch(`${gateway.url}/start`, { method: 'HEAD', headers: BROWSER })).status, 200);
  assert.equal((await fetch(`${gateway.url}/start`, { method: 'POST' })).status, 405);
});

test('pages have no script and load nothing from anywhere', async () => {
  for (const path of ['/', '/start', '/docs']) {
    const { answer, text } = await read(path, BROWSER);
    const policy = answer.headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'none'; frame-ancestors 'none'/);
    assert.ok(!/<script|<link|<img|<iframe|@import|url\(|\son\w+=|\sstyle=/i.test(text), path);
    const hosts = [...text.matchAll(/(?:href|src)="(?!#|\/(?!\/))([^"]*)"/g)].map(([, target]) => target);
    assert.deepEqual(hosts, [], path);
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  }
});

test('an invalid host does not reach the start page', async () => {
  const raw = await RawClient.open(Number(new URL(gateway.url).port));
  await raw.send('GET / HTTP/1.1\r\nHost: a"><script>alert(1)</script>\r\nAccept: text/html\r\n\r\n');
  const { body, status } = await raw.response();
  raw.socket.destroy();
  assert.ok(status === 400 || (status === 200 && body.includes('http://localhost/api/v1')), String(status));
  assert.ok(!body.includes('<script'));
});

test('the reference has every operation of the document once, and every link of it leads somewhere', async () => {
  const document = JSON.parse((await read('/openapi.json')).text) as Document;
  assert.match(document.openapi, /^3\.1/);
  const ids = Object.values(document.paths).flatMap((item) =>
    Object.values(item).flatMap(({ operationId }) => operationId ?? []),
  );
  assert.ok(ids.length > 100);
  const { text } = await read('/docs', BROWSER);
  const anchors = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!);
  assert.equal(new Set(anchors).size, anchors.length);
  assert.deepEqual(
    ids.filter((id) => !anchors.includes(id)),
    [],
  );
  const links = [...text.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id!);
  assert.deepEqual(
    links.filter((id) => !anchors.includes(id)),
    [],
  );
});

test('the document and the reference are compressed if the client accepts it, and not sent again if unchanged', async () => {
  for (const path of ['/openapi.json', '/docs']) {
    const plain = await read(path, { 'accept-encoding': 'identity' });
    const raw = await RawClient.open(Number(new URL(gateway.url).port));
    await raw.send(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n`);
    const { headers } = await raw.response();
    raw.socket.destroy();
    assert.equal(headers['content-encoding'], 'gzip');
    assert.ok(Number(headers['content-length']) < Buffer.byteLength(plain.text) / 5);
    const zipped = await fetch(gateway.url + path, { headers: { 'accept-encoding': 'gzip' } });
    assert.equal(await zipped.text(), plain.text);
    const etag = plain.answer.headers.get('etag') ?? '';
    const again = await read(path, { 'if-none-match': etag });
    assert.deepEqual([again.answer.status, again.text], [304, '']);
    assert.equal((await read(path, { 'if-none-match': 'W/"other"' })).answer.status, 200);
  }
});
