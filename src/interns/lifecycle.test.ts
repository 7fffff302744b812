/** The table of states: every pair has one outcome, and the promises of the interface hold for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EVENTS, firstStatus, LIFECYCLE, type LifecycleEvent, type LiveStatus } from './lifecycle.ts';

const states = Object.keys(LIFECYCLE) as LiveStatus[];

test('every state has an outcome for every event, and every state is reached from a new intern', () => {
  const reached = new Set<string>([firstStatus(true), firstStatus(false)]);
  for (const state of reached) {
    if (!(state in LIFECYCLE)) continue;
    for (const event of EVENTS) reached.add(LIFECYCLE[state as LiveStatus][event]);
  }
  assert.deepEqual(
    states.filter((state) => !reached.has(state)),
    [],
  );
  for (const state of states) assert.deepEqual(Object.keys(LIFECYCLE[state]).toSorted(), EVENTS.toSorted());
});

test('an intern can be deleted in every state but while it is being deleted', () => {
  for (const state of states) {
    assert.equal(LIFECYCLE[state].delete, state === 'destroying' ? 'same' : 'destroying', state);
  }
});

test('whatever happens, an intern that is deleted ends, and nothing but its deletion ends it', () => {
  const events = fc.array(fc.constantFrom(...EVENTS), { maxLength: 40 });
  fc.assert(
    fc.property(fc.boolean(), events, (provision, history) => {
      const states = new Set<string>();
      let state: LiveStatus = firstStatus(provision);
      const happen = (event: LifecycleEvent): boolean => {
        const step = LIFECYCLE[state][event];
        if (step === 'gone') return true;
        if (step !== 'same' && step !== 'busy' && step !== 'stale') state = step;
        states.add(state);
        return false;
      };
      if (history.some(happen)) return assert.ok(states.has('destroying'));
      happen('delete');
      assert.equal(happen('destroyed'), true);
    }),
  );
});

test('work that was overtaken changes nothing', () => {
  for (const state of ['stopped', 'failed', 'running', 'destroying', 'destroy_failed'] as const) {
    for (const event of ['taken', 'provisioned', 'provision_failed'] as const) {
      assert.equal(LIFECYCLE[state][event], 'stale', `${event} in ${state}`);
    }
  }
});
