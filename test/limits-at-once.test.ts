/** A limit that is set counts what was spent before it, to the last request, whichever process served that. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { wholeOf } from '../src/testing/answers.ts';
import { startGateway } from '../src/testing/gateway.ts';
import { controlOf, type Json } from './workspaces/control.ts';

const OK = {
  id: 'c',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100_000, completion_tokens: 0, total_tokens: 100_000 },
};
/** 100,000 tokens of 3 millionths of a dollar. */
const COST = 0.3;

async function twoProcesses(t: TestContext) {
  const providers = { a: {} };
  const first = await startGateway(t, { providers });
  const second = await startGateway(t, { providers, target: first.target });
  for (const { upstream } of [first, second]) upstream.script('a', [{ ...wholeOf(OK), repeat: true }]);
  const control = controlOf(first);
  const key = await control.keyIn(undefined, 'spender');
  const elsewhere = controlOf(second);
  return {
    control,
    key,
    /** Through the other process than the one that is told of limits. */
    spend: (): Promise<{ status: number; body: Json }> =>
      elsewhere.call(
        'POST',
        '/chat/completions',
        { model: 'test/a', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] },
        key.token,
      ),
  };
}

test('a limit that a key is given counts the request that was answered just before', async (t) => {
  const { control, key, spend } = await twoProcesses(t);
  assert.equal((await spend()).status, 200);
  const { status } = await control.call('PATCH', `/keys/${key.hash}`, { limit: COST, limit_reset: 'daily' });
  assert.equal(status, 200);
  assert.equal((await spend()).status, 402);
  assert.equal((await control.call('PATCH', `/keys/${key.hash}`, { limit: null })).status, 200);
  assert.equal((await spend()).status, 200);
  // Another window has other spend in it.
  assert.equal(
    (await control.call('PATCH', `/keys/${key.hash}`, { limit: 2 * COST, limit_reset: 'monthly' })).status,
    200,
  );
  assert.equal((await spend()).status, 402);
});
