import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../base/errors.ts';
import type { Changes } from '../storage/database.ts';
import { OUTAGE_GRACE_MS, ProvenFreshness, READ_TIMEOUT_MS, TRUST_MS } from '../storage/freshness.ts';
import { TestClock } from '../testing/clock/clock.ts';
import { TestFreshness } from '../testing/clock/freshness.ts';
import { samples } from '../testing/laws/samples.ts';
import {
  type AccessTokens,
  Authenticator,
  GUARDRAILS_TOPIC,
  KEYS_TOPIC,
  type KeyState,
  MAX_LOOKUPS,
  MAX_UNKNOWN_KEYS,
  MEMBERS_TOPIC,
  WORKSPACES_TOPIC,
} from './authenticator.ts';
import { type Caller, NO_GUARDRAILS, NO_TERMS } from './caller.ts';
import { hashToken } from './token.ts';

/** An authenticator whose database is a map that answers when the test allows it. */
class Scene {
  readonly clock = new TestClock();
  readonly database = { up: true };
  readonly freshness = new TestFreshness(this.clock, this.database);
  readonly rows = new Map<string, KeyState>();
  readonly batches: string[][] = [];
  readonly #subscribers = new Map<string, (id: string | null) => void>();
  /** If set, queries wait for it; a rejection fails them. */
  gate: Promise<void> | undefined;
  readonly authenticator: Authenticator;
  /** The key's hash for each JWT that acts for a key. */
  readonly standsFor = new Map<string, ReturnType<AccessTokens['keyHashOf']>>();

  constructor() {
    const changes: Pick<Changes, 'subscribe' | 'freshness'> = {
      freshness: this.freshness,
      subscribe: (topic, changed) => void this.#subscribers.set(topic, changed),
    };
    const load = async (hashes: string[]) => {
      this.batches.push(hashes);
      const rows = hashes.flatMap((hash) => this.rows.get(hash) ?? []);
      await this.gate;
      return rows;
    };
    const accessTokens = { keyHashOf: (token: string) => this.standsFor.get(token) };
    this.authenticator = new Authenticator({ changes, clock: this.clock, load, accessTokens });
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
    return this.authenticator.authenticate({ authorization: `Bearer ${token}` });
  }

  change(topic: string, id: string | null): void {
    this.#subscribers.get(topic)?.(id);
  }

  /** Takes the database down, with the connection that delivers changes. */
  fail(): void {
    this.database.up = false;
    this.freshness.stop();
    this.gate = Promise.reject(new Error('connection refused'));
    this.gate.catch(() => {});
  }

  recover(): void {
    this.database.up = true;
    this.gate = undefined;
  }

