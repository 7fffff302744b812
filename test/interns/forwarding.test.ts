/** Two processes on one database: requests that reach the one are answered by the other, which holds the intern. */
import assert from 'node:assert/strict';
import https from 'node:https';
import net from 'node:net';
import { after, test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { ScriptedAgent } from '../../src/testing/interns/scripted-agent.ts';
import { ScriptedSandboxes } from '../../src/testing/interns/scripted-sandboxes.ts';
import type { Json } from '../workspaces/control.ts';
import { answerBody, chatWith } from './chat.ts';
import { internsOf, rowsOf } from './interns.ts';

const closers: (() => Promise<void>)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});
const later = { after: (close: unknown) => void closers.push(close as () => Promise<void>) };
const target = await emptyDatabase(later, migrations, true);
const sandboxes = new ScriptedSandboxes();
const agent = new ScriptedAgent();

function start(dataDir?: string): Promise<Gateway> {
  return startGateway(later, {
    ...{ target, sandboxDrivers: sandboxes.choices, agent: agent.profile },
    ...(dataDir !== undefined && { dataDir }),
  });
}

const holder = await start();
const { made, reaches } = internsOf(holder);
const intern = await made({ name: 'shared', provision: true });
await reaches(intern.id, 'running');
const other = await start(holder.dataDir);

/** Between the two, where a network would be. */
const sockets = new Set<net.Socket>();
let isCut = false;
const relay = net.createServer(async (front) => {
  if (isCut) return front.destroy();
  const back = net.connect(port, '127.0.0.1');
  for (const [from, to] of [
    [front, back],
    [back, front],
  ] as const) {
    sockets.add(from);
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.on('close', () => sockets.delete(from) && to.destroy());
  }
  return undefined;
});
await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
later.after(async () => void relay.close());

const [{ port }] = (await rowsOf(holder, 'select port from intern_processes')) as [{ port: number }];
await rowsOf(holder, 'update intern_processes set port = $1', [(relay.address() as net.AddressInfo).port]);

const here = chatWith(holder, intern.id);
const there = chatWith(other, intern.id);

test('a stream is the same bytes from either process', async () => {
  const usage = { promptTokens: 7, completionTokens: 9, cachedTokens: 1 };
  const texts: Json[] = [];
  for (const { send } of [here, there]) {
    const { response } = await send({ messages: [{ role: 'user', content: 'Go.' }], session_id: 'long' });
    const turn = await agent.nextTurn();
    turn.model('test/model');
    turn.think('Hm… \u{1f600}');
    for (let i = 0; i < 50; i += 1) turn.say(`${i} "finish_reason":"stop" \n\n ${'ü'.repeat(i * 5)}`);
    turn.complete(usage);
    const headers = ['content-type', 'cache-control', 'x-accel-buffering'].map((name) => response.headers.get(name));
    const text = (await response.text()).replaceAll(/"id":"chatcmpl-[^"]+"|"created":\d+/g, '');
    texts.push([response.status, headers, text]);
  }
  assert.deepEqual(texts[0], texts[1]);
  assert.match(texts[1][2], /data: \[DONE\]\n\n$/);
  assert.equal(agent.connections.length, 1);
});

test('questions are answered, turns steered and prompts given in either process', async () => {
  const asked = await there.prompt('Ask me.', { approval_mode: 'manual' });
  const turn = await agent.nextTurn();
  const options = ['allow_once', 'reject_once'] as const;
  const first = turn.ask({ kind: 'permission', operation: 'shell', options });
  const { call, session } = await asked.ending();
  const refused = await there.plain(answerBody(call, session, 'whatever'));
  assert.deepEqual([refused.status, refused.body.error.metadata.reason], [400, 'bad_request']);
  const unknown = await there.plain(answerBody({ ...call, id: 'call_x' }, session, 'allow_once'));
  assert.deepEqual([unknown.status, unknown.body.error.metadata.reason], [404, 'interaction_unknown']);
  const continued = await here.answer(call, session, 'allow_once');
  assert.deepEqual(await first, { action: 'option', option: 'allow_once' });
  const steered = await there.plain({ session_id: session, messages: [{ role: 'user', content: 'Hurry.' }] });
  assert.deepEqual(steered, { status: 202, body: { session_id: session, status: 'steered' } });
  assert.deepEqual(turn.steered, ['Hurry.']);
  const second = turn.ask({ kind: 'permission', operation: 'shell', options });
  const again = await continued.ending();
  const last = await there.answer(again.call, session, 'reject_once');
  assert.deepEqual(await second, { action: 'option', option: 'reject_once' });
  turn.complete();
  assert.equal((await last.ending()).finish, 'stop');

  const invoked = await other.post(`/interns/${intern.id}/invoke`, { input: 'Work.', session_id: session });
  assert.deepEqual([invoked.status, await invoked.json()], [202, { session_id: session, status: 'started' }]);
  (await agent.nextTurn()).complete();
});

