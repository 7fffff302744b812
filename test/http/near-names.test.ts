/** Mistyped paths and models are answered with the right one. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

let gateway: Gateway;
const closers: (() => Promise<void>)[] = [];
before(async () => {
  gateway = await startGateway({ after: (close) => void closers.push(close as () => Promise<void>) });
});
after(async () => {
  for (const close of closers.reverse()) await close();
});

async function refusal(path: string, init: RequestInit = {}) {
  const answer = await fetch(gateway.url + path, {
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    ...init,
  });
  const { error } = (await answer.json()) as { error: { message: string } };
  return { status: answer.status, message: error.message };
}

const PATHS: readonly [wrong: string, meant: string][] = [
  ['/chat/completions', '/api/v1/chat/completions'],
  ['/messages', '/api/v1/messages'],
  ['/responses', '/api/v1/responses'],
  ['/embeddings', '/api/v1/embeddings'],
  ['/models', '/api/v1/models'],
  ['/api/chat/completions', '/api/v1/chat/completions'],
  ['/api/v1/v1/messages', '/api/v1/messages'],
  ['/v1/v1/messages', '/api/v1/messages'],
  ['/v1/api/v1/chat/completions', '/api/v1/chat/completions'],
  ['/api/v1/v1/messages/count_tokens', '/api/v1/messages/count_tokens'],
  ['/openai/v1/chat/completions', '/api/v1/chat/completions'],
  ['/anthropic/v1/messages', '/api/v1/messages'],
  ['/api/v1/chat/completions/', '/api/v1/chat/completions'],
  ['/api/v1//chat/completions', '/api/v1/chat/completions'],
  ['/api/v1/chat/completion', '/api/v1/chat/completions'],
  ['/api/v1/chat/compeltions', '/api/v1/chat/completions'],
  ['/api/v1/embedding', '/api/v1/embeddings'],
  ['/v1/message', '/api/v1/messages'],
  ['/api/v1/openapi.json', '/openapi.json'],
  ['/api/v1/health', '/health'],
  ['/healthz', '/health'],
  ['/keys/abc', '/api/v1/keys/{hash}'],
];

test('a path that leads nowhere names the one that was meant', async () => {
  for (const [wrong, meant] of PATHS) {
    const { status, message } = await refusal(wrong, { method: 'POST', body: '{}' });
    assert.equal(status, 404, wrong);
    assert.ok(message.includes(`; did you mean ${meant}?`), `${wrong}: ${message}`);
  }
  assert.match((await refusal('/api/v1/v1/messages')).message, /base URL of Anthropic clients ends with \/api\.$/);
  assert.match((await refusal('/chat/completions')).message, /base URL of OpenAI clients ends with \/api\/v1\.$/);
});

test('a path that resembles none gets no hint, and a long one is cut', async () => {
  for (const path of ['/wp-login.php', '/api/v1', '/api/v1/frobnicate/the/thing', '/..%2f..%2fetc']) {
    assert.ok(!(await refusal(path)).message.includes('did you mean'), path);
  }
  const { status, message } = await refusal(`/chat/completions/${'a'.repeat(5000)}`);
  assert.equal(status, 404);
  assert.ok(message.length < 300);
});

async function modelMessage(model: string, path = '/api/v1/chat/completions'): Promise<string> {
  const body = JSON.stringify({ model, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] });
  return (await refusal(path, { method: 'POST', body })).message;
}

test('an unknown model names the listed one that was meant, in every format', async () => {
  const { data } = (await (
    await fetch(`${gateway.api}/models`, { headers: { authorization: `Bearer ${INFERENCE_KEY}` } })
  ).json()) as {
    data: { id: string }[];
  };
  const id = data[0]!.id;
  const [author = '', slug = ''] = id.split('/');
  const wrongs = [`${author}/${slug}x`, `${author}/${slug.slice(0, -1)}`, `elsewhere/${slug}`, id.toUpperCase()];
  for (const wrong of wrongs) {
    assert.ok((await modelMessage(wrong)).endsWith(`; did you mean ${id}?`), await modelMessage(wrong));
    assert.ok((await modelMessage(wrong, '/api/v1/messages')).endsWith(`; did you mean ${id}?`));
  }
  const lost = await refusal(`/api/v1/models/${author}/${slug}x/endpoints`);
  assert.ok(lost.message.endsWith(`; did you mean ${id}?`), lost.message);
  assert.match(await modelMessage('acme/something-else-entirely'), /is not a known model; GET \/models lists them$/);
  assert.ok((await modelMessage('x'.repeat(10_000))).length < 300);
});

test('a model that a guardrail hides from the key is not named', async () => {
  const headers = { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' };
  const send = async (path: string, body: object) => {
    const answer = await fetch(gateway.api + path, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, await answer.clone().text());
    return (await answer.json()) as { key?: string; data: { id?: string; hash?: string } };
  };
  const { data } = (await (
    await fetch(`${gateway.api}/models`, { headers: { authorization: `Bearer ${INFERENCE_KEY}` } })
  ).json()) as {
    data: { id: string }[];
  };
  const [hidden, allowed] = [data[0]!.id, data[1]!.id];
  const key = await send('/keys', { name: 'guarded' });
  const guardrail = await send('/guardrails', { name: 'one model', allowed_models: [allowed] });
  await send(`/guardrails/${guardrail.data.id}/assignments/keys`, { key_hashes: [key.data.hash] });
  const body = JSON.stringify({ model: `${hidden}x`, messages: [{ role: 'user', content: 'hi' }] });
  const guarded = { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' };
  const { message } = await refusal('/api/v1/chat/completions', { method: 'POST', body, headers: guarded });
  assert.ok(!message.includes(`mean ${hidden}`), message);
});
