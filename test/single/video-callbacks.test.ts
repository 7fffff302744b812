/** `callback_url` of `POST /videos`: a real receiver, official verifiers. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { Webhook } from 'standardwebhooks';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { Receiver } from '../batches/receiver.ts';

const onEnd = { after: (close: unknown) => after(close as () => Promise<void>) };
const model = { pricing: { prompt: '0', completion: '0', output_second: '0.1' }, output_modalities: ['video'] };
const options = {
  env: { GATEHOUSE_NAMESPACE: 'openrouter', GATEHOUSE_KEK: Buffer.alloc(32, 1).toString('base64') },
  providers: {
    sora: { kind: 'openai', model: { ...model, upstream_id: 'sora-2' } },
    simulated: { kind: 'simulated', model: { ...model, upstream_id: 'video' } },
  },
  yaml: { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] } },
  jobs: 'now' as const,
};
const receiver = await new Receiver().listen();
after(() => receiver.close());
const gateway = await startGateway(onEnd, options);

// biome-ignore lint/suspicious/noExplicitAny: replies of every shape
type Json = any;

const json = (body: Json, more: Partial<Answer> = {}): Answer => ({
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(body)],
  ...more,
});

async function create(body: Json, from: Gateway = gateway): Promise<Json> {
  const given = { prompt: 'a cat', duration: 8, callback_url: receiver.url, ...body };
  const response = await from.post('/videos', { model: 'test/simulated', ...given });
  const job = (await response.json()) as Json;
  assert.equal(response.status, 202, JSON.stringify(job));
  return job;
}

const look = async (id: string, at: Gateway = gateway): Promise<Json> => (await at.get(`/videos/${id}`)).json();

/** Lets the gateway poll the upstream until the job has ended. */
const ended = (id: string): Promise<Json> =>
  until(async () => {
    gateway.clock.jump(5_000);
    const job = await look(id);
    return job.status === 'in_progress' ? undefined : job;
  }, 'the job ends');

test('a completed video sends a signed event to callback_url, and after a failure the same event again', async () => {
  receiver.answers = [500, 204];
  const openrouter = new OpenRouter({
    apiKey: INFERENCE_KEY,
    serverURL: gateway.api,
    retryConfig: { strategy: 'none' },
  });
  const { id } = await openrouter.videoGeneration.generate({
    videoGenerationRequest: { model: 'test/simulated', prompt: 'a cat', duration: 8, callbackUrl: receiver.url },
  });
  const job = await ended(id);
  const received = await receiver.got(id, 2);
  assert.equal(new Set(received.map(({ body }) => body)).size, 1);
  const { body, event } = received[0]!;
  assert.deepEqual(event, {
    id: id.replace('vid_', 'evt_'),
    object: 'event',
    type: 'video.generation.completed',
    created_at: event.created_at,
    data: job,
  });
  assert.equal(new Date(event.created_at).toISOString(), event.created_at);
  const film = await fetch(event.data.unsigned_urls[0], { headers: { authorization: `Bearer ${INFERENCE_KEY}` } });
  assert.equal(film.status, 200);
  await film.body?.cancel();
  const { secret } = (await (await gateway.get('/batches/callback-secret')).json()) as { secret: string };
  for (const { headers } of received) {
    assert.equal(headers['webhook-id'], event.id);
    assert.equal(headers['x-openrouter-idempotency-key'], event.id);
    assert.deepEqual(new Webhook(secret).verify(body, headers as Record<string, string>), event);
    const [, time, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers['x-openrouter-signature'] as string)!;
    assert.equal(signature, createHmac('sha256', secret).update(`${time},${body}`).digest('hex'));
  }
});

test('a failed video sends an event, and 410 or the deletion of the job ends the attempts', async (t) => {
  receiver.answers = [410];
  gateway.upstream.script('sora', [
    json({ id: 'v_1', status: 'queued' }),
    json({ id: 'v_1', status: 'failed', error: { message: 'no cat' } }),
  ]);
  const { id } = await create({ model: 'test/sora' });
  await ended(id);
  const { event } = (await receiver.got(id))[0]!;
  assert.equal(event.type, 'video.generation.failed');
  assert.match(event.data.error, /no cat/);
  const sql = await connectOnce(t, gateway.target);
  const callback = async (of: string) =>
    (await sql.query('select status, attempts, last_error from video_callbacks where video_id = $1', [of])).rows[0];
  await until(async () => (await callback(id)).status === 'stopped', 'the attempts end');
  assert.deepEqual(await callback(id), {
    ...{ status: 'stopped', attempts: 1, last_error: 'the receiver answered with status 410' },
  });
  receiver.answers = [503];
  const deleted = await create({});
  await ended(deleted.id);
  await receiver.got(deleted.id);
  const gone = { method: 'DELETE', headers: { authorization: `Bearer ${INFERENCE_KEY}` } };
  assert.equal((await fetch(`${gateway.api}/videos/${deleted.id}`, gone)).status, 200);
  assert.equal(await callback(deleted.id), undefined);
  receiver.answers = [200];
});

test('a callback_url that may not be called is refused with its path, before a provider is asked', async () => {
  const before = gateway.upstream.requests('sora').length;
  for (const callback_url of ['https://10.0.0.1/hook', 'ftp://a.test', 'hook', '', 'x'.repeat(3_000)]) {
    const refused = await gateway.post('/videos', { model: 'test/sora', prompt: 'a', callback_url });
    const { error } = (await refused.json()) as Json;
    assert.equal(refused.status, 400, callback_url.slice(0, 50));
    assert.match(error.message, /^callback_url /);
  }
  assert.equal((await gateway.post('/videos', { model: 'test/sora', prompt: 'a', callback_url: 7 })).status, 400);
  assert.equal(gateway.upstream.requests('sora').length, before);
});

test('the callback of a job whose process stopped is sent by the process that ends it, once', async (t) => {
  const first = await startGateway(t, { ...options, jobs: undefined });
  first.upstream.script('sora', [json({ id: 'v_2', status: 'queued' })]);
  const { id } = await create({ model: 'test/sora' }, first);
  const { target } = first;
  await first.close();
  const next = await startGateway(t, { ...options, target });
  const film = { headers: { 'content-type': 'video/mp4' }, chunks: [Buffer.alloc(100, 7)] };
  next.upstream.script('sora', [json({ id: 'v_2', status: 'completed', seconds: '8' }), film]);
  const { event } = (await receiver.got(id))[0]!;
  assert.equal(event.type, 'video.generation.completed');
  // By the address that the client used.
  assert.ok(event.data.unsigned_urls[0].startsWith(first.api), event.data.unsigned_urls[0]);
  const sql = await connectOnce(t, target);
  await until(
    async () => (await sql.query('select status from video_callbacks')).rows[0].status === 'delivered',
    'it is recorded',
  );
  assert.equal(receiver.of(id).length, 1);
});
