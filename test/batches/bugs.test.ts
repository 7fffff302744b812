/** Reported bugs 81, 82, 84, 88 and 89 of docs/reported-bugs.md, through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const control = controlOf(gateway);
const { send, submitted, ended, refused } = batchesOf(gateway);

const textOf = ({ response }: Json) => response.body.choices[0].message.content as string;

test('81 | a custom_id that repeats is refused with both positions; those that only look alike are different', async () => {
  const item = scripted('a', { text: 'x' });
  await refused(
    send('POST', '/batches', chatBatch([item, scripted('b'), item])),
    400,
    /requests\[2\]\.custom_id "a" is also that of requests\[0\]/,
  );
  for (const custom_id of [undefined, '', 7, null, ['a']]) {
    await refused(send('POST', '/batches', chatBatch([{ ...item, custom_id }])), 400, /requests\[0\]\.custom_id/);
  }
  const ids = ['a', 'A', 'a ', ' a', '__proto__', 'constructor', 'ä', 'a\u0308', '"'];
  const batch = await ended((await submitted(chatBatch(ids.map((id, n) => scripted(id, { text: `text ${n}` }))))).id);
  assert.deepEqual(
    batch.results.map((result: Json) => [result.custom_id, textOf(result)]),
    ids.map((id, n) => [id, `text ${n}`]),
  );
});

test('82 | batches with the same custom_id at the same time, of one workspace and of two, keep their own answers', async () => {
  const { id: other } = await control.made({ name: 'Same ids', slug: 'same-ids' });
  const elsewhere = batchesOf(gateway, (await control.keyIn(other, 'same ids')).token);
  const clients = [batchesOf(gateway), batchesOf(gateway), elsewhere];
  const items = (client: number) =>
    Array.from({ length: 20 }, (_, n) => scripted(String(n), { text: `${client} says ${n}` }));
  const made = await Promise.all(clients.map((client, at) => client.submitted(chatBatch(items(at)))));
  for (const [at, client] of clients.entries()) {
    const batch = await client.ended(made[at].id);
    const texts = Array.from({ length: 20 }, (_, n) => `${at} says ${n}`);
    assert.deepEqual(batch.results.map(textOf), texts);
  }
  await refused(elsewhere.send('GET', `/batches/${made[0].id}`), 404, /no batch/);
});

test('84 | a cancelled batch gives out and charges what was done, and names the others as cancelled', async () => {
  const slow = { text: 'late', delay_ms: { headers: 1_500 } };
  const requests = [
    scripted('done', { text: 'x' }),
    ...Array.from({ length: 9 }, (_, n) => scripted(`slow-${n}`, slow)),
  ];
  const { id } = await submitted(chatBatch(requests));
  const shown = async () => (await send('GET', `/batches/${id}`)).body;
  await until(async () => (await shown()).request_counts.completed === 1, 'the first one is done');
  assert.equal((await send('POST', `/batches/${id}/cancel`)).status, 200);
  const batch = await ended(id);
  assert.equal(batch.status, 'cancelled');
  const { completed, failed } = batch.request_counts;
  assert.ok(completed >= 1 && completed + failed === 10, JSON.stringify(batch.request_counts));
  assert.equal(textOf(batch.results[0]), 'x');
  const others = batch.results.filter(({ error }: Json) => error !== null);
  assert.deepEqual(new Set(others.map(({ error }: Json) => error.type)), new Set(['batch_cancelled']));
  const paid = batch.results.reduce((sum: number, { response }: Json) => sum + (response?.body.usage.cost ?? 0), 0);
  assert.ok(paid > 0 && Math.abs(batch.usage.cost - paid) < 1e-12, `${batch.usage.cost} ${paid}`);
});

const upload = async (key: string, name: string, filename?: string) => {
  const line = filename ?? `filename="${name}"`;
  const body = `--b\r\nContent-Disposition: form-data; name="file"; ${line}\r\n\r\ncontent\r\n--b--\r\n`;
  const response = await fetch(`${gateway.api}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'multipart/form-data; boundary=b' },
    body,
  });
  return { status: response.status, body: (await response.json()) as Json };
};

test('88 | the last page of files says that it is the last, and following the cursor shows each file once', async () => {
  const { id } = await control.made({ name: 'Bug pages', slug: 'bug-pages' });
  const { token } = await control.keyIn(id, 'pages');
  const files = batchesOf(gateway, token);
  const made: string[] = [];
  for (const name of ['1.txt', '2.txt', '3.txt']) made.push((await upload(token, name)).body.id);
  const page = async (query: string) => (await files.send('GET', `/files?${query}`)).body;
  for (const style of ['after', 'after_id', 'cursor']) {
    const first = await page('limit=2');
    const second = await page(`limit=2&${style}=${first.last_id}`);
    assert.deepEqual([first.data.length, first.has_more, second.data.length, second.has_more], [2, true, 1, false]);
  }
  assert.equal((await page('limit=3')).has_more, false, 'a page that is just full');
  // Changes between two pages: each file that is there all the time is seen once.
  const first = await page('limit=1');
  await files.send('DELETE', `/files/${first.last_id}`);
  const added = (await upload(token, '4.txt')).body.id;
  const rest = await page(`limit=10&after=${first.last_id}`);
  const seen = rest.data.map((file: Json) => file.id).filter((file: string) => file !== added);
  assert.deepEqual(
    seen,
    made.filter((file) => file !== first.last_id),
  );
  for (const limit of ['0', '1001', '-1', 'x']) {
    await files.refused(files.send('GET', `/files?limit=${limit}`), 400, /limit/);
  }
});

test('89 | a file name is a label: it breaks no header and no path, or is refused', async () => {
  const hostile = [
    `filename="../../etc/x\\"\r\nx-evil: 1;.txt"`,
    `filename="${'n'.repeat(300)}.txt"`,
    `filename="a\u202etxt.exe"`,
    `filename="c:\\\\windows\\\\x.txt"`,
    `filename="tab\there.txt"`,
    `filename*=UTF-8''..%2F..%2Fetc%2Fpasswd`,
    `filename*=UTF-8''a%0D%0Ax-evil:%201.txt`,
  ];
  for (const filename of hostile) {
    const { status, body } = await upload(INFERENCE_KEY, '', filename);
    if (status === 400) continue;
    assert.equal(status, 200, JSON.stringify(body));
    assert.match(body.id, /^[\w-]+$/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be in a name
    assert.doesNotMatch(body.filename, /[\\\u0000-\u001f\u202e]|\.\./, JSON.stringify(filename));
    const response = await gateway.get(`/files/${body.id}/content`);
    assert.equal(response.headers.get('x-evil'), null);
    const disposition = response.headers.get('content-disposition');
    if (disposition !== null) assert.doesNotMatch(disposition, /[\r\n/]|\.\./);
    assert.equal(await response.text(), 'content');
  }
  const { body } = await upload(INFERENCE_KEY, 'naïve – 文.txt');
  assert.equal(body.filename, 'naïve – 文.txt');
});
