/** Interns from creation to deletion, with a scripted agent in scripted sandboxes. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { ScriptedAgent } from '../../src/testing/interns/scripted-agent.ts';
import { ScriptedSandboxes } from '../../src/testing/interns/scripted-sandboxes.ts';
import { auditOf } from '../vault/vault.ts';
import type { Json } from '../workspaces/control.ts';
import { chatWith } from './chat.ts';
import { internsOf, rowsOf } from './interns.ts';

/** Unfinished work is sent again. */
const SWEEP_MS = 600_000;

const sandboxes = new ScriptedSandboxes();
const agent = new ScriptedAgent();
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { sandboxDrivers: sandboxes.choices, agent: agent.profile },
);
const { call, made, shown, refused, reaches, ends } = internsOf(gateway);

/** Runs with an agent and sandboxes that do as they should. */
function scene(name: string, run: () => Promise<void>): void {
  test(name, async () => {
    delete sandboxes.faults.create;
    delete sandboxes.faults.archive;
    delete sandboxes.faults.remove;
    agent.startFault = undefined;
    agent.greeting = Promise.resolve();
    await run();
  });
}

/** A new intern whose agent runs. */
async function running(name: string): Promise<string> {
  const { id } = await made({ name, provision: true });
  await reaches(id, 'running');
  return id;
}

/** A new intern whose agent has been started and is waited for. */
async function starting(name: string): Promise<string> {
  const { id } = await made({ name, provision: true });
  await until(async () => (await shown(id)).progress?.step_number === 3, 'the agent starts');
  return id;
}

/** Deletes the intern. @returns what ends the archiving of its workspace, which has begun */
async function archived(id: string): Promise<() => void> {
  const archiving = Promise.withResolvers<void>();
  sandboxes.archiving = archiving.promise;
  const before = sandboxes.archives;
  assert.equal((await call('DELETE', `/${id}`)).status, 202);
  await until(() => sandboxes.archives > before, 'the workspace is being archived');
  return archiving.resolve;
}

/** The agent of an intern that runs dies. */
async function dies(id: string): Promise<void> {
  agent.connections.at(-1)!.close();
  await until(() => sandboxOf(id)?.running === false, 'its sandbox is stopped');
}

const sandboxOf = (id: string) => sandboxes.workspaces.get(`i${id.replaceAll('-', '')}`);

scene(
  'an intern starts in its sandbox, stops with its workspace kept, starts again and is deleted with an archive',
  async () => {
    const { id } = await made({ name: 'whole-life', instructions: 'Be brief.', provision: true });
    const running = await reaches(id, 'running');
    assert.match(running.hostname, /^whole-life-/);
    assert.deepEqual([running.progress, running.last_failure_message], [null, null]);
    assert.equal(sandboxOf(id)?.running, true);
    assert.deepEqual(agent.connections.at(-1)!.settings, { instructions: 'Be brief.', model: null });

    assert.deepEqual(await call('POST', `/${id}/provision`), { status: 202, body: { provisioning: true } });
    assert.deepEqual(await call('POST', `/${id}/suspend`), { status: 200, body: { suspended: true } });
    assert.deepEqual([(await shown(id)).status, sandboxOf(id)?.running], ['stopped', false]);
    assert.deepEqual((await call('POST', `/${id}/suspend`)).status, 200);

    await call('PATCH', `/${id}`, { model: 'acme/next' });
    await call('POST', `/${id}/provision`, {});
    await reaches(id, 'running');
    assert.equal(agent.connections.at(-1)!.settings.model, 'acme/next');

    assert.deepEqual(await call('DELETE', `/${id}`), { status: 202, body: { deleting: true } });
    await ends(id);
    assert.equal(sandboxOf(id), undefined);
    const [archive] = await rowsOf(gateway, 'select name, bytes from intern_archives where intern_id = $1', [id]);
    assert.deepEqual(archive, { name: 'whole-life', bytes: 8n });
    const actions = (await auditOf(gateway, 'intern')).filter(({ resource_id }) => resource_id === id);
    assert.deepEqual(actions.map(({ action }: Json) => action.replace('intern.', '')).toReversed(), [
      ...['created', 'started', 'suspended', 'updated', 'provision_requested', 'started'],
      ...['deletion_requested', 'deleted'],
    ]);
  },
);

scene('a start shows its steps, and other operations wait for it', async () => {
  const greeting = Promise.withResolvers<void>();
  agent.greeting = greeting.promise;
  const { id } = await made({ name: 'steps', provision: true });
  const { progress } = await until(async () => {
    const intern = await shown(id);
    return intern.progress?.step_number === 3 && intern;
  }, 'the agent starts');
  assert.deepEqual(progress, { step_label: 'Starting the agent', step_number: 3, total_steps: 3 });
  await refused(call('POST', `/${id}/suspend`), 409, 'intern_busy');
  assert.equal((await call('POST', `/${id}/provision`)).status, 202);
  greeting.resolve();
  await reaches(id, 'running');
});

