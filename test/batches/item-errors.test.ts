/** An item fails with the error that a request of its own gets, whatever the provider answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { errorOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { batchesOf, type Json } from './batches-client.ts';

const overflow = "This model's maximum context length is 100 tokens. However, your messages resulted in 900 tokens.";
const filtered = {
  error: { message: 'blocked by the content filter', code: 'content_filter', type: null, param: null },
};

/** What the provider answers, and the error type that clients get. Refusals for load are not here: they run again. */
const CAUSES: [answer: Answer, type: string][] = [
  [errorOf('chat', 400, 'no such parameter'), 'invalid_request'],
  [errorOf('chat', 400, overflow), 'context_length_exceeded'],
  [wholeOf(filtered, { status: 400 }), 'content_policy_violation'],
  [errorOf('chat', 401, 'bad key'), 'provider_unavailable'],
  [errorOf('chat', 402, 'no credit'), 'provider_unavailable'],
  [errorOf('chat', 403, 'not for you'), 'provider_unavailable'],
  [errorOf('chat', 404, 'no such model'), 'not_found'],
  [errorOf('chat', 413, 'too large'), 'payload_too_large'],
  [errorOf('chat', 422, 'cannot be processed'), 'unprocessable'],
  [errorOf('chat', 500, 'broken'), 'provider_unavailable'],
  [errorOf('chat', 502, 'broken'), 'provider_unavailable'],
  [errorOf('chat', 504, 'slow'), 'timeout'],
  [wholeOf('no json'), 'provider_unavailable'],
];

test('an item has the error type, message and field that the same request gets on its own', async (t) => {
  const names = CAUSES.flatMap((_, n) => [`alone${n}`, `batch${n}`]);
  const gateway = await startGateway(t, { providers: Object.fromEntries(names.map((name) => [name, {}])) });
  const { send, submitted, ended } = batchesOf(gateway);
  for (const [n, [answer, type]] of CAUSES.entries()) {
    for (const name of [`alone${n}`, `batch${n}`]) gateway.upstream.script(name, [{ ...answer, repeat: true }]);
    const body = { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] };
    const alone = await send('POST', '/chat/completions', { model: `test/alone${n}`, ...body });
    const batch = { endpoint: '/v1/chat/completions', model: `test/batch${n}`, requests: [{ custom_id: 'a', body }] };
    const [{ response, error }] = (await ended((await submitted(batch)).id)).results;
    const own = alone.body.error as Json;
    assert.equal(response, null);
    assert.deepEqual([error.type, error.error_type], [own.metadata.error_type, own.metadata.error_type], own.message);
    assert.equal(error.error_type, type, own.message);
    assert.equal(error.message, own.message.replaceAll('alone', 'batch'));
  }
});
