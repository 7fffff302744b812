/** What the README says about settings is what the code reads. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { variableTable } from '../src/base/config.ts';
import { KINDS } from '../src/providers/index.ts';

test("the README's table of settings has every variable, with its default and meaning, and no other", () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, table] = readme.split('| variable | default | meaning |\n|---|---|---|\n');
  assert.ok(table !== undefined, 'the README has no table of settings');
  const rows = table.split('\n');
  assert.deepEqual(rows.slice(0, rows.indexOf('')), variableTable(KINDS));
});
