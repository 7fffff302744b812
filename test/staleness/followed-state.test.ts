/**
 * Two gateways on one database, of which one stops hearing of changes: whatever was revoked through the other one is refused
 * there as soon as the write is answered (litellm#9820, keycloak#49991).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { migrations } from '../../src/migrations.ts';
import { StartError } from '../../src/server/start-error.ts';
import { OUTAGE_GRACE_MS, TRUST_MS } from '../../src/storage/freshness.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { directoryOf, scimToken } from '../scim/directory.ts';
import type { Json } from '../workspaces/control.ts';
import { DatabaseLine } from './database-line.ts';
import { ask, KINDS, type Kind, type Scene, scene } from './kinds.ts';

const WAYS: Record<string, (line: DatabaseLine) => void> = {
  'whose listening connection is cut and not let in again': (line) => {
    line.refuse('listener');
    line.cut('listener');
  },
  'whose listening connection leads nowhere': (line) => line.swallow('listener'),
  'that a pooler gives no notifications': (line) => {
    line.dropsNotifications = true;
  },
};

for (const [way, part] of Object.entries(WAYS)) {
  test(`a process ${way} uses no right that a write has taken away`, async (t) => {
    const here = await scene(t);
    const { b, line, control } = here;
    const rights = [];
    for (const kind of KINDS) rights.push({ ...kind, ...(await kind.given(here)) });
    for (const { name, use, before } of rights) assert.deepEqual(await use(), before, `${name} before`);
    part(line);
    for (const { name, use, revoke, after } of rights) {
      await revoke();
      assert.deepEqual(await use(), after, name);
    }
    const ready = await fetch(`${b.url}/ready`);
    assert.deepEqual(await ready.json(), {
      status: 'degraded',
      problems: ['change notifications do not arrive: each request reads the database'],
    });
    const figures = await fetch(`${b.url}/metrics`, { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } });
    assert.match(await figures.text(), /^gatehouse_changes_arrive 0$/m);
    line.mend();
    const { token, hash } = await control.keyIn(undefined, 'again');
    await until(
      async () => ((await (await fetch(`${b.url}/ready`)).json()) as Json).status === 'ok',
      'changes arrive again',
    );
    assert.equal(await ask(here, token), 402, 'the balance is spent');
    await control.call('DELETE', `/keys/${hash}`);
    assert.equal(await ask(here, token), 401);
  });
}

test('a process that hears of no changes closes the vault to the keys of an organization with a second member', async (t) => {
  const { a, b, line } = await scene(t);
  const directory = directoryOf(a, await scimToken(a.target));
  const list = async () => (await b.get('/vault/secrets')).status;
  assert.equal(await list(), 200);
  line.dropsNotifications = true;
  const { id } = await directory.user('second');
  assert.equal(await list(), 404);
  await directory.scim('DELETE', `/Users/${id}`);
  assert.ok([200, 404].includes(await list()));
  line.mend();
  await until(async () => (await list()) === 200, 'changes arrive again');
});

test('a process that reaches nothing serves known keys for the grace, then refuses until it reaches the database', async (t) => {
  const here = await scene(t);
  const { b, line, control } = here;
  const { token } = await control.keyIn(undefined, 'known');
  assert.equal(await ask(here, token), 200);
  for (const part of ['listener', 'pool'] as const) {
    line.refuse(part);
    line.cut(part);
  }
  assert.equal(await ask(here, token), 200);
  b.clock.jump(OUTAGE_GRACE_MS + TRUST_MS);
  assert.equal(await ask(here, token), 503);
  assert.equal((await fetch(`${b.url}/ready`)).status, 503);
  line.mend();
  await until(async () => (await ask(here, token)) === 200, 'the database is reached again');
});

test('a gateway does not start behind a pooler that drops notifications, and says why', async (t) => {
  const target = await emptyDatabase(t, migrations);
  const line = await DatabaseLine.open(t, target);
  line.dropsNotifications = true;
  await assert.rejects(startGateway(t, { target: line.target }), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, /notifications .* do not arrive.* PgBouncer with pool_mode=transaction/);
    return true;
  });
});

const STEPS = [
  'cut',
  'refuse',
  'swallow',
  'drop',
  'mend',
  'cut pool',
  'pass time',
  'revoke',
  'revoke',
  'revoke',
] as const;
/** These change what every other right is worth. */
const ALONE = new Set(['the balance of the account', 'access tokens that an operator ends']);
const LONGEST_MS = 20_000;

test('whatever happens to its connections in whatever order, a process uses no right that a write has taken away', async (t) => {
  const here = await scene(t);
  const kinds = KINDS.filter(({ name }) => !ALONE.has(name));
  const plan = fc.array(fc.tuple(fc.constantFrom(...STEPS), fc.nat(kinds.length - 1)), { minLength: 3, maxLength: 8 });
  let count = 0;
  const property = fc.asyncProperty(plan, async (steps) => {
    here.line.mend();
    await until(async () => (await readiness(here)).status === 'ok', 'changes arrive');
    // While all is well, so that what follows comes close together.
    const rights: { name: string; right: Awaited<ReturnType<Kind['given']>>; after: unknown }[] = [];
    for (const [step, at] of steps) {
      if (step !== 'revoke') continue;
      const name = `${kinds[at]!.name} ${++count}`;
      const right = await kinds[at]!.given(here, name);
      assert.deepEqual(await right.use(), kinds[at]!.before, `${name} before`);
      rights.push({ name, right, after: kinds[at]!.after });
    }
    for (const [step] of steps) {
      if (step !== 'revoke') {
        await happen(here, step);
        continue;
      }
      const { name, right, after } = rights.shift()!;
      await whileTimePasses(here, right.revoke());
      assert.deepEqual(await right.use(), after, name);
    }
  });
  await fc.assert(property, {
    numRuns: samples(15),
    seed: 20_261_129,
    interruptAfterTimeLimit: LONGEST_MS,
    endOnFailure: true,
  });
});

async function readiness({ b }: Scene): Promise<Json> {
  return (await fetch(`${b.url}/ready`)).json();
}

async function happen({ a, b, line }: Scene, step: Exclude<(typeof STEPS)[number], 'revoke'>): Promise<void> {
  if (step === 'cut') line.cut('listener');
  else if (step === 'cut pool') line.cut('pool');
  else if (step === 'refuse') line.refuse('listener');
  else if (step === 'swallow') line.swallow('listener');
  else if (step === 'drop') line.dropsNotifications = true;
  else if (step === 'mend') line.mend();
  else for (const { clock } of [b, a]) clock.jump(TRUST_MS / 2);
}

/** Time passes faster for both processes, in equal steps. */
async function whileTimePasses({ a, b }: Scene, pending: Promise<unknown>): Promise<void> {
  let done = false;
  const ended = pending.finally(() => {
    done = true;
  });
  ended.catch(() => {});
  await until(() => {
    if (!done) for (const { clock } of [b, a]) clock.jump(20);
    return done;
  }, 'the write is answered');
  await ended;
}
