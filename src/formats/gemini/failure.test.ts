import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { samples } from '../../testing/laws/samples.ts';
import { decodeFailure, failureOf } from './failure.ts';

function body(code: number, status: string, message: string, details: unknown[] = []): string {
  return JSON.stringify({ error: { code, message, status, details } });
}

const info = (reason: string) => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason });
const retry = (retryDelay: string) => ({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay });
const quota = (quotaId: string) => ({
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaId }],
});

test('each error is classified as the fault of the request, of our account, or temporary', () => {
  const table: [number, string, string, unknown[], string][] = [
    [400, 'INVALID_ARGUMENT', 'Request contains an invalid argument.', [], 'invalid_request'],
    [400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [info('API_KEY_INVALID')], 'auth'],
    [400, 'INVALID_ARGUMENT', 'API key expired. Please renew the API key.', [], 'auth'],
    [
      400,
      'INVALID_ARGUMENT',
      'The input token count (9) exceeds the maximum number of tokens allowed (1).',
      [],
      'context_length',
    ],
    [400, 'INVALID_ARGUMENT', 'Request payload size exceeds the limit: 20971520 bytes.', [], 'too_large'],
    [400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.', [], 'quota'],
    [401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.', [], 'auth'],
    [403, 'PERMISSION_DENIED', 'This API method requires billing to be enabled.', [info('BILLING_DISABLED')], 'quota'],
    [403, 'PERMISSION_DENIED', 'Permission denied', [], 'permission'],
    [404, 'NOT_FOUND', 'models/x is not found for API version v1beta', [], 'not_found'],
    [429, 'RESOURCE_EXHAUSTED', 'Resource exhausted', [quota('GenerateRequestsPerMinutePerProject')], 'rate_limit'],
    [429, 'RESOURCE_EXHAUSTED', 'Resource exhausted', [quota('GenerateRequestsPerDayPerProject')], 'quota'],
    [499, 'CANCELLED', 'The operation was cancelled.', [], 'server'],
    [500, 'INTERNAL', 'Internal error encountered.', [], 'server'],
    [503, 'UNAVAILABLE', 'The model is overloaded.', [], 'overloaded'],
    [504, 'DEADLINE_EXCEEDED', 'Deadline expired.', [], 'timeout'],
  ];
  for (const [code, status, message, details, kind] of table) {
    const failure = decodeFailure(code, body(code, status, message, details));
    assert.deepEqual([failure.kind, failure.status, failure.code, failure.message], [kind, code, status, message]);
    // Inside a stream there is no status, so the error's own code counts.
    assert.equal(failureOf(JSON.parse(body(code, status, message, details)), null).kind, kind);
  }
});

test('the requested wait is reported in whole seconds where waiting helps', () => {
  const wait = (code: number, status: string, delay: string) =>
    decodeFailure(code, body(code, status, 'x', [retry(delay)])).retryAfterSeconds;
  assert.equal(wait(429, 'RESOURCE_EXHAUSTED', '34.4s'), 35);
  assert.equal(wait(503, 'UNAVAILABLE', '2s'), 2);
  assert.equal(wait(400, 'INVALID_ARGUMENT', '2s'), undefined);
  assert.equal(wait(429, 'RESOURCE_EXHAUSTED', 'soon'), undefined);
});

test('an error wrapped in a list is read like any other', () => {
  const listed = `[${body(429, 'RESOURCE_EXHAUSTED', 'slow down')}]`;
  assert.deepEqual([decodeFailure(429, listed).kind, decodeFailure(429, listed).message], ['rate_limit', 'slow down']);
});

test('debug details of the service are removed', () => {
  const debug = { '@type': 'type.googleapis.com/google.rpc.DebugInfo', detail: 'Invalid API key: AIzaSecret' };
  const failure = decodeFailure(400, body(400, 'INVALID_ARGUMENT', 'no', [debug, info('X')]));
  assert.ok(!JSON.stringify(failure).includes('AIzaSecret'));
  assert.ok(JSON.stringify(failure.raw).includes('ErrorInfo'));
});

test('any status and any body yield a failure with a message', () => {
  fc.assert(
    fc.property(fc.integer({ min: 400, max: 599 }), fc.oneof(fc.string(), fc.json()), (status, text) => {
      const failure = decodeFailure(status, text);
      assert.equal(failure.status, status);
      assert.ok(failure.message.length > 0);
    }),
    { numRuns: samples(300) },
  );
});