scene('a start that fails says why, and can be tried again', async () => {
  agent.startFault = new Error('no such program');
  const body = { name: 'fails', provision: true };
  const { id } = await made(body);
  const failed = await reaches(id, 'failed');
  assert.match(failed.last_failure_message, /did not start: no such program/);
  assert.deepEqual([failed.progress, sandboxOf(id)?.running], [null, false]);
  agent.startFault = undefined;
  // The same request resumes what it has begun.
  const again = await call('POST', '', body);
  assert.deepEqual([again.status, again.body.id], [201, id]);
  await reaches(id, 'running');
  assert.equal((await call('POST', '', body)).status, 200);
});

scene(
  'a database that is away for a moment makes no intern fail, while it starts and while it is deleted',
  async () => {
    sandboxes.databaseAway = 1;
    const id = await running('patient');
    await call('POST', `/${id}/suspend`);
    sandboxes.databaseAway = 1;
    await call('DELETE', `/${id}`);
    await ends(id);
    assert.equal(sandboxes.databaseAway, 0);
  },
);

scene('an agent that does not greet within a minute has failed', async () => {
  agent.greeting = new Promise(() => {});
  const id = await starting('silent');
  await until(async () => {
    gateway.clock.jump(60_000);
    return (await shown(id)).status === 'failed';
  }, 'it has failed');
  assert.match((await shown(id)).last_failure_message, /did not answer within 60 s/);
});

scene('an intern that is deleted while it starts is gone, and nothing of it runs', async () => {
  const greeting = Promise.withResolvers<void>();
  agent.greeting = greeting.promise;
  const id = await starting('overtaken');
  assert.equal((await call('DELETE', `/${id}`)).status, 202);
  greeting.resolve();
  await ends(id);
  assert.equal(sandboxOf(id), undefined);
});

scene('an intern whose workspace cannot be archived is kept, until the loss is accepted', async () => {
  const id = await running('archived');
  sandboxes.faults.archive = 'the archive is full';
  await call('DELETE', `/${id}`);
  const failed = await reaches(id, 'destroy_failed');
  assert.match(failed.last_failure_message, /^workspace_archive_failed: the archive is full/);
  assert.ok(sandboxOf(id));
  await refused(call('POST', `/${id}/provision`), 409, 'intern_busy');
  await refused(call('PATCH', `/${id}`, { name: 'other' }), 409, 'intern_busy');

  await call('DELETE', `/${id}`, { acknowledge_workspace_loss: false });
  await until(async () => {
    const { status, updated_at } = await shown(id);
    return status === 'destroy_failed' && updated_at > failed.updated_at;
  }, 'it was refused again');
  await call('DELETE', `/${id}`, { acknowledge_workspace_loss: true });
  await ends(id);
  assert.equal(sandboxOf(id), undefined);
  assert.deepEqual(await rowsOf(gateway, 'select 1 from intern_archives where intern_id = $1', [id]), []);
});

scene('a loss that is accepted while the workspace is being archived counts', async () => {
  const id = await running('accepted');
  const endArchiving = await archived(id);
  sandboxes.faults.archive = 'the archive is full';
  assert.equal((await call('DELETE', `/${id}`, { acknowledge_workspace_loss: true })).status, 202);
  endArchiving();
  await ends(id);
  const events = (await auditOf(gateway, 'intern')).filter(({ resource_id }) => resource_id === id);
  assert.deepEqual(
    events.map(({ action }) => action).filter((action) => action !== 'intern.deletion_requested'),
    ['intern.deleted', 'intern.started', 'intern.created'],
  );
});

scene('a job and its repetition do the work of an intern once', async () => {
  const id = await running('repeated');
  const before = sandboxes.archives;
  const endArchiving = await archived(id);
  gateway.clock.jump(SWEEP_MS);
  const active = `select 1 from gatehouse_jobs.job where name = 'interns.work' and state = 'active'`;
  await until(async () => (await rowsOf(gateway, active)).length === 2, 'the second job runs');
  endArchiving();
  await ends(id);
  assert.equal(sandboxes.archives, before + 1);
});

scene(
  'a sandbox that cannot be removed leaves the intern as destroy_failed, and the archive is made once',
  async () => {
    const id = await running('removal');
    sandboxes.faults.remove = 'the disk does not answer';
    await call('DELETE', `/${id}`);
    assert.match((await reaches(id, 'destroy_failed')).last_failure_message, /could not be removed: the disk/);
    delete sandboxes.faults.remove;
    sandboxes.faults.archive = 'must not be made again';
    await call('DELETE', `/${id}`);
    await ends(id);
  },
);

scene('an agent that dies is started again by the next prompt, in the same workspace', async () => {
  const id = await running('dies');
  const before = agent.connections.length;
  await dies(id);
  assert.equal((await shown(id)).status, 'running');
  const stream = await chatWith(gateway, id).prompt('hi');
  const turn = await agent.nextTurn();
  assert.equal(agent.connections.length, before + 1);
  turn.complete();
  assert.equal((await stream.ending()).finish, 'stop');
});

scene('an intern that cannot be started again has failed', async () => {
  const id = await running('broken');
  await dies(id);
  agent.startFault = new Error('gone for good');
  const body = { messages: [{ role: 'user', content: 'hi' }] };
  await refused(chatWith(gateway, id).plain(body), 502, 'intern_unreachable', /gone for good/);
  assert.match((await reaches(id, 'failed')).last_failure_message, /gone for good/);
  await refused(chatWith(gateway, id).plain(body), 409, 'intern_not_ready');
});
