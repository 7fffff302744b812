import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../base/errors.ts';
import type { Changes } from '../storage/database.ts';
import { TestClock } from '../testing/clock.ts';
import {
  Authenticator,
  KEYS_TOPIC,
  type KeyState,
  LOOKUP_TIMEOUT_MS,
  MAX_LOOKUPS,
  MAX_UNKNOWN_KEYS,
  MEMBERS_TOPIC,
  OUTAGE_GRACE_MS,
} from './authenticator.ts';
import type { Caller } from './caller.ts';
import { hashToken } from './token.ts';

/** An authenticator whose database is a map that answers when the test says so. */
class Scene {
  readonly clock = new TestClock();
  readonly database = { up: true };
  readonly rows = new Map<string, KeyState>();
  readonly batches: string[][] = [];
  readonly #subscribers = new Map<string, (id: string | null) => void>();
  /** Set: queries wait for it; a rejection fails them. */
  gate: Promise<void> | undefined;
  readonly #authenticator: Authenticator;

  constructor() {
    const changes: Pick<Changes, 'subscribe'> = {
      subscribe: (topic, changed) => void this.#subscribers.set(topic, changed),
    };
    const load = async (hashes: string[]) => {
      this.batches.push(hashes);
      const rows = hashes.flatMap((hash) => this.rows.get(hash) ?? []);
      await this.gate;
      return rows;
    };
    this.#authenticator = new Authenticator({ database: this.database, changes, clock: this.clock, load });
  }

  add(token: string, state: Partial<Omit<KeyState, 'caller'>> & { caller?: Partial<Caller> } = {}): void {
    this.rows.set(hashToken(token), {
      disabled: false,
      creatorIsMember: true,
      ...state,
      caller: { ...CALLER, keyHash: hashToken(token), ...state.caller },
    });
  }

  present(token: string): Caller | Promise<Caller> {
    return this.#authenticator.authenticate({ authorization: `Bearer ${token}` });
  }

  change(topic: string, id: string | null): void {
    this.#subscribers.get(topic)?.(id);
  }

  fail(): void {
    this.database.up = false;
    this.gate = Promise.reject(new Error('connection refused'));
    this.gate.catch(() => {});
  }

  recover(): void {
    this.database.up = true;
    this.gate = undefined;
  }
}

const CALLER: Caller = {
  keyId: '0190a000-0000-7000-8000-000000000001',
  keyHash: '',
  kind: 'inference',
  name: 'key',
  label: 'sk-...',
  userId: 'user_1',
  organizationId: 'org_1',
  workspaceId: '0190a000-0000-7000-8000-000000000002',
  limitNano: null,
  limitReset: null,
  includeByokInLimit: false,
  externalUser: null,
  expiresAt: null,
};

const status =
  (expected: number, message = /./) =>
  (error: unknown) =>
    error instanceof GatewayError && error.status === expected && message.test(error.message);
const retryable = (error: unknown) =>
  status(503)(error) && error instanceof GatewayError && error.details.metadata?.['retryable'] === true;

/** The outcome of presenting a token, whether it is thrown, rejected or returned. */
async function outcome(scene: Scene, token: string): Promise<Caller> {
  return scene.present(token);
}

test('a key is asked for once and then answers without a promise', async () => {
  const scene = new Scene();
  scene.add('key');
  const first = await scene.present('key');
  const second = scene.present('key');
  assert.ok(!(second instanceof Promise));
  assert.equal(second, first);
  assert.equal(scene.batches.length, 1);
});

test('requests that meet an unread key at the same time share one query', async () => {
  const scene = new Scene();
  scene.add('key');
  const callers = await Promise.all(Array.from({ length: 50 }, () => scene.present('key')));
  assert.equal(new Set(callers).size, 1);
  assert.deepEqual(scene.batches, [[hashToken('key')]]);
});

test('invented keys cost one query at a time, however many there are', async () => {
  const scene = new Scene();
  const open = Promise.withResolvers<void>();
  scene.gate = open.promise;
  const tries = Array.from({ length: 100 }, (_, index) => outcome(scene, `invented-${index}`));
  assert.equal(scene.batches.length, 1);
  open.resolve();
  for (const each of tries) await assert.rejects(each, status(401));
  assert.deepEqual(
    scene.batches.map((batch) => batch.length),
    [1, 99],
  );
});

test('an invented key that comes again costs no query', async () => {
  const scene = new Scene();
  await assert.rejects(outcome(scene, 'invented'), status(401));
  assert.throws(() => scene.present('invented'), status(401));
  assert.equal(scene.batches.length, 1);
});

test('past the bound of keys being looked up a request is told to come back', async () => {
  const scene = new Scene();
  const open = Promise.withResolvers<void>();
  scene.gate = open.promise;
  const tries = Array.from({ length: MAX_LOOKUPS }, (_, index) => outcome(scene, `invented-${index}`));
  await assert.rejects(outcome(scene, 'one-more'), retryable);
  open.resolve();
  for (const each of tries) await assert.rejects(each, status(401));
});

test('the memory of invented keys is bounded and forgets the oldest', async () => {
  const scene = new Scene();
  const waves = Math.ceil((MAX_UNKNOWN_KEYS + 1) / 1000);
  for (let wave = 0; wave < waves; wave += 1) {
    const tries = Array.from({ length: 1000 }, (_, index) => outcome(scene, `invented-${wave}-${index}`));
    await Promise.allSettled(tries);
  }
  const before = scene.batches.length;
  await assert.rejects(outcome(scene, `invented-${waves - 1}-999`), status(401));
  assert.equal(scene.batches.length, before, 'the newest is remembered');
  await assert.rejects(outcome(scene, 'invented-0-0'), status(401));
  assert.equal(scene.batches.length, before + 1, 'the oldest is not');
});

