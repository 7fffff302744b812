/** POST /guardrails/{id}/test: what a text would trigger is what a request with it triggers. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

let gateway: Gateway;
let id: string;
const closers: (() => Promise<void>)[] = [];
before(async () => {
  gateway = await startGateway({ after: (close) => void closers.push(close as () => Promise<void>) });
  const body = {
    name: 'trial',
    content_filter_builtins: [
      { slug: 'email', action: 'redact' },
      { slug: 'ssn', action: 'block' },
    ],
    content_filters: [
      { pattern: 'Project \\w+', action: 'flag', label: '[PROJECT]' },
      { pattern: 'answers only', action: 'block', apply_to: ['response'] },
    ],
  };
  id = (await controlOf(gateway).call('POST', '/guardrails', body)).body.data.id;
});
after(async () => {
  for (const close of closers) await close();
});

async function tried(text: unknown, guardrail = id): Promise<{ status: number; body: Json }> {
  return controlOf(gateway).call('POST', `/guardrails/${guardrail}/test`, { text });
}

test('matches are listed in the order of the text, each once, with the text that a model would get', async () => {
  const text = 'Project Falcon: mail ada@example.test, answers only';
  const { data } = (await tried(text)).body;
  assert.deepEqual(
    data.matches.map(({ filter, action, start, end }: Json) => [filter, action, text.slice(start, end)]),
    [
      ['Project \\w+', 'flag', 'Project Falcon'],
      ['email', 'redact', 'ada@example.test'],
    ],
  );
  assert.equal(data.blocked, false);
  assert.equal(data.text, 'Project Falcon: mail [EMAIL], answers only');
});

test('a number that is written in several forms at once is one match', async () => {
  const { body } = await controlOf(gateway).call('POST', '/guardrails', {
    ...{ name: 'numbers', content_filter_builtins: [{ slug: 'phone', action: 'flag' }] },
  });
  const text = 'call +1 415 555 2671 or +49 30 901820';
  const { data } = (await tried(text, body.data.id)).body;
  assert.deepEqual(
    data.matches.map(({ start, end }: Json) => text.slice(start, end)),
    ['+1 415 555 2671', '+49 30 901820'],
  );
});

test('a text that would be refused is called blocked, and one without matches stays', async () => {
  assert.equal((await tried('My number is 219-09-9998')).body.data.blocked, true);
  assert.deepEqual((await tried('Nothing here')).body.data, { blocked: false, text: 'Nothing here', matches: [] });
  assert.deepEqual((await tried('')).body.data.matches, []);
});

test('unknown guardrails and unusable texts are refused', async () => {
  assert.equal((await tried('x', '00000000-0000-7000-8000-000000000000')).status, 404);
  for (const text of [undefined, 7, 'x'.repeat(100_001)]) {
    const { status, body } = await tried(text);
    assert.equal(status, 400);
    assert.match(body.error.message, /text/);
  }
});
