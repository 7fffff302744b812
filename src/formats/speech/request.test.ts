import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDocument } from '../../base/json.ts';
import { check } from './request.ts';

test('no speed makes a speech endless', () => {
  const checked = (speed: number) =>
    check(readDocument(Buffer.from(JSON.stringify({ model: 'm', input: 'x', speed }))));
  for (const speed of [5e-324, 1e-9, 0.01]) assert.throws(() => checked(speed), /speed must be at least 0\.1/);
  for (const speed of [0.1, 1, 10]) checked(speed);
});
