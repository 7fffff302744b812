import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SAMPLE_USAGE, sampleAccepted, sampleGeneration } from '../testing/laws/spend-samples.ts';
import type { Member } from './column.ts';
import { type Generation, MEMBERS } from './generation.ts';
import { COLUMNS, decodeRow, encodeRow, type StoredRow } from './row.ts';

const members = Object.entries(MEMBERS) as [keyof Generation, Member<unknown, object>][];
const written = (row: Generation) => JSON.parse(encodeRow(row)) as StoredRow;
const money = fc.bigInt({ min: 0n, max: 2n ** 53n });

/** A row in which every member has a value of its own. */
function fullRow(): Generation {
  const values = members.map(([name, { columns, empty }], at) => {
    if (name === 'usage') return [name, { ...SAMPLE_USAGE, webSearches: 4 }];
    const [sql] = Object.values(columns);
    if (sql === 'text') return [name, `text ${name}`];
    if (sql === 'boolean') return [name, true];
    if (sql === 'bigint') return [name, BigInt(at)];
    if (sql === 'jsonb') return [name, Array.isArray(empty) ? [{ [name]: at }] : { [name]: at }];
    return [name, at];
  });
  return Object.fromEntries(values);
}

test('the encoder writes every column as the table says, and no other', () => {
  const full = fullRow();
  const expected = (row: Generation) =>
    JSON.parse(JSON.stringify(Object.assign({}, ...members.map(([name, member]) => member.encode(row[name])))));
  assert.deepEqual(Object.keys(written(full)).toSorted(), COLUMNS.map(([name]) => name).toSorted());
  assert.deepEqual(written(full), expected(full));
  for (const [name, { empty }] of members) {
    const without = { ...full, [name]: empty };
    assert.deepEqual(written(without), expected(without), name);
    assert.notDeepEqual(written(without), written(full), name);
  }
});

test('every member is read back as it was written, with a value and without', () => {
  const full = fullRow();
  assert.deepEqual(decodeRow(written(full)), full);
  for (const [name, { empty }] of members) {
    const without = { ...full, [name]: empty };
    if (empty === undefined) delete without[name];
    assert.deepEqual(decodeRow(written(without)), without, name);
  }
});

test('a row is read back as it was settled, with money exact to the nano-dollar', () => {
  fc.assert(
    fc.property(money, money, fc.option(money, { nil: null }), (cost, byok, upstream) => {
      const row = sampleGeneration(sampleAccepted('gen-1'), {
        costNano: cost,
        byokNano: byok,
        upstreamCostNano: upstream,
      });
      assert.deepEqual(decodeRow(written(row)), row);
    }),
  );
});

test('a row never contains what PostgreSQL refuses: NUL, lone surrogates, non-integer counts', () => {
  const usage = { ...SAMPLE_USAGE, input: 1.4, output: 1e300, reasoning: Number.NaN, cacheRead: -3 };
  const accepted = sampleAccepted('gen-1', { metadata: { 'k\0': '\\u0000 \ud83d \0', ok: '😀' } });
  const row = written(sampleGeneration(accepted, { usage, costNano: 10n ** 40n }));
  assert.deepEqual(row.metadata, { 'k\ufffd': '\\u0000 \ufffd \ufffd', ok: '😀' });
  assert.equal(row.input_tokens, 1);
  assert.equal(row.output_tokens, Number.MAX_SAFE_INTEGER);
  assert.equal(row.reasoning_tokens, 0);
  assert.equal(row.cache_read_tokens, 0);
  assert.equal(row.cost_nano, String(2n ** 53n));
});
