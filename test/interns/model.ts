/**
 * A model of an intern with one session, and a gateway that has to agree with it whatever happens: operations in any order, deadlines,
 * agents and sandboxes that fail or die.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { LIFECYCLE, type LifecycleEvent, type LiveStatus } from '../../src/interns/lifecycle.ts';
import { until } from '../../src/testing/clock/clock.ts';
import type { Gateway } from '../../src/testing/gateway/gateway.ts';
import type { ScriptedAgent, ScriptedTurn } from '../../src/testing/interns/scripted-agent.ts';
import type { ScriptedSandboxes } from '../../src/testing/interns/scripted-sandboxes.ts';
import type { Json } from '../workspaces/control.ts';
import { answerBody, type ChatStream, chatWith } from './chat.ts';
import { internsOf } from './interns.ts';

export interface Parts {
  gateway: Gateway;
  agent: ScriptedAgent;
  sandboxes: ScriptedSandboxes;
}

export const STEPS = [
  ...['provision', 'provision in vain', 'suspend', 'delete', 'delete in vain', 'delete with loss'],
  ...[
    'prompt',
    'say',
    'ask',
    'answer',
    'answer wrongly',
    'answer an old question',
    'leave',
    'complete',
    'fail',
    'crash',
    'wait',
  ],
] as const;
export type Step = (typeof STEPS)[number];

export const histories = (maxLength: number) =>
  fc.array(fc.constantFrom(...STEPS, ...RUN_STEPS, ...RUN_STEPS), { minLength: 5, maxLength });
/** More often than the others: they need each other. */
const RUN_STEPS: readonly Step[] = ['provision', 'prompt', 'say', 'ask', 'answer'];

const QUESTION = { kind: 'permission', operation: 'shell', options: ['allow_once', 'reject_once'] } as const;
/** Longer than a question waits, and a response takes. */
const WAIT_MS = 301_000;
const SESSION = 'the-session';
let interns = 0;

type RunModel =
  | { state: 'none' }
  | { state: 'streaming'; turn: ScriptedTurn; stream: ChatStream; said: string; hasSpoken: boolean }
  | { state: 'paused'; turn: ScriptedTurn; call: Json; answered: Promise<unknown> };

