import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ERROR_STATUS } from '../../src/base/errors.ts';
import { ROOT } from './source-files.ts';

test('docs/guides/errors.md lists every type of error with its status', () => {
  const guide = readFileSync(path.join(ROOT, 'docs/guides/errors.md'), 'utf8');
  const rows = [...guide.matchAll(/^\| `(\w+)` \| (\d{3}) \|/gm)].map(([, type, status]) => [type, Number(status)]);
  assert.deepEqual(Object.fromEntries(rows), ERROR_STATUS);
  assert.equal(rows.length, Object.keys(ERROR_STATUS).length, 'no type stands there twice');
});