test('a key that is made after it was refused is accepted at once', async () => {
  const scene = new Scene();
  await assert.rejects(outcome(scene, 'key'), status(401));
  scene.add('key');
  scene.change(KEYS_TOPIC, hashToken('key'));
  assert.equal((await scene.present('key')).keyHash, hashToken('key'));
});

test('a change that arrives while the key is being read is not lost', async () => {
  const scene = new Scene();
  scene.add('key');
  const open = Promise.withResolvers<void>();
  scene.gate = open.promise;
  const caller = outcome(scene, 'key');
  scene.add('key', { disabled: true });
  scene.change(KEYS_TOPIC, hashToken('key'));
  open.resolve();
  await assert.rejects(caller, status(401, /disabled/));
  assert.throws(() => scene.present('key'), status(401, /disabled/));
});

test('a key that is made while it is being refused is not refused for ever', async () => {
  const scene = new Scene();
  const open = Promise.withResolvers<void>();
  scene.gate = open.promise;
  const caller = outcome(scene, 'key');
  scene.add('key');
  scene.change(KEYS_TOPIC, hashToken('key'));
  open.resolve();
  assert.equal((await caller).keyHash, hashToken('key'));
});

test('a disabled key is refused with 401 and a key whose creator left with 403', async () => {
  const scene = new Scene();
  scene.add('disabled', { disabled: true });
  scene.add('orphan', { creatorIsMember: false });
  await assert.rejects(outcome(scene, 'disabled'), status(401, /disabled/));
  await assert.rejects(outcome(scene, 'orphan'), status(403, /no longer a member/));
});

test('a key stops at the millisecond of its expiry, without a query', async () => {
  const scene = new Scene();
  scene.add('key', { caller: { expiresAt: scene.clock.now() + 1000 } });
  await scene.present('key');
  scene.clock.advance(999);
  assert.ok(!(scene.present('key') instanceof Promise));
  scene.clock.advance(1);
  assert.throws(() => scene.present('key'), status(401, /expired/));
  assert.equal(scene.batches.length, 1);
});

test('when a member leaves, the keys the member made are read again, and no others', async () => {
  const scene = new Scene();
  scene.add('theirs', { caller: { userId: 'user_2' } });
  scene.add('other');
  await scene.present('theirs');
  await scene.present('other');
  scene.add('theirs', { caller: { userId: 'user_2' }, creatorIsMember: false });
  scene.change(MEMBERS_TOPIC, 'user_2');
  await assert.rejects(outcome(scene, 'theirs'), status(403));
  assert.ok(!(scene.present('other') instanceof Promise));
});

test('while the database is down a known key works for the grace, then gets a retryable 503', async () => {
  const scene = new Scene();
  scene.add('key');
  const caller = await scene.present('key');
  scene.clock.advance(10 * OUTAGE_GRACE_MS);
  scene.fail();
  assert.equal(scene.present('key'), caller, 'the grace counts from the outage, not from the reading');
  scene.clock.advance(OUTAGE_GRACE_MS - 1);
  assert.equal(scene.present('key'), caller);
  scene.clock.advance(1);
  await assert.rejects(outcome(scene, 'key'), retryable);
});

test('while the database is down an unknown key gets a retryable 503, also one that was refused before', async () => {
  const scene = new Scene();
  await assert.rejects(outcome(scene, 'refused'), status(401));
  scene.fail();
  await assert.rejects(outcome(scene, 'refused'), retryable);
  await assert.rejects(outcome(scene, 'never-seen'), retryable);
});

test('while the database is down a key that was disabled or expires is still refused with 401', async () => {
  const scene = new Scene();
  scene.add('disabled', { disabled: true });
  scene.add('short', { caller: { expiresAt: scene.clock.now() + 1000 } });
  await assert.rejects(outcome(scene, 'disabled'), status(401));
  await scene.present('short');
  scene.fail();
  assert.throws(() => scene.present('disabled'), status(401));
  scene.clock.advance(1000);
  assert.throws(() => scene.present('short'), status(401));
});

test('after an outage a key is read again before it is trusted again', async () => {
  const scene = new Scene();
  scene.add('key');
  await scene.present('key');
  scene.fail();
  await scene.present('key');
  scene.recover();
  scene.add('key', { disabled: true });
  await assert.rejects(outcome(scene, 'key'), status(401, /disabled/));
});

test('a database that fails again before the key was read again grants no second grace', async () => {
  const scene = new Scene();
  scene.add('key');
  await scene.present('key');
  scene.fail();
  await scene.present('key');
  scene.clock.advance(OUTAGE_GRACE_MS / 2);
  scene.recover();
  scene.fail();
  scene.clock.advance(OUTAGE_GRACE_MS / 2);
  await assert.rejects(outcome(scene, 'key'), retryable);
});

test('after missed changes keys are read again, and serve on if that fails', async () => {
  const scene = new Scene();
  scene.add('key');
  const caller = await scene.present('key');
  scene.change(KEYS_TOPIC, null);
  scene.gate = Promise.reject(new Error('connection reset'));
  scene.gate.catch(() => {});
  assert.equal(await scene.present('key'), caller);
  scene.gate = undefined;
  scene.add('key', { disabled: true });
  await assert.rejects(outcome(scene, 'key'), status(401, /disabled/));
});

test('a database that takes a query and never answers counts as down', async () => {
  const scene = new Scene();
  scene.gate = new Promise(() => {});
  const caller = outcome(scene, 'key');
  scene.clock.advance(LOOKUP_TIMEOUT_MS);
  await assert.rejects(caller, retryable);
});
