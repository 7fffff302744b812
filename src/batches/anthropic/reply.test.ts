import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERROR_STATUS, type ErrorType, GatewayError } from '../../base/errors.ts';
import type { StoredResult } from '../items.sql.ts';
import { CANCELLED, EXPIRED, type ItemError, itemErrorOf, resultJson } from '../results/result.ts';
import { messageResultJson } from './reply.ts';

/** Every error type that an item can have, and what Anthropic's clients know it as. */
const TYPES: Record<ErrorType, string> = {
  context_length_exceeded: 'invalid_request_error',
  max_tokens_exceeded: 'invalid_request_error',
  token_limit_exceeded: 'invalid_request_error',
  string_too_long: 'invalid_request_error',
  authentication: 'authentication_error',
  permission_denied: 'permission_error',
  payment_required: 'billing_error',
  rate_limit_exceeded: 'rate_limit_error',
  provider_overloaded: 'overloaded_error',
  provider_unavailable: 'api_error',
  invalid_request: 'invalid_request_error',
  invalid_prompt: 'invalid_request_error',
  not_found: 'not_found_error',
  precondition_failed: 'invalid_request_error',
  payload_too_large: 'invalid_request_error',
  unprocessable: 'invalid_request_error',
  content_policy_violation: 'invalid_request_error',
  refusal: 'invalid_request_error',
  invalid_image: 'invalid_request_error',
  image_too_large: 'invalid_request_error',
  image_too_small: 'invalid_request_error',
  unsupported_image_format: 'invalid_request_error',
  image_not_found: 'not_found_error',
  image_download_failed: 'invalid_request_error',
  server: 'api_error',
  timeout: 'timeout_error',
  unmapped: 'api_error',
};

const BATCH = '01a227e2-247b-7c03-85ca-574b5d0d0002';

function failed(error: ItemError): StoredResult {
  return {
    ...{ position: 3, customId: 'c"d', outcome: 'failed', statusCode: null, requestId: 'gen-1' },
    ...{ response: null, error, usage: null },
  };
}

const shown = (error: ItemError) => JSON.parse(String(messageResultJson(BATCH, failed(error))));

test('an item that failed has its error type in a batch, and the type that clients of Anthropic know', () => {
  assert.deepEqual(Object.keys(TYPES).toSorted(), Object.keys(ERROR_STATUS).toSorted());
  for (const [type, known] of Object.entries(TYPES) as [ErrorType, string][]) {
    const error = itemErrorOf(new GatewayError(type, `why: ${type}`, { path: 'messages[0]' }));
    const own = JSON.parse(String(resultJson(BATCH, failed(error))));
    assert.deepEqual([own.custom_id, own.response], ['c"d', null]);
    assert.deepEqual(own.error, { type, message: `why: ${type}`, param: 'messages[0]', error_type: type });
    const { custom_id, result } = shown(error);
    assert.deepEqual(
      [custom_id, result.type, result.error.type, result.error.request_id],
      ['c"d', 'errored', 'error', 'gen-1'],
    );
    assert.deepEqual([result.error.error.type, result.error.error.error_type], [known, type], type);
    assert.ok(result.error.error.message.endsWith(`why: ${type}`), result.error.error.message);
  }
});

test('items that never ran are named by why they did not', () => {
  assert.deepEqual(shown(CANCELLED), { custom_id: 'c"d', result: { type: 'canceled' } });
  assert.deepEqual(shown(EXPIRED), { custom_id: 'c"d', result: { type: 'expired' } });
});
