/** `callback_url`: real receivers, official verifiers. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import OpenAI from 'openai';
import { Webhook } from 'standardwebhooks';
import { connect } from '../../src/testing/database/rows.ts';
import { type Gateway, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, oncePassed, scripted } from './batches-client.ts';
import { Receiver } from './receiver.ts';

const onEnd = { after: (close: unknown) => after(close as () => Promise<void>) };
const receiver = await new Receiver().listen();
after(() => receiver.close());
const gateway = await startGateway(onEnd, {
  providers: { held: {} },
  yaml: { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] } },
});
const answer = wholeOf(chatReply({ text: 'done' }));
gateway.upstream.script('held', [{ ...answer, chunks: [{ gate: 'cancelled' }, ...answer.chunks!], repeat: true }]);
const { send, submitted, ended, refused } = batchesOf(gateway);

const batchFor = (url: string, script: object = {}) => chatBatch([scripted('a', script)], { callback_url: url });
const secretOf = async (of = batchesOf(gateway)) => (await of.send('GET', '/batches/callback-secret')).body.secret;
const callbackOf = async (id: string): Promise<Json> => (await send('GET', `/batches/${id}/callback`)).body;
const callbackIs = (id: string, status: string) =>
  oncePassed(
    () => callbackOf(id),
    (callback) => callback.status === status,
    `the callback of ${id} is ${status}`,
  );

async function metric(outcome: string, of: Gateway = gateway): Promise<number> {
  const headers = { authorization: `Bearer ${MANAGEMENT_KEY}` };
  const text = await (await fetch(`${of.url}/metrics`, { headers })).text();
  return Number(new RegExp(`gatehouse_batch_callbacks_total\\{outcome="${outcome}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
}

test('a completed batch sends an event to callback_url that the libraries of receivers verify', async () => {
  receiver.answers = [200];
  const before = await metric('delivered');
  const { id } = await submitted(batchFor(`${receiver.url}?from=gatehouse`));
  const [received] = await receiver.got(id);
  const { path, headers, body, event } = received!;
  const { results: _, ...batch } = await ended(id);
  assert.equal(path, '/hook?from=gatehouse');
  assert.equal(headers['content-type'], 'application/json');
  assert.deepEqual(event, {
    id: `evt_${id.slice('batch_'.length)}`,
    object: 'event',
    type: 'batch.completed',
    created_at: batch.finalized_at,
    data: { ...batch, results: null },
  });
  assert.equal(headers['webhook-id'], event.id);
  const secret = await secretOf();
  const signed = headers as Record<string, string>;
  assert.deepEqual(new Webhook(secret).verify(body, signed), event);
  const openai = new OpenAI({ apiKey: 'none', webhookSecret: secret });
  assert.equal((await openai.webhooks.unwrap(body, signed)).type, 'batch.completed');
  assert.throws(() => new Webhook(secret).verify(body.replace('completed', 'cancelled'), signed), /signature/);
  const status = await callbackIs(id, 'delivered');
  assert.deepEqual([status.url, status.attempts, status.last_error], [`${receiver.url}?from=gatehouse`, 1, null]);
  assert.equal(await metric('delivered'), before + 1);
  await refused(
    send('GET', `/batches/${(await submitted(chatBatch([scripted('b')]))).id}/callback`),
    404,
    /callback_url/,
  );
});

test('a batch that is cancelled, or can no longer run, sends an event', async () => {
  receiver.answers = [204];
  const { upstream } = gateway;
  const control = controlOf(gateway);
  const key = await control.keyIn(undefined, 'short-lived');
  const body = { max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] };
  const held = chatBatch([{ custom_id: 'held', body }], { model: 'test/held', callback_url: receiver.url });
  const cancelled = await submitted(held);
  const unrunnable = await batchesOf(gateway, key.token).submitted(held);
  await oncePassed(
    () => upstream.requests('held').length,
    (count) => count === 2,
    'both run',
  );
  await control.call('PATCH', `/keys/${key.hash}`, { disabled: true });
  // As if no process had looked at it before.
  const sql = await connect(gateway.target);
  await sql.query("update batches set state = 'validating' where key_hash = $1", [key.hash]);
  await sql.end();
  await send('POST', `/batches/${cancelled.id}/cancel`);
  // What runs is paid for, and ends.
  upstream.open('cancelled');
  assert.equal((await receiver.got(cancelled.id))[0]!.event.type, 'batch.cancelled');
  const { event } = (await receiver.got(unrunnable.id))[0]!;
  assert.equal(event.type, 'batch.failed');
  assert.match(event.data.error.message, /^the key of the batch/);
});

test('an answer other than 2xx is tried again with the same event, redirects included, until it is accepted', async () => {
  const elsewhere = await new Receiver().listen();
  const before = await metric('failed');
  receiver.answers = [500, (_, response) => response.writeHead(307, { location: elsewhere.url }).end(), 202];
  const { id } = await submitted(batchFor(receiver.url));
  const received = await receiver.got(id, 3);
  elsewhere.close();
  assert.deepEqual(elsewhere.received, []);
  assert.deepEqual(new Set(received.map(({ body }) => body)).size, 1);
  const webhook = new Webhook(await secretOf());
  for (const { body, headers } of received) webhook.verify(body, headers as Record<string, string>);
  assert.equal((await callbackIs(id, 'delivered')).attempts, 3);
  assert.equal(await metric('failed'), before + 2);
});

test('410 ends the attempts, and so does the deletion of the batch', async () => {
  receiver.answers = [410];
  const stopped = await submitted(batchFor(receiver.url));
  assert.match((await callbackIs(stopped.id, 'stopped')).last_error, /status 410/);
  receiver.answers = [503];
  const deleted = await submitted(batchFor(receiver.url));
  await receiver.got(deleted.id);
  await ended(deleted.id);
  assert.equal((await send('DELETE', `/batches/${deleted.id}`)).status, 200);
  // Another batch that is tried again as often, meanwhile.
  receiver.answers = [503];
  const other = await submitted(batchFor(receiver.url));
  await receiver.got(other.id, 3);
  assert.ok(receiver.of(deleted.id).length <= 2, String(receiver.of(deleted.id).length));
  assert.equal(receiver.of(stopped.id).length, 1);
  receiver.answers = [200];
  await callbackIs(other.id, 'delivered');
});

test('a receiver that never answers, or never ends its answer, holds up nothing', async () => {
  receiver.answers = [() => {}];
  const silent = await submitted(batchFor(receiver.url));
  await receiver.got(silent.id);
  assert.equal((await ended(silent.id)).status, 'completed');
  receiver.answers = [200];
  gateway.clock.jump(15_000);
  await receiver.got(silent.id, 2);
  assert.equal((await callbackIs(silent.id, 'delivered')).attempts, 2);
  receiver.answers = [(_, response) => void response.writeHead(200).write('x'.repeat(1_000_000))];
  const endless = await submitted(batchFor(receiver.url));
  assert.equal((await callbackIs(endless.id, 'delivered')).attempts, 1);
});

test('a callback_url that may not be called is refused with its path, and nothing is stored', async () => {
  const strict = await startGateway(onEnd);
  const { send: sent, refused: is } = batchesOf(strict);
  for (const [url, message] of [
    ['http://example.com/hook', /^callback_url is not an https URL/],
    ['https://127.0.0.1/hook', /^callback_url points to an address that is not public/],
    ['https://[::ffff:10.0.0.1]/hook', /not public/],
    ['https://169.254.169.254/latest', /not public/],
    ['https://example.com:22/hook', /^callback_url uses port 22/],
    ['https://me:secret@example.com/hook', /user name/],
    ['ftp://example.com/hook', /http or https/],
    ['hook', /not a URL/],
    ['', /not a URL/],
    [`https://example.com/${'x'.repeat(2048)}`, /at most 2048 characters/],
    [7, /must be an https URL/],
    [{}, /must be an https URL/],
  ] as const) {
    await is(sent('POST', '/batches', { ...batchFor(''), callback_url: url }), 400, message);
  }
  assert.deepEqual((await sent('GET', '/batches')).body.data, []);
  const made = await sent('POST', '/batches', { ...batchFor(''), callback_url: null });
  assert.equal(made.status, 202);
});

test('an address that is private only when the callback is delivered is not called', async () => {
  const inside = await new Receiver().listen();
  const { port } = new URL(inside.url);
  const yaml = { egress: { ports: ['1-65535'] } };
  const strict = await startGateway(onEnd, { yaml });
  const of = batchesOf(strict);
  const { id } = await of.submitted(batchFor(`https://localhost:${port}/hook`));
  const callback = await oncePassed(
    async () => (await of.send('GET', `/batches/${id}/callback`)).body,
    ({ attempts }: Json) => attempts > 0,
    'an attempt',
  );
  assert.deepEqual(
    [callback.status, callback.last_error],
    ['pending', 'callback_url points to an address that is not public'],
  );
  assert.deepEqual(inside.received, []);
  inside.close();
});

test('the secret belongs to the workspace, and a replaced one signs for another day', async () => {
  receiver.answers = [200];
  const { made, keyIn, call } = controlOf(gateway);
  const workspace = await made({ name: 'Callbacks', slug: 'callbacks' });
  const key = await keyIn(workspace.id, 'receiver');
  const of = batchesOf(gateway, key.token);
  const first = await secretOf(of);
  assert.match(first, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.equal(await secretOf(of), first);
  assert.notEqual(await secretOf(), first);
  const rotated = (await of.send('POST', '/batches/callback-secret/rotate')).body;
  assert.equal(await secretOf(of), rotated.secret);
  assert.ok(rotated.previous_expires_at > rotated.created_at);
  const { id } = await of.submitted(batchFor(receiver.url));
  const { body, headers } = (await receiver.got(id))[0]!;
  for (const secret of [first, rotated.secret]) new Webhook(secret).verify(body, headers as Record<string, string>);
  gateway.clock.jump(25 * 3_600_000);
  const later = await of.submitted(batchFor(receiver.url));
  const signature = String((await receiver.got(later.id))[0]!.headers['webhook-signature']);
  assert.equal(signature.split(' ').length, 1);
  const { data } = (await call('GET', `/audit?workspace_id=${workspace.id}&resource_type=callback_secret`)).body;
  assert.deepEqual(
    data.map(({ action }: Json) => action),
    ['callback_secret.rotated', 'callback_secret.created'],
  );
  assert.ok(!JSON.stringify(data).includes('whsec_'));
  for (const batch of [id, later.id]) await of.ended(batch);
  await call('PATCH', `/keys/${key.hash}`, { disabled: true });
  const gone = await call('DELETE', `/workspaces/${workspace.id}`);
  assert.equal(gone.status, 200, JSON.stringify(gone.body));
});

test('after a day of failures the callback is given up, and the error is shown', async () => {
  const before = await metric('given_up');
  receiver.answers = [500];
  const { id } = await submitted(batchFor(receiver.url));
  await receiver.got(id);
  await ended(id);
  gateway.clock.jump(25 * 3_600_000);
  const callback = await callbackIs(id, 'failed');
  assert.match(callback.last_error, /status 500/);
  assert.ok((await metric('given_up')) > before);
});

test('an expired batch is told', async () => {
  receiver.answers = [200];
  const { id } = await submitted(
    chatBatch(
      Array.from({ length: 30 }, (_, n) => scripted(`item-${n}`, { delay_ms: { headers: 1_000 } })),
      { callback_url: receiver.url },
    ),
  );
  await oncePassed(
    async () => (await send('GET', `/batches/${id}`)).body,
    ({ status }: Json) => status === 'in_progress',
    'the batch runs',
  );
  gateway.clock.jump(24 * 3_600_000);
  const { event } = (await receiver.got(id))[0]!;
  assert.deepEqual([event.type, event.data.status], ['batch.expired', 'expired']);
});
