import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { linesOf, objectOf, oneLine, spliced } from './lines.ts';

async function all(chunks: readonly Buffer[]): Promise<string[]> {
  async function* content() {
    yield* chunks;
  }
  const lines: string[] = [];
  for await (const line of linesOf(content())) lines.push(line.toString());
  return lines;
}

test('lines are the same wherever the content is cut, the last one without an end included', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: 'binary' })), fc.array(fc.nat(200)), async (texts, cuts) => {
      const lines = texts.map((text) => JSON.stringify(text));
      const bytes = Buffer.from(lines.join('\n'));
      const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
      const chunks = [...ends, bytes.length].map((end, at) => bytes.subarray(at === 0 ? 0 : ends[at - 1], end));
      assert.deepEqual(await all(chunks), bytes.length === 0 ? [] : lines);
    }),
  );
});

test('members are the bytes that came, and half a line has none', () => {
  const line = Buffer.from('{"custom_id": "ü", "body": {"n": 9007199254740993, "t": "\\u0000"}}');
  const object = objectOf(line)!;
  assert.equal(object.member('custom_id'), 'ü');
  assert.equal(object.bytes('body')!.toString(), '{"n": 9007199254740993, "t": "\\u0000"}');
  assert.equal(object.member('missing'), null);
  for (let end = 0; end < line.length; end += 1) assert.equal(objectOf(line.subarray(0, end)), undefined, String(end));
  for (const text of ['[]', 'null', '1', '"{}"']) assert.equal(objectOf(Buffer.from(text)), undefined);
});

test('a call becomes one line with the same meaning', () => {
  const body = Buffer.from('{\r\n  "text": "a\\nb ü",\n  "big": 9007199254740993\n}');
  const line = oneLine({ body });
  assert.ok(!line.includes('\n') && !line.includes('\r'));
  assert.deepEqual(JSON.parse(line.toString()), JSON.parse(body.toString()));
  assert.equal(spliced(['a"', '1'], ['b', line]).toString(), `{"a\\"":1,"b":${line}}`);
});