/** Plays the steps with an intern of its own. */
export async function play({ gateway, agent, sandboxes }: Parts, steps: readonly Step[]): Promise<void> {
  const { made, call, reaches } = internsOf(gateway);
  interns += 1;
  const { id } = await made({ name: `model-${interns}` });
  const chat = chatWith(gateway, id);
  let status: LiveStatus | 'gone' = 'stopped';
  let run: RunModel = { state: 'none' };
  let old: Json;
  let hasWorkspace = false;
  const box = `i${id.replaceAll('-', '')}`;

  /** By the table, through states that do not last. */
  const happens = (...events: LifecycleEvent[]): boolean => {
    for (const event of events) {
      if (status === 'gone') return false;
      const next: string = LIFECYCLE[status][event];
      if (next === 'busy') return false;
      if (next !== 'same' && next !== 'stale') status = next as LiveStatus | 'gone';
    }
    return true;
  };
  const requested = async (accepted: boolean, code: number, pending: Promise<{ status: number; body: Json }>) => {
    const answer = await pending;
    if (status === 'gone' && answer.status === 404) return;
    assert.equal(answer.status, accepted ? code : 409, JSON.stringify(answer.body));
    if (!accepted) assert.equal(answer.body.error.metadata.reason, 'intern_busy');
  };
  /** The run ends without its agent. */
  const ended = async (reason: string) => {
    if (run.state === 'streaming') {
      const [, told] = await run.stream.reason();
      assert.equal(told, reason);
      assert.equal(run.stream.text(), run.said);
    } else if (run.state === 'paused') {
      assert.deepEqual(await run.answered, { action: 'cancel' });
      old = run.call;
    }
    run = { state: 'none' };
  };
  const settles = async () => {
    if (status === 'gone') {
      await until(async () => (await call('GET', `/${id}`)).status === 404, 'the intern is gone');
      assert.equal(sandboxes.workspaces.has(box), false);
      return;
    }
    await reaches(id, status);
    if (status !== 'running') assert.notEqual(sandboxes.workspaces.get(box)?.running, true);
    assert.equal(sandboxes.workspaces.has(box), hasWorkspace);
  };
  const deleted = async (body: Json, isArchived: boolean) => {
    const isRunning = run.state !== 'none';
    const wasGone = status === 'gone';
    const accepted = happens('delete', isArchived ? 'destroyed' : 'teardown_failed');
    const answer = await call('DELETE', `/${id}`, body);
    if (wasGone) return assert.equal(answer.status, 404);
    assert.equal(answer.status, accepted ? 202 : 409, JSON.stringify(answer.body));
    if (isRunning) await ended('run_ended');
    if (status === 'gone') hasWorkspace = false;
    return settles();
  };

  const moves: Record<Step, () => Promise<void>> = {
    async provision() {
      const accepted = happens('provision', 'taken', 'provisioned');
      await requested(accepted, 202, call('POST', `/${id}/provision`));
      hasWorkspace ||= status === 'running';
      await settles();
    },
    async 'provision in vain'() {
      if (status === 'running') return;
      agent.startFault = new Error('it does not want to');
      const accepted = happens('provision', 'taken', 'provision_failed');
      await requested(accepted, 202, call('POST', `/${id}/provision`));
      hasWorkspace ||= status === 'failed' && accepted;
      await settles();
      agent.startFault = undefined;
    },
    async suspend() {
      const accepted = happens('suspend');
      await requested(accepted, 200, call('POST', `/${id}/suspend`));
      if (status === 'stopped') await ended('run_ended');
      await settles();
    },
    delete: () => deleted({}, true),
    async 'delete in vain'() {
      if (status === 'gone') return;
      sandboxes.faults.archive = 'the archive is full';
      await deleted({}, !hasWorkspace);
      delete sandboxes.faults.archive;
    },
    async 'delete with loss'() {
      sandboxes.faults.archive = 'the archive is full';
      await deleted({ acknowledge_workspace_loss: true }, true);
      delete sandboxes.faults.archive;
    },
    async prompt() {
      const body = { messages: [{ role: 'user', content: 'Go.' }], session_id: SESSION, approval_mode: 'manual' };
      if (status === 'running' && run.state === 'none') {
        const stream = await chat.stream(body);
        run = { state: 'streaming', turn: await agent.nextTurn(), stream, said: '', hasSpoken: false };
        return;
      }
      const { status: code, body: reply } = await chat.plain(body);
      if (run.state === 'streaming') {
        assert.deepEqual([code, reply.status], [202, 'steered']);
        assert.equal(run.turn.steered.at(-1), 'Go.');
        return;
      }
      const reason = status === 'gone' ? 'not_found' : run.state === 'paused' ? 'busy' : 'intern_not_ready';
      assert.deepEqual([code, reply.error.metadata.reason], [status === 'gone' ? 404 : 409, reason]);
    },
    async say() {
      if (run.state !== 'streaming') return;
      run.turn.say('word ');
      run.said += 'word ';
      run.hasSpoken = true;
    },
    async ask() {
      if (run.state !== 'streaming') return;
      const { turn, stream, said } = run;
      const answered = turn.ask(QUESTION);
      const { finish, call: asked } = await stream.ending();
      assert.deepEqual([finish, stream.text()], ['tool_calls', said]);
      run = { state: 'paused', turn, call: asked, answered };
    },
    async answer() {
      if (run.state !== 'paused') return;
      const { turn, call: asked, answered } = run;
      const stream = await chat.answer(asked, SESSION, 'allow_once');
      assert.deepEqual(await answered, { action: 'option', option: 'allow_once' });
      old = asked;
      run = { state: 'streaming', turn, stream, said: '', hasSpoken: true };
    },
    async 'answer wrongly'() {
      if (run.state !== 'paused') return;
      const { status: code, body } = await chat.plain(answerBody(run.call, SESSION, 'perhaps'));
      assert.deepEqual([code, body.error.metadata.reason], [400, 'bad_request']);
    },
    async 'answer an old question'() {
      if (old === undefined || status === 'gone') return;
      const { status: code, body } = await chat.plain(answerBody(old, SESSION, 'allow_once'));
      const reason = status === 'running' ? 'interaction_not_pending' : 'intern_not_ready';
      assert.deepEqual([code, body.error.metadata.reason], [409, reason]);
    },
    async leave() {
      if (run.state !== 'streaming') return;
      run.stream.leave();
      const { turn } = run;
      await until(() => turn.isCancelled, 'the run is cancelled');
      run = { state: 'none' };
      await isFree();
    },
    async complete() {
      if (run.state !== 'streaming') return;
      run.turn.complete();
      assert.equal((await run.stream.ending()).finish, 'stop');
      assert.equal(run.stream.text(), run.said);
      run = { state: 'none' };
    },
    async fail() {
      if (run.state !== 'streaming') return;
      run.turn.fail('I give up.');
      await ended(run.hasSpoken ? 'run_ended' : 'turn_failed');
    },
    async crash() {
      if (status !== 'running') return;
      for (const connection of agent.connections) if (!connection.isClosed) connection.close();
      await ended('stream_severed');
      await until(() => sandboxes.workspaces.get(box)?.running === false, 'its sandbox is stopped');
    },
    async wait() {
      const before = run;
      gateway.clock.jump(WAIT_MS);
      if (before.state === 'none') return;
      await ended('timeout');
      await isFree();
    },
  };

  /** The end of a run that was cancelled is known a little later than its cancellation. */
  const isFree = async () => {
    await new Promise((resolve) => setImmediate(resolve));
  };

  for (const step of steps) await moves[step]();
  // Whatever happened, it can be deleted, and nothing is left.
  await moves['delete with loss']();
  assert.equal(sandboxes.workspaces.has(box), false);
}
