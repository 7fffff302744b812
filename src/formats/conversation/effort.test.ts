import assert from 'node:assert/strict';
import { test } from 'node:test';
import { budgetFromEffort, budgetOf, EFFORTS, effortFromBudget, effortOf } from './effort.ts';

test('an effort is a share of the output cap, within the smallest and the largest budget', () => {
  const budgets = EFFORTS.map((effort) => budgetFromEffort(effort, 20_000));
  assert.deepEqual(budgets, [null, 2_000, 4_000, 10_000, 16_000, 19_000, 19_000]);
  assert.equal(budgetFromEffort('minimal', 2_000), 1_024);
  assert.equal(budgetFromEffort('max', 1_000_000), 128_000);
});

test('a budget maps to the nearest of low, medium and high, and back to the same word', () => {
  for (const effort of ['low', 'medium', 'high'] as const) {
    assert.equal(effortFromBudget(budgetFromEffort(effort, 50_000)!, 50_000), effort);
  }
  assert.equal(effortFromBudget(0, 50_000), 'none');
  assert.equal(effortFromBudget(49_999, 50_000), 'high');
});

test('settings yield effort and budget, whichever of the two was given', () => {
  assert.equal(effortOf(undefined, null), undefined);
  assert.equal(effortOf({ enabled: false, effort: 'high' }, null), 'none');
  assert.equal(effortOf({ enabled: true }, null), 'medium');
  assert.equal(effortOf({ enabled: true, adaptive: true }, null), undefined);
  assert.equal(effortOf({ budgetTokens: 1_024 }, 20_000), 'low');
  assert.equal(budgetOf({ effort: 'none' }, 20_000), null);
  assert.equal(budgetOf({ budgetTokens: 5_000 }, 20_000), 5_000);
  assert.equal(budgetOf({ enabled: true }, 20_000), 10_000);
  assert.equal(budgetOf({ adaptive: true }, 20_000), undefined);
});