test('a client that leaves the other process cancels the run', async () => {
  const stream = await there.prompt('Long.');
  const turn = await agent.nextTurn();
  turn.say('So');
  await until(() => stream.text() === 'So', 'the client has it');
  stream.leave();
  await until(() => turn.isCancelled, 'the run is cancelled');
});

test('a response whose holder is gone ends as severed', async () => {
  const stream = await there.prompt('Long.', { session_id: 'severed' });
  const turn = await agent.nextTurn();
  turn.say('Half');
  await until(() => stream.text() === 'Half', 'the client has it');
  cut();
  assert.deepEqual(await stream.reason(), [502, 'stream_severed']);
  assert.equal((await stream.ending()).session, 'severed');
  assert.equal(stream.text(), 'Half');
  await until(() => turn.isCancelled, 'the run is cancelled');

  // Before anything was said, too; then there is no stream.
  isCut = false;
  agent.opening = new Promise(() => {});
  const pending = there.plain({ messages: [{ role: 'user', content: 'Hello?' }] });
  await until(() => agent.opens > agent.sessions.length, 'the agent was asked');
  cut();
  const silent = await pending;
  assert.deepEqual([silent.status, silent.body.error.metadata], [502, { reason: 'stream_severed', retryable: true }]);
  const unreachable = await there.plain({ messages: [{ role: 'user', content: 'Hello?' }] });
  const { code, metadata } = unreachable.body.error;
  assert.deepEqual([code, metadata], [502, { reason: 'intern_unreachable', retryable: true }]);
  agent.opening = Promise.resolve();
  isCut = false;
});

function cut(): void {
  isCut = true;
  for (const socket of sockets) socket.destroy();
}

test('a holder that falls silent is given up', async () => {
  const stream = await there.prompt('Long.');
  const turn = await agent.nextTurn();
  turn.say('Half');
  await until(() => stream.text() === 'Half', 'the client has it');
  for (const socket of sockets) socket.pause();
  other.clock.jump(100_000);
  assert.deepEqual(await stream.reason(), [502, 'stream_severed']);
  for (const socket of sockets) socket.destroy();
});

test('a run ends when another process suspends its intern', async () => {
  const stream = await there.prompt('Long.');
  await agent.nextTurn();
  assert.equal((await internsOf(other).call('POST', `/${intern.id}/suspend`)).status, 200);
  assert.deepEqual(await stream.reason(), [410, 'run_ended']);
  const stopped = await there.plain({ messages: [{ role: 'user', content: 'Hello?' }] });
  assert.deepEqual([stopped.status, stopped.body.error.metadata.reason], [409, 'intern_not_ready']);
});

test('no client without the key gets past the handshake', async () => {
  for (const options of [
    { rejectUnauthorized: false },
    {
      ...{ ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', maxVersion: 'TLSv1.2', checkServerIdentity: () => undefined },
      pskCallback: () => ({ psk: Buffer.alloc(32), identity: 'x' }),
    },
  ]) {
    const { promise, resolve } = Promise.withResolvers<string>();
    https
      .get({ host: '127.0.0.1', port, agent: false, ...options } as https.RequestOptions, () => resolve('answered'))
      .on('error', () => resolve('refused'));
    assert.equal(await promise, 'refused');
  }
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`));
});
