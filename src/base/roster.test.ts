import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Roster } from './roster.ts';

test('a roster holds what was added and not deleted, whatever the order and however often', () => {
  const step = fc.oneof(fc.constant('add' as const), fc.nat({ max: 40 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const roster = new Roster<object>();
      const added: { member: object; seat: number }[] = [];
      const present = new Set<object>();
      for (const one of steps) {
        if (one === 'add') {
          const member = {};
          added.push({ member, seat: roster.add(member) });
          present.add(member);
        } else if (added.length > 0) {
          // Also one that is gone already, whose seat may be another's by now.
          const { member, seat } = added[one % added.length]!;
          roster.delete(member, seat);
          present.delete(member);
        }
        assert.equal(roster.size, present.size);
        assert.deepEqual(new Set(roster), present);
      }
    }),
  );
});

test('members that leave while they are gone through are not met, seats are used again', () => {
  const roster = new Roster<{ name: string }>();
  const seats = ['a', 'b', 'c'].map((name) => ({ name })).map((member) => ({ member, seat: roster.add(member) }));
  const met: string[] = [];
  for (const member of roster) {
    met.push(member.name);
    const second = seats[1]!;
    roster.delete(second.member, second.seat);
  }
  assert.deepEqual(met, ['a', 'c']);
  assert.equal(roster.add({ name: 'd' }), seats[1]!.seat);
});
