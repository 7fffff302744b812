import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SlotList } from './slot-list.ts';

test('a slot list has exactly the members that were added and not deleted, in any order', () => {
  const step = fc.oneof(fc.constant('add' as const), fc.nat({ max: 40 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const slots = new SlotList<object>();
      const added: { member: object; slot: number }[] = [];
      const present = new Set<object>();
      for (const one of steps) {
        if (one === 'add') {
          const member = {};
          added.push({ member, slot: slots.add(member) });
          present.add(member);
        } else if (added.length > 0) {
          // Also a deleted one, whose slot may have another member by now.
          const { member, slot } = added[one % added.length]!;
          slots.delete(member, slot);
          present.delete(member);
        }
        assert.equal(slots.size, present.size);
        assert.deepEqual(new Set(slots), present);
      }
    }),
  );
});

test('iteration skips members deleted meanwhile, and their slots are reused', () => {
  const list = new SlotList<{ name: string }>();
  const slots = ['a', 'b', 'c'].map((name) => ({ name })).map((member) => ({ member, slot: list.add(member) }));
  const met: string[] = [];
  for (const member of list) {
    met.push(member.name);
    const second = slots[1]!;
    list.delete(second.member, second.slot);
  }
  assert.deepEqual(met, ['a', 'c']);
  assert.equal(list.add({ name: 'd' }), slots[1]!.slot);
});
