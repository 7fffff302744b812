import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeFailure } from './failure.ts';

test('statuses that say nothing about the request are not its fault', () => {
  for (const [status, kind] of [
    [405, 'not_found'],
    [410, 'not_found'],
    [424, 'server'],
    [499, 'server'],
    [524, 'timeout'],
    [529, 'overloaded'],
    [422, 'invalid_request'],
  ] as const) {
    for (const body of ['<html></html>', '', '{"message":"m"}']) {
      assert.equal(decodeFailure(status, body).kind, kind, `${status} ${body}`);
    }
  }
});
