/** Access rules in every combination. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../base/errors.ts';
import { type AccessRule, ANY_KEY, ANYONE, type CallerKind, INFERENCE, type Region } from '../http/access-rule.ts';
import type { Caller } from './caller.ts';
import { type AccessRequest, createPermit } from './permit.ts';

const KINDS: readonly CallerKind[] = ['inference', 'management', 'scim'];
const REGIONS: readonly Region[] = ['global', 'europe', 'us'];

/** `workspaceId` says which programme and which thing it has. */
const callerOf = (kind: CallerKind, workspaceId: string) => ({ kind, workspaceId }) as Caller;

const permit = createPermit({
  programmes: { trial: ({ workspaceId }) => workspaceId.startsWith('trial') },
  scopes: { ownThing: ({ workspaceId }, { thing }) => workspaceId.endsWith(`-${thing}`) },
  regionOf: (host) => REGIONS.find((region) => host?.startsWith(region)) ?? 'global',
});

/** The status that a rule answers to a request; 200 if it lets it pass. */
function statusOf(request: AccessRequest, rule: AccessRule): number {
  try {
    permit(request, rule);
    return 200;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error.status;
  }
}

/** With and without each of some values. */
function subsets<T>([first, ...rest]: readonly T[]): T[][] {
  if (first === undefined) return [[]];
  return subsets(rest).flatMap((each) => [each, [first, ...each]]);
}

test('a request passes exactly if kind, programme, scope and root all admit it; 404 where it must not know of the operation', () => {
  let asked = 0;
  for (const kinds of subsets(KINDS)) {
    for (const regions of subsets(REGIONS)) {
      for (const [programme, scope] of [[], ['trial'], [undefined, 'ownThing'], ['trial', 'ownThing']]) {
        const rule = { kinds, regions, ...(programme && { programme }), ...(scope && { scope }) };
        for (const kind of KINDS) {
          for (const workspaceId of ['trial-a', 'trial-b', 'other-a', 'other-b']) {
            for (const region of REGIONS) {
              const request = { caller: callerOf(kind, workspaceId), params: { thing: 'a' }, host: `${region}.test` };
              const member = programme === undefined || workspaceId.startsWith('trial');
              const own = scope === undefined || workspaceId.endsWith('a');
              const passes = member && kinds.includes(kind) && own && regions.includes(region);
              const hidden = !member || (kinds.includes(kind) && !own);
              assert.equal(statusOf(request, rule), passes ? 200 : hidden ? 404 : 403, JSON.stringify([rule, request]));
              asked += 1;
            }
          }
        }
      }
    }
  }
  assert.equal(asked, 8 * 8 * 4 * 3 * 4 * 3);
});

test('a rule may answer keys of other kinds like unknown ones', () => {
  const request = { caller: callerOf('management', 'trial-a'), params: {}, host: 'global.test' };
  assert.equal(statusOf(request, INFERENCE), 403);
  assert.equal(statusOf(request, { ...INFERENCE, otherKinds: 'unknown' }), 401);
});

test('a programme or scope that the wiring does not define admits no caller', () => {
  const request = { caller: callerOf('inference', 'trial-a'), params: {}, host: 'global.test' };
  assert.equal(statusOf(request, { ...INFERENCE, programme: 'forgotten' }), 404);
  assert.equal(statusOf(request, { ...INFERENCE, scope: 'forgotten' }), 404);
});

test('a request without a caller is in no programme and no scope', () => {
  const request = { caller: undefined, params: { thing: 'a' }, host: 'global.test' };
  assert.equal(statusOf(request, { ...ANYONE, programme: 'trial' }), 404);
  assert.equal(statusOf(request, { ...ANYONE, scope: 'ownThing' }), 404);
});

test('the host is looked up only for an operation that some roots do not serve', () => {
  let looked = 0;
  const request = {
    caller: callerOf('inference', 'trial-a'),
    params: { thing: 'a' },
    get host() {
      looked += 1;
      return 'global.test';
    },
  };
  for (const rule of [INFERENCE, ANY_KEY, ANYONE, { ...INFERENCE, programme: 'trial', scope: 'ownThing' }]) {
    permit(request, rule);
  }
  assert.equal(looked, 0);
  permit(request, { ...INFERENCE, regions: ['global'] });
  assert.equal(looked, 1);
});
