/** Runs against a model of their states: random agents, callers and clocks never bring one to where the table does not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { settle, TestClock } from '../../testing/clock/clock.ts';
import {
  ScriptedAgent,
  ScriptedConnection,
  ScriptedSession,
  type ScriptedTurn,
} from '../../testing/interns/scripted-agent.ts';
import { samples } from '../../testing/laws/samples.ts';
import type { RunMeter } from '../work/model-calls.ts';
import { Run, type RunEnding, type RunOutput, type RunReader } from './run.ts';
import { RUN_EVENTS, RUN_STATES, RUN_TABLE, type RunState } from './run-states.ts';

class Reader implements RunReader {
  readonly outputs: RunOutput[] = [];
  isSlow = false;

  take(output: RunOutput): boolean {
    this.outputs.push(output);
    return !this.isSlow;
  }

  get text(): string {
    return this.outputs.map((output) => (output.type === 'text' ? output.text : '')).join('');
  }
}

const meter: RunMeter = { usage: async (reported) => reported && { ...reported, costNano: null } };

function begin() {
  const clock = new TestClock();
  const agent = new ScriptedAgent();
  const session = new ScriptedSession(
    agent,
    new ScriptedConnection(agent, { instructions: null, model: null }),
    null,
    [],
  );
  const endings: RunEnding[] = [];
  const ids: string[] = [];
  const run = new Run({
    ...{ clock, session, prompt: { text: 'go', mode: 'manual' }, meter, unattended: false },
    asked: (id) => ids.push(id),
    stuck: () => session.turn!.sever(),
    over: (ending) => endings.push(ending),
  });
  const reader = new Reader();
  run.attach(reader);
  run.begin();
  return { clock, agent, run, reader, endings, ids, turn: session.turn as ScriptedTurn };
}

const QUESTION = { kind: 'permission', operation: 'shell', options: ['allow_once', 'reject_once'] } as const;

test('the table has an outcome for every state and event, every state is reached, and the end is final', () => {
  const reached = new Set<string>(['streaming']);
  for (const state of reached) {
    for (const step of Object.values(RUN_TABLE[state as RunState])) {
      if (step !== 'same' && step !== 'refused') reached.add(step);
    }
  }
  assert.deepEqual([...reached].toSorted(), RUN_STATES.toSorted());
  for (const state of RUN_STATES) assert.deepEqual(Object.keys(RUN_TABLE[state]).toSorted(), RUN_EVENTS.toSorted());
  for (const event of RUN_EVENTS) assert.match(RUN_TABLE.ended[event], /^(?:same|refused)$/);
});

type Step = 'say' | 'ask' | 'answer' | 'wrong' | 'leave' | 'minutes' | 'complete' | 'fail' | 'sever' | 'stop';
const STEPS: Step[] = ['say', 'ask', 'answer', 'wrong', 'leave', 'minutes', 'complete', 'fail', 'sever', 'stop'];

test('whatever agent, caller and clock do, a run follows the table, ends once, and leaves no question open', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { maxLength: 25 }), async (steps) => {
      const { clock, run, endings, ids, turn, reader: first } = begin();
      let reader = first;
      const open = new Set<Promise<unknown>>();
      for (const step of steps) {
        const before = run.state;
        if (step === 'say') turn.say('word ');
        else if (step === 'ask' && !turn.isOver) {
          const asked = turn.ask(QUESTION);
          open.add(asked);
          void asked.then(() => open.delete(asked));
        } else if (step === 'answer' || step === 'wrong') {
          const next = new Reader();
          const firstOpen = ids[ids.length - open.size] ?? 'none';
          try {
            run.answer(firstOpen, step === 'wrong' ? 'perhaps' : 'allow_once', next);
            assert.equal(before, 'paused');
            reader = next;
          } catch (error) {
            assert.match(String((error as { status?: number }).status), /^(?:400|409)$/);
            assert.equal(run.state, before);
          }
        } else if (step === 'leave') run.leave(reader, 'client_closed_request');
        else if (step === 'minutes') clock.advance(299_000);
        else if (step === 'complete') turn.complete();
        else if (step === 'fail') turn.fail('no');
        else if (step === 'sever') turn.sever();
        else run.stop();
        await settle(2);
        const allowed = new Set<string>([before]);
        for (const to of Object.values(RUN_TABLE[before])) allowed.add(to);
        // A cancellation is confirmed at once, and an answer may lead to the next question.
        if (allowed.has('cancelling')) allowed.add('ended');
        if (before === 'paused') allowed.add('streaming');
        assert.ok(allowed.has(run.state), `${step}: ${before} became ${run.state}`);
        assert.equal(endings.length, run.state === 'ended' ? 1 : 0);
      }
      run.stop();
      await settle(2);
      assert.deepEqual([run.state, endings.length, open.size], ['ended', 1, 0]);
      assert.equal(clock.timers, 0);
    }),
    { numRuns: samples(150) },
  );
});

test('a slow reader gets everything in order, or is told that it was too slow', async () => {
  const { run, reader, turn, endings } = begin();
  reader.isSlow = true;
  for (const word of ['a', 'b', 'c']) turn.say(word);
  assert.equal(reader.text, 'a');
  reader.isSlow = false;
  run.drained(reader);
  assert.equal(reader.text, 'abc');
  reader.isSlow = true;
  for (let at = 0; at < 300; at++) turn.say('x'.repeat(1_024));
  await settle();
  assert.equal(turn.isCancelled, true);
  run.drained(reader);
  const last = reader.outputs.at(-1)!;
  assert.equal(last.type === 'end' && last.ending.error?.details.metadata?.['reason'], 'attachment_failed');
  assert.equal(endings.length, 1);
});

test('a client that leaves is the reason why its run ends', async () => {
  const { run, reader, endings } = begin();
  run.leave(reader, 'client_closed_request');
  await settle();
  assert.equal(endings[0]!.error?.details.metadata?.['reason'], 'client_closed_request');
});
