/** Downloads of files in parts. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { connect } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const CONTENT = Buffer.from(randomBytes(200_000).toString('base64'));

/** A file that a tool made. */
async function downloadable(content: Buffer): Promise<string> {
  const form = new FormData();
  form.append('file', new Blob([content as Buffer<ArrayBuffer>]), 'output.txt');
  const headers = { authorization: `Bearer ${INFERENCE_KEY}` };
  const file = await (await fetch(`${gateway.api}/files`, { method: 'POST', headers, body: form })).json();
  const sql = await connect(gateway.target);
  await sql.query('update files set downloadable = true');
  await sql.end();
  return `/files/${(file as { id: string }).id}/content`;
}

const path = await downloadable(CONTENT);

function download(headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(gateway.api + path, { method, headers: { authorization: `Bearer ${INFERENCE_KEY}`, ...headers } });
}

const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

test('a download that was cut is resumed where it stopped, if the content is still the same', async () => {
  const first = await download();
  const tag = first.headers.get('etag')!;
  assert.deepEqual([first.status, first.headers.get('accept-ranges')], [200, 'bytes']);
  assert.match(tag, /^"[0-9a-f]{64}"$/);
  const had = (await bytesOf(first)).subarray(0, 100_001);
  const rest = await download({ range: `bytes=${had.length}-`, 'if-range': tag });
  const { length } = CONTENT;
  assert.deepEqual(
    [rest.status, rest.headers.get('content-range'), rest.headers.get('content-length'), rest.headers.get('etag')],
    [206, `bytes ${had.length}-${length - 1}/${length}`, String(length - had.length), tag],
  );
  assert.ok(Buffer.concat([had, await bytesOf(rest)]).equals(CONTENT));
  const changed = await download({ range: `bytes=${had.length}-`, 'if-range': '"other"' });
  assert.equal(changed.status, 200);
  assert.ok((await bytesOf(changed)).equals(CONTENT));
});

test('parts and the end of a file are downloaded, and a range after its end is 416 with its size', async () => {
  const { length } = CONTENT;
  for (const [range, start, end] of [
    ['bytes=0-0', 0, 1],
    ['bytes=-5', length - 5, length],
    ['bytes=7-99999999', 7, length],
  ] as const) {
    const part = await download({ range });
    assert.equal(part.status, 206, range);
    assert.ok((await bytesOf(part)).equals(CONTENT.subarray(start, end)), range);
  }
  const beyond = await download({ range: `bytes=${length}-` });
  assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, `bytes */${length}`]);
  const { error } = (await beyond.json()) as { error: { message: string } };
  assert.match(error.message, new RegExp(`${length} bytes`));
});

test('HEAD returns size and checksum without content, and a client that has the content gets 304', async () => {
  const head = await download({ range: 'bytes=0-1' }, 'HEAD');
  const tag = head.headers.get('etag')!;
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(CONTENT.length)]);
  assert.equal((await bytesOf(head)).length, 0);
  for (const known of [tag, `"x", W/${tag}`, '*']) {
    const same = await download({ 'if-none-match': known });
    assert.deepEqual([same.status, same.headers.get('etag'), (await bytesOf(same)).length], [304, tag, 0], known);
  }
  assert.equal((await download({ 'if-none-match': '"x"' })).status, 200);
});
