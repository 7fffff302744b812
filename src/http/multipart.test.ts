import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readForm } from './multipart.ts';

const TYPE = 'multipart/form-data; boundary="x=1"';
const part = (name: string, text: string, head = '') =>
  `--x=1\r\n${head}Content-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`;
const read = (text: string, type = TYPE) => readForm(Buffer.from(text), type);

test('a form has at most 100 parts with short heads, which is known before it is parsed', async () => {
  const most = await read(`${part('a', 'b').repeat(100)}--x=1--\r\n`);
  assert.equal(most.texts.get('a')!.length, 100);
  const began = performance.now();
  const head = 'X: y\r\n'.repeat(3_000_000);
  for (const wrong of [part('a', '--x=1--').repeat(400_000), part('a', 'b', head), part('a', 'b').slice(0, 40)]) {
    await assert.rejects(read(`${wrong}--x=1--\r\n`), { type: 'invalid_request' });
  }
  // Some milliseconds; parsing took seconds.
  assert.ok(performance.now() - began < 1_000);
});

test('a form without a readable boundary is malformed', async () => {
  for (const type of [
    'multipart/form-data; charset=utf-8',
    'multipart/form-data; boundary=""',
    'multipart/form-data;\0',
  ]) {
    await assert.rejects(read(`${part('a', 'b')}--x=1--\r\n`, type), { type: 'invalid_request' });
  }
});
