/** U+0000, which the database cannot store, is refused with 400 in every path and body of the control plane. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operations } from '../../src/operations.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { startDirectory } from '../scim/directory.ts';

/** Bodies with a text that is kept, or only compared with what is. */
const BODIES: [path: string, body: object][] = [
  ['/analytics/query', { metrics: ['request_count'], filters: [{ field: 'model', operator: 'eq', value: 'a\0' }] }],
  ['/workspaces', { name: 'n', slug: 'n', description: '\0' }],
  ['/generation/feedback', { generation_id: '\0', category: 'other' }],
  ['/workspaces/default/members/add', { user_ids: ['user_\0'] }],
  ['/workspaces/default/members/remove', { user_ids: ['user_\0'] }],
  ['/guardrails/GUARDRAIL/assignments/keys', { key_hashes: ['\0'] }],
  ['/guardrails/GUARDRAIL/assignments/keys/remove', { key_hashes: ['\0'] }],
  ['/guardrails/GUARDRAIL/assignments/members', { member_user_ids: ['\0'] }],
  ['/guardrails/GUARDRAIL/assignments/members/remove', { member_user_ids: ['\0'] }],
];

/** Members of a request to a model that name something stored. */
const NAMES: [path: string, members: object][] = [
  ['previous_response_id', { previous_response_id: 'resp_\0' }],
  ['conversation', { conversation: 'conv_\0' }],
  ['conversation.id', { conversation: { id: 'conv_\0' } }],
  ['input[0].id', { input: [{ type: 'item_reference', id: 'msg_\0' }] }],
];

test('a character that cannot be stored is 404 in every path and 400 in a body', async (t) => {
  const { gateway, token, control } = await startDirectory(t);
  const contracts = operations({ limits: { inferenceBodyBytes: 1024 } } as Parameters<typeof operations>[0]);
  const named = contracts.filter(({ path }) => path.includes('{'));
  assert.ok(named.length > 20);
  for (const { method, path, root, body, access } of named) {
    const key = access.kinds.includes('management') ? MANAGEMENT_KEY : INFERENCE_KEY;
    const response = await fetch((root ? gateway.url : gateway.api) + path.replaceAll(/\{\w+\}/g, 'a%00'), {
      method,
      headers: {
        authorization: `Bearer ${path.startsWith('/scim/v2') ? token : key}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: '{}' }),
    });
    await response.arrayBuffer();
    // The protocol of identity providers reads the body first.
    const isTold = response.status === 404 || (path.startsWith('/scim/v2') && body && response.status === 400);
    assert.ok(isTold, `${method} ${path}: ${response.status}`);
  }
  const { id } = (await control.call('POST', '/guardrails', { name: 'g' })).body.data;
  for (const [path, body] of BODIES) {
    const answer = await control.call('POST', path.replace('GUARDRAIL', id), body);
    assert.equal(answer.status, 400, `${path}: ${JSON.stringify(answer.body)}`);
    assert.match(answer.body.error.message, /U\+0000/);
  }
  for (const operation of ['/responses', '/responses/compact', '/responses/input_tokens']) {
    for (const [path, members] of NAMES) {
      const response = await gateway.post(operation, { model: 'test/none', input: 'x', ...members });
      const { error } = (await response.json()) as { error: { message: string } };
      assert.equal(response.status, 400, `${operation} ${path}: ${error.message}`);
      assert.ok(error.message.startsWith(`${path} `) || operation !== '/responses', `${operation}: ${error.message}`);
    }
  }
});
