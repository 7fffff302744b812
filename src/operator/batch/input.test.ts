import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../../testing/laws/samples.ts';
import { type InputOptions, readInput } from './input.ts';
import { BatchProblem } from './problem.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-input-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = path.join(folder, 'input.jsonl');
const DEFAULTS: InputOptions = { file, model: undefined, endpoint: undefined, callbackUrl: undefined };

async function read(content: string, options: Partial<InputOptions> = {}) {
  writeFileSync(file, content);
  const input = await readInput({ ...DEFAULTS, ...options });
  const chunks: Buffer[] = [];
  for await (const chunk of input.chunks()) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  assert.equal(body.length, input.bytes);
  assert.equal(createHash('sha256').update(body).digest('hex'), input.sha256);
  return { ...input, body: JSON.parse(body.toString('utf8')) };
}

function refused(content: string, message: RegExp, options: Partial<InputOptions> = {}) {
  return assert.rejects(read(content, options), (error: unknown) => {
    assert.ok(error instanceof BatchProblem && error.exitCode === 2, String(error));
    assert.match(error.message, message);
    return true;
  });
}

test('lines of both forms, however they end and with blank ones between them, become the requests of one body', async () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1 }).filter((each) => each.isWellFormed());
  const line = fc.record({ customId: text, content: text, isOpenai: fc.boolean(), model: fc.boolean() });
  const ends = fc.constantFrom('\n', '\r\n', '\n\n', '\n \t\n');
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(line, ends), { minLength: 1, maxLength: 8 }),
      fc.boolean(),
      async (lines, last) => {
        const requests = lines.map(([{ customId, content, model }]) => ({
          custom_id: customId,
          body: { ...(model && { model: 'one/model' }), messages: [{ role: 'user', content }] },
        }));
        const written = lines.map(([{ isOpenai }], n) =>
          JSON.stringify(isOpenai ? { ...requests[n], method: 'POST', url: '/v1/responses' } : requests[n]),
        );
        const content = written.map((each, n) => each + (n === lines.length - 1 && last ? '' : lines[n]![1])).join('');
        const { body, requests: count, lineOf } = await read(content, { model: 'other/model' });
        const withoutModel = requests.map(({ custom_id, body: { messages } }) => ({ custom_id, body: { messages } }));
        assert.deepEqual(body.requests, withoutModel);
        assert.equal(body.model, 'other/model');
        assert.equal(
          body.endpoint,
          lines.some(([{ isOpenai }]) => isOpenai) ? '/v1/responses' : '/v1/chat/completions',
        );
        assert.equal(count, lines.length);
        const writtenLines = content.split(/\r?\n/);
        for (const n of requests.keys()) assert.equal(writtenLines[lineOf(n) - 1], written[n]);
      },
    ),
    { numRuns: samples(100) },
  );
});

test('without --model the lines name the model, all of them the same', async () => {
  const line = (model?: string) => JSON.stringify({ custom_id: 'a', body: { ...(model && { model }), x: 1 } });
  const { body } = await read(`\ufeff${line('m/a')}\n${line()}\n`);
  assert.deepEqual([body.model, body.requests[0].body.model], ['m/a', 'm/a']);
  await refused(`${line('m/a')}\n${line('m/b')}`, /^line 2 has the model m\/b, but the batch has m\/a; --model/);
  await refused(line(), /no model is named: give --model/);
});

test('what is wrong names the line', async () => {
  const good = '{"custom_id":"a","body":{"model":"m"}}\n';
  for (const [line, message] of [
    ['{"custom_id":"b","body":', /^line 3 is not a JSON object/],
    ['[]', /^line 3 is not a JSON object/],
    ['{"body":{}}', /^line 3 has no custom_id/],
    ['{"custom_id":7,"body":{}}', /^line 3 has no custom_id/],
    ['{"custom_id":"b"}', /^line 3 has no body/],
    ['{"custom_id":"b","body":[]}', /^line 3 has a body that is not a JSON object/],
    ['{"custom_id":"b","body":{},"params":{}}', /^line 3 has the member "params"/],
    ['{"custom_id":"b","body":{},"method":"GET"}', /^line 3 has a method other than POST/],
    ['{"custom_id":"b","body":{},"url":1}', /^line 3 has a url/],
  ] as const) {
    await refused(`${good}\n${line}\n`, message);
  }
  const url = (text: string) => `{"custom_id":"b","body":{"model":"m"},"url":"${text}"}\n`;
  await refused(
    url('/v1/responses') + url('/v1/embeddings'),
    /^line 2 has the url \/v1\/embeddings, but the batch has/,
  );
  await refused(url('/v1/responses'), /^line 1 has the url/, { endpoint: '/v1/messages' });
  await refused('\n\n', /has no requests/);
  await refused('', /has no requests/);
  await refused(good, /there is no file/, { file: path.join(folder, 'none.jsonl') });
  await refused(good, /cannot be read \(EISDIR\)/, { file: folder });
  await refused(good, /^\/dev\/null must be a file: it is read more than once/, { file: '/dev/null' });
});
