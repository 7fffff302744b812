/**
 * The Python client libraries, unmodified, against the gateway in front of upstreams of both formats. Each program in
 * `test/sdk/python/` uses one library as an application does, and prints what it got.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { type Json, UPSTREAMS } from '../../src/testing/gateway/sdk.ts';
import { PYTHON_CLIENTS, pythonWith } from '../../src/testing/process/python.ts';
import { answerOf, type Format } from '../../src/testing/upstream/answers.ts';

const CLIENTS: readonly { name: string; library: string; program: string; format: 'openai' | 'anthropic' }[] = [
  { name: 'openai', library: 'openai', program: 'openai_client.py', format: 'openai' },
  { name: 'anthropic', library: 'anthropic', program: 'anthropic_client.py', format: 'anthropic' },
  { name: 'langchain-openai', library: 'langchain-openai', program: 'langchain_client.py', format: 'openai' },
  { name: 'litellm (openai)', library: 'litellm', program: 'litellm_client.py', format: 'openai' },
  { name: 'litellm (anthropic)', library: 'litellm', program: 'litellm_client.py', format: 'anthropic' },
];
const TEXT = 'Bonjour, 北京 🌤';
const USAGE = { input: 12, output: 7 };

const closers: (() => Promise<void>)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});
/** Made by the first test: the packages may take minutes, and tests of other files in this process must not wait. */
let made: Promise<Gateway> | undefined;

function bench(): Promise<Gateway> {
  made ??= startGateway(
    { after: (close) => void closers.push(close as () => Promise<void>) },
    { providers: { chat: { kind: 'openrouter' }, messages: { kind: 'messages' } } },
  );
  return made;
}

/** What each program asks for, in this order. */
function scriptUpstream(gateway: Gateway, form: Format): void {
  const call = { id: 'call_1', name: 'weather', arguments: '{"city":"Köln"}' };
  gateway.upstream.script(form, [
    answerOf(form, false, { text: TEXT, usage: USAGE }),
    answerOf(form, true, { text: TEXT, usage: USAGE }),
    answerOf(form, false, { calls: [call] }),
    answerOf(form, false, { text: 'Rain.' }),
    answerOf(form, false, { text: 'From responses.' }),
  ]);
}

for (const { name, program, format, library } of CLIENTS) {
  if (!PYTHON_CLIENTS.some((each) => each.startsWith(`${library}==`))) continue;
  for (const form of UPSTREAMS) {
    test(`Python ${name} | text, streams, tools and errors | ${form} upstream`, async (t) => {
      const python = await pythonWith(PYTHON_CLIENTS);
      if (python.skip !== false) return t.skip(python.skip);
      const gateway = await bench();
      const before = gateway.upstream.requests(form).length;
      scriptUpstream(gateway, form);
      const file = path.join(import.meta.dirname, 'python', program);
      const env = { ROOT: gateway.url, KEY: INFERENCE_KEY, MODEL: `test/${form}`, FORMAT: format };
      const seen = JSON.parse((await python.run(t, [file], env)).trim().split('\n').at(-1)!) as Json;
      assert.equal(seen.whole, TEXT);
      assert.equal(seen.stream, TEXT);
      assert.ok(['stop', 'end_turn'].includes(seen.finish), seen.finish);
      assert.deepEqual(seen.usage, [USAGE.input, USAGE.output]);
      assert.deepEqual(seen.stream_usage, [USAGE.input, USAGE.output]);
      assert.deepEqual(seen.call, ['call_1', 'weather', { city: 'Köln' }]);
      assert.equal(seen.after_tools, 'Rain.');
      assert.match(seen.unknown_model, new RegExp(`did you mean test/${form}\\?`));
      assert.equal(seen.wrong_key, 401);
      if (name === 'openai') assert.equal(seen.responses, 'From responses.');
      const [, , , answered] = gateway.upstream.requests(form).slice(before);
      assert.ok(JSON.stringify(answered?.json).includes('rain, 9 °C'));
    });
  }
}

test('Python openai | batches: input, output and error files', async (t) => {
  const python = await pythonWith(PYTHON_CLIENTS);
  if (python.skip !== false) return t.skip(python.skip);
  const gateway = await bench();
  const file = path.join(import.meta.dirname, 'python', 'openai_batches.py');
  const seen = JSON.parse((await python.run(t, [file], { ROOT: gateway.url, KEY: INFERENCE_KEY })).trim()) as Json;
  assert.deepEqual(seen, {
    made: ['batch', 'validating', { team: 'research' }],
    done: ['completed', 'simulated/script', { completed: 1, failed: 1, total: 2 }, true],
    output: [['a', TEXT]],
    errors: [['b', 400]],
    bad: ['failed', 'duplicate_custom_id', 2, 'custom_id'],
    missing: 404,
    cancelling: 'cancelling',
    cancelled: 'cancelled',
    listed: true,
    expires: 3_600,
    files: true,
    deleted: true,
  });
});

test('Python anthropic | message batches', async (t) => {
  const python = await pythonWith(PYTHON_CLIENTS);
  if (python.skip !== false) return t.skip(python.skip);
  const gateway = await bench();
  const file = path.join(import.meta.dirname, 'python', 'anthropic_batches.py');
  const env = { ROOT: gateway.url, KEY: INFERENCE_KEY, MODEL: 'simulated/echo' };
  const seen = JSON.parse((await python.run(t, [file], env)).trim().split('\n').at(-1)!) as Json;
  for (const name of ['plain', 'beta']) {
    assert.deepEqual(seen[name], {
      status: ['in_progress', 'ended'],
      counts: [2, 2],
      took: true,
      texts: { a: 'first', b: 'second' },
      listed: true,
      deleted: 'message_batch_deleted',
    });
  }
  assert.deepEqual([seen.cancelled, seen.all], ['canceling', 50]);
  assert.deepEqual([seen.conflict, seen.unknown], ['invalid_request_error', 'not_found_error']);
  assert.match(seen.duplicate, /^requests\.1\.custom_id "a" is also that of requests\.0/);
});
