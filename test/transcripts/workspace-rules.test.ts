/** Whose inputs and outputs are kept, as workspaces prescribe it, and what guardrails leave of them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { controlOf, type TeamKey } from '../workspaces/control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {} } },
);
const { call, made, keyIn } = controlOf(gateway);

/** What is kept of one request; null: nothing. */
async function contentOf(key: TeamKey, content = 'hi'): Promise<{ input: unknown } | null> {
  gateway.upstream.script('chat', [answerOf('chat', false, { text: 'ok' })]);
  const { status, body } = await key.ask({ model: 'test/chat', messages: [{ role: 'user', content }] });
  assert.equal(status, 200, JSON.stringify(body));
  const kept = await call('GET', `/generation/content?id=${body.id}`, undefined, MANAGEMENT_KEY);
  assert.ok([200, 404].includes(kept.status));
  return kept.status === 200 ? kept.body.data : null;
}

test('a workspace has its requests logged although the installation does not, from the next request on, by its own choice of keys', async () => {
  const workspace = await made({ name: 'Logged', slug: 'logged' });
  const [one, two] = [await keyIn(workspace.id, 'one'), await keyIn(workspace.id, 'two')];
  const elsewhere = await keyIn(undefined, 'elsewhere');
  const set = async (body: object) => assert.equal((await call('PATCH', '/workspaces/logged', body)).status, 200);
  assert.equal(await contentOf(one), null);
  await set({ is_observability_io_logging_enabled: true });
  assert.ok(await contentOf(one));
  assert.equal(await contentOf(elsewhere), null);
  await set({ io_logging_api_key_ids: [two.id] });
  assert.deepEqual([await contentOf(one), (await contentOf(two)) !== null], [null, true]);
  // The gateway of a test draws 0.5 every time.
  await set({ io_logging_sampling_rate: 0.5 });
  assert.equal(await contentOf(two), null);
  await set({ io_logging_sampling_rate: 0.6, io_logging_api_key_ids: null });
  assert.ok(await contentOf(one));
  await set({ is_observability_io_logging_enabled: false });
  assert.equal(await contentOf(one), null);
});

test('a workspace decides about its own logging even if the installation logs everything', async () => {
  const workspace = await made({ name: 'Some', slug: 'some', is_observability_io_logging_enabled: true });
  const [one, two] = [await keyIn(workspace.id, 'one'), await keyIn(workspace.id, 'two')];
  const elsewhere = await keyIn(undefined, 'elsewhere');
  const ioLogging = { enabled: true, sampleRate: 1, retentionDays: 30, maxBytes: 8192 };
  gateway.app.reload({ ...gateway.config, ioLogging });
  await call('PATCH', '/workspaces/some', { io_logging_api_key_ids: [two.id] });
  assert.deepEqual([await contentOf(one), (await contentOf(two)) !== null], [null, true]);
  assert.ok(await contentOf(elsewhere));
  gateway.app.reload(gateway.config);
});

test('what a guardrail takes out of a request is in no log, and what it refuses is not answered from the cache either', async () => {
  const key = await keyIn(undefined, 'guarded');
  const guardrail = async (action: string) => {
    const body = { name: action, content_filter_builtins: [{ slug: 'email', action }] };
    const { id } = (await call('POST', '/guardrails', body)).body.data;
    const assigned = await call('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: [key.hash] });
    assert.equal(assigned.body.assigned_count, 1, JSON.stringify(assigned.body));
  };
  gateway.app.reload({
    ...gateway.config,
    ioLogging: { enabled: true, sampleRate: 1, retentionDays: 1, maxBytes: 8192 },
  });
  const text = 'write to someone@example.com';
  const cached = async () => {
    gateway.upstream.script('chat', [answerOf('chat', false, { text: 'ok' })]);
    const response = await fetch(`${gateway.api}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json', 'x-svc-cache': 'true' },
      body: JSON.stringify({ model: 'test/chat', messages: [{ role: 'user', content: text }] }),
    });
    await response.arrayBuffer();
    return [response.status, response.headers.get('x-svc-cache-status')];
  };
  assert.deepEqual(
    [await cached(), await cached()],
    [
      [200, 'MISS'],
      [200, 'HIT'],
    ],
  );
  await guardrail('redact');
  const content = JSON.stringify(await contentOf(key, text));
  assert.match(content, /write to \[EMAIL\]/);
  assert.doesNotMatch(content, /someone/);
  // Another text than the one that was answered.
  assert.deepEqual(await cached(), [200, 'MISS']);
  await guardrail('block');
  assert.deepEqual(await cached(), [403, null]);
  gateway.app.reload(gateway.config);
});
