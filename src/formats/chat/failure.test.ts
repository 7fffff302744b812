import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeFailure } from './failure.ts';

/** From the services' documentation and user reports. */
const BODIES: readonly [service: string, status: number, body: unknown, kind: string][] = [
  [
    'alibaba',
    400,
    { error: { code: 'data_inspection_failed', message: 'Input data may contain inappropriate content.' } },
    'content_filter',
  ],
  [
    'alibaba',
    400,
    { code: 'DataInspectionFailed', message: 'Output data may contain inappropriate content.' },
    'content_filter',
  ],
  [
    'alibaba',
    400,
    { error: { code: 'invalid_parameter_error', message: 'Range of input length should be [1, 30720]' } },
    'context_length',
  ],
  [
    'alibaba',
    400,
    { error: { code: 'Arrearage', message: 'Access denied, please make sure your account is in good standing.' } },
    'quota',
  ],
  [
    'alibaba',
    403,
    { error: { code: 'AllocationQuota.FreeTierOnly', message: 'The free tier of the model has been exhausted.' } },
    'quota',
  ],
  ['deepseek', 400, { error: { message: 'Content Exists Risk', type: 'invalid_request_error' } }, 'content_filter'],
  ['deepseek', 402, { error: { message: 'Insufficient Balance', type: 'unknown_error' } }, 'quota'],
  [
    'zai',
    400,
    { error: { code: '1301', message: 'System detected potentially unsafe or sensitive content in input' } },
    'content_filter',
  ],
  ['zai', 400, { error: { code: '1261', message: 'Prompt exceeds max length' } }, 'context_length'],
  [
    'zai',
    429,
    { error: { code: '1113', message: 'Insufficient balance or no resource package. Please recharge.' } },
    'quota',
  ],
  [
    'zai',
    429,
    { error: { code: '1302', message: 'High concurrency usage of this API, please reduce concurrency' } },
    'rate_limit',
  ],
  [
    'xai',
    400,
    {
      code: 'invalid-argument',
      error: "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
    },
    'context_length',
  ],
  ['xai', 403, { code: 'permission-denied', error: "Your newly created team doesn't have any credits yet." }, 'quota'],
  [
    'fireworks',
    412,
    { error: { message: 'Account x is suspended, possibly due to reaching the monthly spending limit' } },
    'quota',
  ],
  [
    'groq',
    400,
    {
      error: {
        code: 'model_decommissioned',
        message: 'The model `x` has been decommissioned and is no longer supported.',
      },
    },
    'not_found',
  ],
  ['groq', 498, { error: { message: 'Flex tier capacity exceeded' } }, 'overloaded'],
  [
    'huggingface',
    400,
    {
      error: {
        code: 'model_not_supported',
        message: "The requested model 'x' is not supported by any provider you have enabled.",
      },
    },
    'not_found',
  ],
  [
    'huggingface',
    422,
    { error: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096' },
    'context_length',
  ],
  [
    'llamacpp',
    400,
    {
      error: {
        code: 400,
        type: 'exceed_context_size_error',
        message: 'the request exceeds the available context size',
      },
    },
    'context_length',
  ],
  ['llamacpp', 503, { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } }, 'overloaded'],
  ['ollama', 404, { error: { message: 'model "x" not found, try pulling it first', type: 'api_error' } }, 'not_found'],
  [
    'lmstudio',
    400,
    { error: 'Invalid tool_choice type: object. Supported string values: none, auto, required' },
    'invalid_request',
  ],
  [
    'azure',
    404,
    { error: { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' } },
    'not_found',
  ],
  [
    'together',
    422,
    { error: { message: 'Input validation error', type: 'invalid_request_error', code: null } },
    'invalid_request',
  ],
  [
    'mistral',
    422,
    { object: 'error', message: { detail: [{ type: 'extra_forbidden', loc: ['body', 'x'] }] } },
    'invalid_request',
  ],
  [
    'moonshot',
    429,
    {
      error: {
        type: 'exceeded_current_quota_error',
        message: 'Your account is suspended, please check your plan and billing details',
      },
    },
    'quota',
  ],
  [
    'moonshot',
    429,
    {
      error: { type: 'engine_overloaded_error', message: 'The engine is currently overloaded, please try again later' },
    },
    'rate_limit',
  ],
];

test('failures are classified from every known wording of a service', () => {
  for (const [service, status, body, kind] of BODIES) {
    const failure = decodeFailure(status, JSON.stringify(body));
    assert.equal(failure.kind, kind, `${service} ${status} ${JSON.stringify(body)}`);
    assert.equal(failure.status, status);
    assert.notEqual(failure.message, '');
  }
});

test('a code that is an object without text is not a status and not a fault of the gateway', () => {
  for (const code of [{ toString: false }, { valueOf: null, toString: null }, [{ toString: 1 }], null, true]) {
    const failure = decodeFailure(400, JSON.stringify({ error: { message: 'no', code, status: code } }));
    assert.deepEqual([failure.status, failure.message], [400, 'no']);
  }
});
