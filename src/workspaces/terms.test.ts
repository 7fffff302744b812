import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTerms } from './terms.ts';

/** Answers with one row, like the table would. */
function tableOf(row: Record<string, unknown>) {
  return {
    row,
    query: async <Row>(_text: string, [ids]: readonly unknown[] = []) =>
      (ids as string[]).filter((id) => id === row['id']).map(() => ({ ...row })) as Row[],
  };
}

const NO_PRESETS = async () => new Map();

const ROW = {
  id: 'w',
  version: '3',
  defaultTextModel: null,
  defaultImageModel: null,
  defaultProviderSort: 'price',
  disabledServerTools: ['svc:bash'],
  ioLoggingKeyNumbers: ['4503599627370495'],
  ioLoggingSamplingRate: 0.5,
  ioLogging: true,
  includeByokInBudgets: true,
  budgets: [
    { interval: 'daily', limit: '1000000001' },
    { interval: 'lifetime', limit: '9007199254740993' },
  ],
};

test('all keys of a workspace get one object until its version changes', async () => {
  const table = tableOf({ ...ROW });
  const termsOf = createTerms(table as never, NO_PRESETS);
  const first = (await termsOf(['w', 'nobody'])).get('w');
  assert.equal((await termsOf(['w'])).get('w'), first);
  table.row['version'] = '4';
  const next = (await termsOf(['w'])).get('w');
  assert.notEqual(next, first);
  assert.deepEqual(next!.budgets[0]?.version, 4);
  table.row['version'] = '3';
  await termsOf(['w']);
  table.row['version'] = '4';
  assert.equal((await termsOf(['w'])).get('w'), next, 'an answer that was overtaken changes nothing');
  assert.equal((await termsOf(['nobody'])).size, 0);
});

test('terms keep limits to the nano-dollar, widest first, and exact key numbers', async () => {
  const terms = (await createTerms(tableOf({ ...ROW }) as never, NO_PRESETS)(['w'])).get('w')!;
  assert.deepEqual(terms.budgets, [
    {
      scope: 'workspace',
      scopeId: 'w',
      interval: 'lifetime',
      limitNano: 9007199254740993n,
      includeByok: true,
      version: 3,
    },
    { scope: 'workspace', scopeId: 'w', interval: 'daily', limitNano: 1000000001n, includeByok: true, version: 3 },
  ]);
  assert.deepEqual(terms.ioLogging, { samplingRate: 0.5, keyNumbers: new Set([4503599627370495]) });
  assert.deepEqual([terms.defaultProviderSort, terms.disabledServerTools], ['price', new Set(['svc:bash'])]);
});

test('disabled io logging is null in the terms', async () => {
  const terms = (await createTerms(tableOf({ ...ROW, ioLogging: false }) as never, NO_PRESETS)(['w'])).get('w')!;
  assert.equal(terms.ioLogging, null);
});
