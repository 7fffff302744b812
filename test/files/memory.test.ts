/** What conversations hold of stored files: a share of the process's memory, returned when they end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';

const MIB = 1024 * 1024;

test('small requests that name large files get 503 instead of the memory of the process, until others end', async (t) => {
  const { api, post, upstream } = await startGateway(t, { providers: { mistral: { kind: 'mistral' } } });
  const [chunk] = answerOf('chat', false, { text: 'ok' }).chunks!;
  const headers = { 'content-type': 'application/json' };
  upstream.script('mistral', { headers, chunks: [{ gate: 'answers' }, chunk!] });
  const form = new FormData();
  form.append('file', new Blob(['%PDF-1.4\n', Buffer.alloc(20 * MIB - 100, 'x')]), 'a.pdf');
  const uploaded = await fetch(`${api}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}` },
    body: form,
  });
  const { id } = (await uploaded.json()) as { id: string };
  const content = [{ type: 'file', file: { file_id: id } }];
  const ask = async () => {
    const response = await post('/chat/completions', { model: 'test/mistral', messages: [{ role: 'user', content }] });
    return { status: response.status, text: await response.text(), retryAfter: response.headers.get('retry-after') };
  };
  // Six times 20 MiB fit into the share of 128 MiB.
  const asked = Array.from({ length: 8 }, ask);
  const refused = [await Promise.race(asked)];
  assert.deepEqual([refused[0]!.status, refused[0]!.retryAfter], [503, '1'], refused[0]!.text);
  assert.match(refused[0]!.text, /messages\[0\]\.content\[0\]\.file\.file_id: too many stored files are in use/);
  upstream.open('answers');
  const statuses = (await Promise.all(asked)).map(({ status }) => status).toSorted((one, other) => one - other);
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200, 503, 503]);
  for (let n = 0; n < 7; n++) assert.equal((await ask()).status, 200);
});