  /** Delivers changes again; some were missed. */
  relisten(): void {
    for (const changed of this.#subscribers.values()) changed(null);
    this.freshness.arrive();
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
  rateLimits: null,
  externalUser: null,
  internId: null,
  expiresAt: null,
  workspace: NO_TERMS,
  guardrails: NO_GUARDRAILS,
};

const status =
  (expected: number, message = /./) =>
  (error: unknown) =>
    error instanceof GatewayError && error.status === expected && message.test(error.message);
const retryable = (error: unknown) =>
  status(503)(error) && error instanceof GatewayError && error.details.metadata?.['retryable'] === true;

/** The outcome of presenting a token, whether thrown, rejected or returned. */
async function outcome(scene: Scene, token: string): Promise<Caller> {
  return scene.present(token);
}

test('a key is looked up once and then returned without a promise', async () => {
  const scene = new Scene();
  scene.add('key');
  const first = await scene.present('key');
  const second = scene.present('key');
  assert.ok(!(second instanceof Promise));
  assert.equal(second, first);
  assert.equal(scene.batches.length, 1);
});

test('a token that acts for a key yields that key, also without a promise', async () => {
  const scene = new Scene();
  scene.add('key');
  scene.add('eyJ-that-is-a-key');
  scene.standsFor.set('eyJ-known', hashToken('key'));
  scene.standsFor.set('eyJ-new', Promise.resolve(hashToken('key')));
  scene.standsFor.set('eyJ-not-ours', Promise.resolve(undefined));
  const caller = await scene.present('eyJ-new');
  assert.equal(scene.present('eyJ-known'), caller);
  assert.equal(scene.present('key'), caller);
  assert.equal(scene.batches.length, 1);
  assert.equal((await scene.present('eyJ-that-is-a-key')).keyHash, hashToken('eyJ-that-is-a-key'));
  await assert.rejects(outcome(scene, 'eyJ-not-ours'), status(401));
  assert.throws(() => scene.present(`eyJ${'a'.repeat(1_000)}`), status(401));
  scene.add('key', { disabled: true });
  scene.change(KEYS_TOPIC, hashToken('key'));
  await assert.rejects(outcome(scene, 'eyJ-known'), status(401, /disabled/));
});

test('a rotated hash still names the key, but presenting its ended secret is refused', async () => {
  const scene = new Scene();
  scene.add('former', {
    caller: { keyHash: hashToken('present') },
    presentedHash: hashToken('former'),
    aliasExpiresAt: 0,
  });
  await assert.rejects(outcome(scene, 'former'), status(401, /replaced/));
  assert.equal((await scene.authenticator.callerOfKey(hashToken('former'))).keyHash, hashToken('present'));
});

test("while the database is down a token works for its key's grace period", async () => {
  const scene = new Scene();
  scene.add('key');
  scene.standsFor.set('eyJ-known', hashToken('key'));
  await scene.present('eyJ-known');
  scene.fail();
  await scene.present('eyJ-known');
  scene.clock.advance(OUTAGE_GRACE_MS);
  await assert.rejects(outcome(scene, 'eyJ-known'), retryable);
});

test('concurrent requests with an uncached key share one query', async () => {
  const scene = new Scene();
  scene.add('key');
  const callers = await Promise.all(Array.from({ length: 50 }, () => scene.present('key')));
  assert.equal(new Set(callers).size, 1);
  assert.deepEqual(scene.batches, [[hashToken('key')]]);
});

test('unknown keys cost one query at a time, however many there are', async () => {
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

test('a repeated unknown key costs no query', async () => {
  const scene = new Scene();
  await assert.rejects(outcome(scene, 'invented'), status(401));
  assert.throws(() => scene.present('invented'), status(401));
  assert.equal(scene.batches.length, 1);
});

test('beyond the limit of concurrent lookups a request gets a retryable error', async () => {
  const scene = new Scene();
  const open = Promise.withResolvers<void>();
  scene.gate = open.promise;
  const tries = Array.from({ length: MAX_LOOKUPS }, (_, index) => outcome(scene, `invented-${index}`));
  await assert.rejects(outcome(scene, 'one-more'), retryable);
  open.resolve();
  for (const each of tries) await assert.rejects(each, status(401));
});

test('the cache of unknown keys is bounded and drops the oldest', async () => {
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

test('a key created after it was refused is accepted at once', async () => {
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

test('a change that names only the key applies to its other secrets, cached and being read', async () => {
  const scene = new Scene();
  const key = { presentedHash: hashToken('other'), caller: { keyHash: hashToken('key') } };
  const add = (disabled: boolean) => scene.add('other', { ...key, disabled });
  add(false);
  await scene.present('other');
  add(true);
  scene.change(KEYS_TOPIC, hashToken('key'));
  const open = Promise.withResolvers<void>();
  scene.gate = open.promise;
  const caller = outcome(scene, 'other');
  add(false);
  scene.change(KEYS_TOPIC, hashToken('key'));
  open.resolve();
  assert.equal((await caller).keyHash, hashToken('key'));
  assert.equal(scene.batches.length, 3);
});

test('a key created while it is being refused is not refused for ever', async () => {
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

test('an ended secret is an invalid credential, also for a key whose creator left', async () => {
  const scene = new Scene();
  scene.add('former', { creatorIsMember: false, aliasExpiresAt: 0 });
  await assert.rejects(outcome(scene, 'former'), status(401, /replaced/));
});

test('a key stops working at the millisecond of its expiry, without a query', async () => {
  const scene = new Scene();
  scene.add('key', { caller: { expiresAt: scene.clock.now() + 1000 } });
  await scene.present('key');
  scene.clock.advance(999);
  assert.ok(!(scene.present('key') instanceof Promise));
  scene.clock.advance(1);
  assert.throws(() => scene.present('key'), status(401, /expired/));
  assert.equal(scene.batches.length, 1);
});

test("when a member leaves, only that member's keys are read again", async () => {
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

test('changed workspace rules are read again, only for the keys of that workspace', async () => {
  const scene = new Scene();
  scene.add('theirs', { caller: { workspaceId: 'w1' } });
  scene.add('other', { caller: { workspaceId: 'w2' } });
  await scene.present('theirs');
  await scene.present('other');
  const workspace = { ...NO_TERMS, defaultTextModel: 'author/model' };
  scene.add('theirs', { caller: { workspaceId: 'w1', workspace } });
  scene.change(WORKSPACES_TOPIC, 'w1');
  assert.equal((await scene.present('theirs')).workspace, workspace);
  assert.ok(!(scene.present('other') instanceof Promise));
});

test('a changed guardrail is read again, only for the keys that it applies to', async () => {
  const scene = new Scene();
  const guardrails = { ids: ['g1'], regions: null };
  scene.add('guarded', { caller: { guardrails } });
  scene.add('other', { caller: { guardrails: { ids: ['g2'], regions: null } } });
  assert.equal((await scene.present('guarded')).guardrails, guardrails);
  await scene.present('other');
  scene.add('guarded', { caller: {} });
  scene.change(GUARDRAILS_TOPIC, 'g1');
  assert.equal((await scene.present('guarded')).guardrails, NO_GUARDRAILS);
  assert.ok(!(scene.present('other') instanceof Promise));
});

test('while the database is down a cached key works for the grace period, then gets a retryable 503', async () => {
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

test('while the database is down an unknown key gets a retryable 503, even if it was refused before', async () => {
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

test('while changes do not arrive, each request reads its key', async () => {
  const scene = new Scene();
  scene.add('key');
  await scene.present('key');
  await assert.rejects(outcome(scene, 'invented'), status(401));
  scene.freshness.stop();
  assert.equal((await scene.present('key')).limitNano, null);
  scene.add('key', { caller: { limitNano: 0n } });
  assert.equal((await scene.present('key')).limitNano, 0n);
  scene.rows.delete(hashToken('key'));
  await assert.rejects(outcome(scene, 'key'), status(401));
  scene.add('invented');
  assert.equal((await scene.present('invented')).keyHash, hashToken('invented'));
});

test('while changes do not arrive, a request does not join a query that began before it', async () => {
  const scene = new Scene();
  scene.add('key');
  await scene.present('key');
  scene.freshness.stop();
  const open = Promise.withResolvers<void>();
  scene.gate = open.promise;
  const early = outcome(scene, 'key');
  await turns();
  scene.add('key', { disabled: true });
  const late = [outcome(scene, 'key'), outcome(scene, 'key')];
  open.resolve();
  await early;
  for (const each of late) await assert.rejects(each, status(401, /disabled/));
  assert.equal(scene.batches.length, 3);
});

test('a freshness proof counts from the time it was sent, on both clocks', async () => {
  const clock = new TestClock();
  const freshness = new ProvenFreshness(clock, { up: true });
  assert.equal(freshness.current, false);
  const sent = freshness.now();
  clock.advance(TRUST_MS - 1);
  freshness.proven(sent);
  assert.equal(freshness.current, true);
  clock.advance(1);
  assert.equal(freshness.current, false);
  freshness.proven(freshness.now());
  clock.set(clock.now() + TRUST_MS);
  assert.equal(freshness.current, false, 'the machine slept, and its monotonic clock with it');
});

test('while changes do not arrive, cached keys are looked up even beyond the limit for unknown ones', async () => {
  const scene = new Scene();
  scene.add('key');
  await scene.present('key');
  scene.freshness.stop();
  const open = Promise.withResolvers<void>();
  scene.gate = open.promise;
  const tries = Array.from({ length: MAX_LOOKUPS }, (_, index) => outcome(scene, `invented-${index}`));
  scene.add('key', { disabled: true });
  const known = outcome(scene, 'key');
  open.resolve();
  await assert.rejects(known, status(401, /disabled/));
  for (const each of tries) await assert.rejects(each, status(401));
});

test('an unresponsive database delays one request at a time while cached keys are in their grace period', async () => {
  const scene = new Scene();
  scene.add('key');
  const caller = await scene.present('key');
  scene.freshness.stop();
  scene.gate = new Promise(() => {});
  const first = scene.present('key');
  scene.clock.advance(READ_TIMEOUT_MS);
  assert.equal(await first, caller);
  assert.equal(scene.present('key'), caller, 'at once');
  scene.clock.advance(READ_TIMEOUT_MS);
  const probe = scene.present('key');
  assert.ok(probe instanceof Promise);
  assert.equal(scene.present('key'), caller, 'at once, while one request tries');
  scene.clock.advance(READ_TIMEOUT_MS);
  assert.equal(await probe, caller);
});

test('a second failure before a key was read again grants no second grace period', async () => {
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

test('after missed changes keys are read again, and stay usable if that fails', async () => {
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

test('a database that accepts a query and never answers counts as down', async () => {
  const scene = new Scene();
  scene.gate = new Promise(() => {});
  const caller = outcome(scene, 'key');
  scene.clock.advance(READ_TIMEOUT_MS);
  await assert.rejects(caller, retryable);
});

/** Events, one after the other; requests and queries may stay open across any of them. */
const STEPS = [
  'present',
  'change',
  'delete',
  'hold',
  'release',
  'lose',
  'reach',
  'deafen',
  'relisten',
  'wait',
] as const;

test('in any order of events no answer is older than a received change, and no 401 is false', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 60 }), async (steps) => {
      const run = new Interleaving();
      for (const step of steps) {
        run.take(step);
        await turns();
      }
      run.take('reach');
      run.take('relisten');
      run.take('release');
      await run.finish();
    }),
    { numRuns: samples(500) },
  );
});

async function turns(): Promise<void> {
  for (let turn = 0; turn < 12; turn += 1) await Promise.resolve();
}

/** One key whose name counts its changes, and the permitted answers meanwhile. */
class Interleaving {
  readonly #scene = new Scene();
  readonly #open: { check: Promise<void>; watch: { absent: boolean; present: boolean; down: boolean } }[] = [];
  #version = 0;
  /** The newest version announced to this process for the key. */
  #arrived = 0;
  /** The version at which it learned that changes may be missing; it reads them as soon as the database answers. */
  #suspected = 0;
  #listening = true;
  #held: PromiseWithResolvers<void> | undefined;

  constructor() {
    this.#change();
  }

  take(step: (typeof STEPS)[number]): void {
    const scene = this.#scene;
    if (step === 'present') this.#present();
    else if (step === 'change') this.#change();
    else if (step === 'delete') this.#change(true);
    else if (step === 'wait') this.#wait();
    else if (step === 'hold') this.#hold();
    else if (step === 'release') this.#release();
    else if (step === 'lose') this.#lose();
    else if (step === 'deafen') this.#deafen();
    else if (step === 'reach' && !scene.database.up) scene.recover();
    else if (step === 'relisten' && scene.database.up && !this.#listening) this.#relisten();
  }

  /** Every request must have received a permitted answer. */
  async finish(): Promise<void> {
    this.#present();
    for (const { check } of this.#open) await check;
  }

  #change(absent = false): void {
    this.#version += 1;
    if (absent) this.#scene.rows.delete(hashToken('key'));
    else this.#scene.add('key', { caller: { name: String(this.#version) } });
    for (const { watch } of this.#open) watch[absent ? 'absent' : 'present'] = true;
    if (!this.#listening) return;
    this.#arrived = this.#version;
    this.#scene.change(KEYS_TOPIC, hashToken('key'));
  }

  /** A query that is held for too long has failed, as if the database were down. */
  #wait(): void {
    if (this.#held !== undefined) for (const { watch } of this.#open) watch.down = true;
    this.#scene.clock.advance(1000);
  }

  #hold(): void {
    if (this.#held !== undefined || !this.#scene.database.up) return;
    this.#held = Promise.withResolvers();
    this.#held.promise.catch(() => {});
    this.#scene.gate = this.#held.promise;
  }

  #release(): void {
    this.#held?.resolve();
    this.#held = undefined;
    if (this.#scene.database.up) this.#scene.gate = undefined;
  }

  /** Running queries fail; later changes are not delivered. */
  #lose(): void {
    this.#held?.reject(new Error('connection reset'));
    this.#held = undefined;
    this.#scene.fail();
    this.#listening = false;
    for (const { watch } of this.#open) watch.down = true;
  }

  #deafen(): void {
    this.#listening = false;
    this.#scene.freshness.stop();
  }

  #relisten(): void {
    this.#listening = true;
    this.#suspected = this.#version;
    this.#scene.relisten();
  }

  #present(): void {
    const exists = this.#scene.rows.has(hashToken('key'));
    const watch = { absent: !exists, present: exists, down: !this.#scene.database.up };
    const arrived = this.#arrived;
    // While changes do not arrive, the database is read.
    const asked = this.#listening ? Math.max(arrived, this.#suspected) : this.#version;
    const check = outcome(this.#scene, 'key').then(
      ({ name }) => {
        // Without the database missed changes are unknown, and cached keys work for the grace period of an outage.
        const floor = watch.down ? arrived : asked;
        assert.ok(Number(name) >= floor, `version ${name} after ${floor} had arrived`);
      },
      (error) => {
        if (status(401)(error)) assert.ok(watch.absent, 'a 401 for a key that exists');
        else assert.ok(retryable(error) && watch.down, `refused though the database was there: ${error}`);
      },
    );
    this.#open.push({ check, watch });
  }
}
