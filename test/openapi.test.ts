import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { describeService } from '../src/openapi.ts';

test('openapi.json is what the operations say (otherwise: npm run openapi)', () => {
  assert.equal(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8'), describeService());
});
