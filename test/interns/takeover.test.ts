/** What happens to interns when the process that holds them dies, or falls silent: another one on the same database goes on. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { listen, serverOf } from '../../src/testing/database/database-tap.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { ScriptedAgent } from '../../src/testing/interns/scripted-agent.ts';
import { ScriptedSandboxes } from '../../src/testing/interns/scripted-sandboxes.ts';
import type { Json } from '../workspaces/control.ts';
import { chatWith } from './chat.ts';
import { internsOf, rowsOf } from './interns.ts';

const RENEWAL_MS = 6_000;
const closers: (() => Promise<void>)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});

const sandboxes = new ScriptedSandboxes();

const later = { after: (close: unknown) => void closers.push(close as () => Promise<void>) };
const target = await emptyDatabase(later, migrations, true);
/** Between the first gateway and the database. */
const sockets = new Set<net.Socket>();
let isCut = false;
const relay = net.createServer((front) => {
  const back = net.connect(serverOf(target));
  for (const [from, to] of [
    [front, back],
    [back, front],
  ] as const) {
    sockets.add(from);
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.on('close', () => sockets.delete(from) && to.destroy());
  }
  if (isCut) front.destroy();
});
const relayed = await listen(later, relay, target);
later.after(async () => void relay.close());

async function start(on: typeof target, dataDir?: string) {
  const agent = new ScriptedAgent();
  const gateway = await startGateway(later, {
    ...{ target: on, sandboxDrivers: sandboxes.choices, agent: agent.profile, jobs: 'now' },
    ...(dataDir !== undefined && { dataDir }),
  });
  return { gateway, agent, ...internsOf(gateway) };
}

const first = await start(relayed);
const sandboxOf = (id: string) => sandboxes.workspaces.get(`i${id.replaceAll('-', '')}`);

/** As a machine that loses its network: it reaches no database, and no one can look its processes up. Its sandboxes are gone. */
async function dies(): Promise<void> {
  const owner = { pid: 1, startTicks: null, pidNamespace: null };
  first.gateway.clock.stand();
  isCut = true;
  for (const socket of sockets) socket.destroy();
  const sql = "update intern_processes set owner = $1::jsonb, seen_at = '2000-01-01'";
  await rowsOf({ target }, sql, [JSON.stringify(owner)]);
  sandboxes.crash();
}

test('interns of a process that died continue in another one, each once', async () => {
  const { gateway, agent, made, reaches, call, shown } = first;
  const idle = await made({ name: 'idle', provision: true });
  await reaches(idle.id, 'running');
  const busy = await made({ name: 'busy', provision: true });
  await reaches(busy.id, 'running');
  const opened = await chatWith(gateway, busy.id).prompt('Remember 42.');
  const turn = await agent.nextTurn();
  turn.say('I do.');
  turn.complete();
  const { session } = await opened.ending();
  const severed = await chatWith(gateway, busy.id).prompt('Work.', { session_id: session });
  const unfinished = await agent.nextTurn();
  unfinished.say('Half');
  const deleted = await made({ name: 'deleted', provision: true });
  await reaches(deleted.id, 'running');
  // Teardown and start stay where they are: the process does not get further before it dies.
  const stuck = Promise.withResolvers<void>();
  sandboxes.archiving = stuck.promise;
  assert.equal((await call('DELETE', `/${deleted.id}`)).status, 202);
  await until(() => sandboxes.archives === 1, 'the workspace is being archived');
  agent.greeting = stuck.promise;
  const starting = await made({ name: 'starting', provision: true });
  await until(async () => (await shown(starting.id)).progress?.step_number === 3, 'the agent starts');

  await dies();
  sandboxes.archiving = Promise.resolve();
  const second = await start(target, gateway.dataDir);
  await second.reaches(starting.id, 'running');
  await second.ends(deleted.id);
  assert.equal(sandboxOf(deleted.id), undefined);
  const archived = await rowsOf({ target }, 'select 1 from intern_archives where intern_id = $1', [deleted.id]);
  assert.equal(archived.length, 1);

  // The other two run nowhere until they are needed.
  assert.deepEqual([sandboxOf(idle.id)?.running, sandboxOf(busy.id)?.running], [false, false]);
  assert.equal((await second.shown(busy.id)).status, 'running');
  const next = await chatWith(second.gateway, busy.id).prompt('What was it?', { session_id: session });
  const resumed = await second.agent.nextTurn();
  assert.equal(resumed.session.known, turn.session.id);
  assert.deepEqual(resumed.session.log.map(({ role, text }) => [role, text]).slice(0, 2), [
    ['user', 'Remember 42.'],
    ['assistant', 'I do.'],
  ]);
  assert.equal(sandboxOf(busy.id)?.running, true);
  assert.equal((await secretsOf(busy.id)).length, 1);

  // The process was only silent: it learns that it lost its interns, and ends what it still has.
  isCut = false;
  stuck.resolve();
  gateway.clock.goOn();
  gateway.clock.jump(RENEWAL_MS);
  assert.deepEqual(await severed.reason(), [502, 'stream_severed']);
  await until(() => agent.connections.every(({ isClosed }) => isClosed), 'it has no agent any more');
  assert.equal((await secretsOf(busy.id)).length, 1);
  assert.equal((await second.shown(starting.id)).status, 'running');
  resumed.say('42');
  resumed.complete();
  assert.equal((await next.ending()).finish, 'stop');
  assert.equal(next.text(), '42');
  assert.equal(second.agent.connections.length, 2);
});

/** With which the sandbox of an intern calls models. */
function secretsOf(id: string): Promise<Json[]> {
  const sql = 'select 1 from api_keys k join key_aliases a on a.key_id = k.id where k.intern_id = $1';
  return rowsOf({ target }, sql, [id]);
}
