/** What a request keeps reserved over its attempts and turns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Charge } from '../../spend/index.ts';
import type { Admission } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { Candidate } from '../routing/index.ts';
import type { Task } from '../task.ts';
import { RequestReservation } from './reservation.ts';

/** A budget and a rate limit without an end, which show what is reserved. */
function reserving() {
  let held: Charge = { creditNano: 0n, byokNano: 0n };
  let next = { nano: 0n, tokens: 0 };
  const add = (more: Charge) => {
    held = { creditNano: held.creditNano + more.creditNano, byokNano: held.byokNano + more.byokNano };
  };
  const reservation = {
    refused: undefined,
    get held() {
      return held;
    },
    extend: (more: Charge) => {
      add(more);
      return true;
    },
  };
  const hold = {
    countsTokens: true,
    heldTokens: 0,
    raiseTo(tokens: number) {
      hold.heldTokens = Math.max(hold.heldTokens, tokens);
      return undefined;
    },
  };
  const reserve = (_: unknown, charge: Charge) => {
    add(charge);
    return reservation;
  };
  const task: Pick<Task, 'bound' | 'tokens'> = {
    bound: () => ({ nano: next.nano, within: () => undefined }),
    tokens: () => ({ tokens: next.tokens, within: () => undefined }),
  };
  const caller = { organizationId: 'org', kind: 'management', limitNano: null };
  const request = new RequestReservation(
    { request: { caller, startedAt: 0 }, rateLimitHold: hold } as unknown as Admission,
    task as Task,
    { accountBalanceNano: () => 1_000_000n, spend: { reserve }, clock: { now: () => 0 } } as unknown as InferenceParts,
  );
  return {
    request,
    dispatch(nano: number) {
      next = { nano: BigInt(nano), tokens: nano };
      assert.equal(request.hold({ endpoint: {} } as Candidate), undefined);
    },
    held: () => Number(held.creditNano),
    heldTokens: () => hold.heldTokens,
  };
}

const usageOf = (input: number) => ({ input, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 });

const attempt = fc.record({
  bound: fc.integer({ min: 0, max: 100 }),
  ends: fc.constantFrom('free', 'unknown', 'turn'),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
});

test('each attempt has its bound reserved on top of all that the request may have cost before it', () => {
  fc.assert(
    fc.property(fc.array(attempt, { maxLength: 12 }), (attempts) => {
      const { request, dispatch, held, heldTokens } = reserving();
      let most = 0;
      for (const { bound, ends, share } of attempts) {
        dispatch(bound);
        assert.ok(held() >= most + bound, `${held()} of ${most + bound}`);
        assert.ok(heldTokens() >= most + bound);
        if (ends === 'unknown') {
          request.keep();
          most += bound;
        } else if (ends === 'turn') {
          const spent = Math.floor(bound * share);
          request.turnEnded({ creditNano: BigInt(spent), byokNano: 0n }, usageOf(spent));
          most += spent;
        }
      }
    }),
  );
});

test('turns without failed attempts reserve no more than the earlier costs and one bound', () => {
  const { request, dispatch, held, heldTokens } = reserving();
  for (let turn = 0; turn < 5; turn += 1) {
    dispatch(100);
    request.turnEnded({ creditNano: 10n, byokNano: 0n }, usageOf(10));
  }
  assert.deepEqual([held(), heldTokens()], [140, 140]);
});
