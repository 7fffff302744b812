/** Error replies of AWS services: exception name in a header, in the body, or missing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { converse } from './index.ts';

const body = (message: string, more = {}) => JSON.stringify({ message, ...more });
const head = (type: string) => ({ 'x-amzn-errortype': type });

test('the exception name decides, wherever it is', () => {
  const cases: [number, string, Record<string, string>, string, string | null][] = [
    [429, body('Too many requests'), head('ThrottlingException'), 'rate_limit', 'ThrottlingException'],
    [
      400,
      body('quota'),
      head('ServiceQuotaExceededException:http://internal.amazon.com/x/'),
      'quota',
      'ServiceQuotaExceededException',
    ],
    [
      403,
      body('You do not have access to the model'),
      head('AccessDeniedException'),
      'permission',
      'AccessDeniedException',
    ],
    [
      403,
      body('The security token included in the request is expired'),
      head('ExpiredTokenException:http://x/'),
      'auth',
      'ExpiredTokenException',
    ],
    [
      403,
      body('no', { __type: 'com.amazon.coral.service#UnrecognizedClientException' }),
      {},
      'auth',
      'UnrecognizedClientException',
    ],
    [403, body('Authentication failed: invalid api key format'), {}, 'auth', null],
    [404, body('gone'), head('ResourceNotFoundException'), 'not_found', 'ResourceNotFoundException'],
    [408, body('slow'), head('ModelTimeoutException'), 'timeout', 'ModelTimeoutException'],
    [424, body('broke'), head('ModelErrorException'), 'server', 'ModelErrorException'],
    [429, body('warming up'), head('ModelNotReadyException'), 'overloaded', 'ModelNotReadyException'],
    [500, body('oops'), head('InternalServerException'), 'server', 'InternalServerException'],
    [503, body('later'), head('ServiceUnavailableException'), 'overloaded', 'ServiceUnavailableException'],
    [400, body('Malformed input request'), head('ValidationException'), 'invalid_request', 'ValidationException'],
    [413, '', {}, 'too_large', null],
    [502, '<html>bad gateway</html>', {}, 'server', null],
  ];
  for (const [status, text, headers, kind, code] of cases) {
    const failure = converse.decodeFailure(status, text, headers);
    assert.deepEqual([failure.kind, failure.status, failure.code], [kind, status, code], text);
  }
});

test('the text of a validation error distinguishes a long prompt from an unknown model', () => {
  const kind = (message: string) => converse.decodeFailure(400, body(message), head('ValidationException')).kind;
  assert.equal(kind('Input is too long for requested model.'), 'context_length');
  assert.equal(
    kind('The model returned the following errors: prompt is too long: 250000 tokens > 200000 maximum'),
    'context_length',
  );
  assert.equal(
    kind('Too many input tokens. Max input tokens: 8192, request input token count: 9000'),
    'context_length',
  );
  assert.equal(kind('The provided model identifier is invalid.'), 'not_found');
  assert.equal(kind("Invocation of model ID x with on-demand throughput isn't supported."), 'not_found');
  assert.equal(kind('messages: roles must alternate'), 'invalid_request');
});

test('an error inside a 200 is a failure, and a body that is not a reply is malformed', () => {
  const error = converse.decodeReply({ message: 'no', __type: 'ThrottlingException' }, {});
  assert.ok('failure' in error && error.failure.kind === 'rate_limit');
  for (const value of [null, [], {}, { output: {} }]) {
    const read = converse.decodeReply(value, {});
    assert.ok('failure' in read && read.failure.kind === 'malformed');
  }
});
