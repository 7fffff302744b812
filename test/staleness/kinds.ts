/** Two gateways on one database, and every kind of right that one can take away while the other one holds it in memory. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { operatorAuthor } from '../../src/audit/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { migrations } from '../../src/migrations.ts';
import { Sealing } from '../../src/sealing/index.ts';
import { rotateSigningKey } from '../../src/sign-in/index.ts';
import { setBalance } from '../../src/spend/index.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { type Changes, type Database, openDatabase } from '../../src/storage/database.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { type Gateway, startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { accessToken, claimsAt, KEY_HASH, makeKey, sign } from '../sign-in/federation/issuer.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { DatabaseLine } from './database-line.ts';

const ISSUER = 'https://issuer.test';
const CHAT = { model: 'test/a', max_tokens: 16 };
const given = await makeKey('given', 'ES256');
const YAML = {
  federation: [
    {
      id: 'ci',
      issuer: ISSUER,
      audience: 'gatehouse',
      claims: { sub: 'repo:*' },
      key: KEY_HASH,
      jwks: { keys: [given.jwk] },
    },
  ],
};
const KEK = { GATEHOUSE_KEK: Buffer.alloc(32, 7).toString('base64') };

export interface Scene {
  a: Gateway;
  b: Gateway;
  line: DatabaseLine;
  control: ReturnType<typeof controlOf>;
}

export async function scene(t: TestContext): Promise<Scene> {
  const target = await emptyDatabase(t, migrations);
  const line = await DatabaseLine.open(t, target);
  const options = { yaml: YAML, providers: { a: {}, b: {} }, env: KEK };
  const a = await startGateway(t, { ...options, target });
  const b = await startGateway(t, { ...options, target: line.target });
  const told = { text: 'yes', usage: { input: 100, output: 20 } };
  for (const gateway of [a, b]) {
    for (const name of ['a', 'b']) gateway.upstream.script(name, { ...answerOf('chat', false, told), repeat: true });
  }
  return { a, b, line, control: controlOf(a) };
}

export async function ask({ b }: Scene, token: string, model = CHAT.model): Promise<number> {
  const body = { ...CHAT, model, messages: [{ role: 'user', content: 'hi' }] };
  return (await controlOf(b).call('POST', '/chat/completions', body, token)).status;
}

export interface Kind {
  name: string;
  /** What B answers before, and after. */
  before: unknown;
  after: unknown;
  /** Makes the right, which B uses once. */
  given(scene: Scene, as?: string): Promise<{ use(): Promise<unknown>; revoke(): Promise<unknown> }>;
}

function slugOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}

async function ok(answer: Promise<{ status: number; body: Json }>): Promise<Json> {
  const { status, body } = await answer;
  assert.ok(status < 300, JSON.stringify(body));
  return body.data;
}

function keyKind(
  name: string,
  after: unknown,
  revoke: (scene: Scene, key: { hash: string; token: string }) => Promise<unknown>,
): Kind {
  return {
    ...{ name, before: 200, after },
    async given(scene) {
      const key = await scene.control.keyIn(undefined, name);
      return { use: () => ask(scene, key.token), revoke: () => revoke(scene, key) };
    },
  };
}

async function asOperator({ a }: Scene, work: (opened: { database: Database; changes: Changes }) => Promise<unknown>) {
  const parts = { target: a.target, clock: systemClock, log: silentLog };
  const database = await openDatabase(parts);
  const changes = await openChanges({ ...parts, database });
  try {
    await work({ database, changes });
  } finally {
    await changes.close();
    await database.close();
  }
}

/** The credential that the last request of B went out with. */
async function credential(scene: Scene, token: string): Promise<unknown> {
  const { b } = scene;
  const before = b.upstream.requests('b').length;
  const status = await ask(scene, token, 'test/b');
  const sent = b.upstream.requests('b').slice(before);
  return sent.length === 0 ? status : sent[0]!.headers.authorization;
}

function byokCredentialKind(
  name: string,
  body: Json,
  before: unknown,
  after: unknown,
  change: (id: string) => [string, string, Json?],
): Kind {
  return {
    ...{ name, before, after },
    async given(scene, as = name) {
      const { call, keyIn, made } = scene.control;
      const workspace = await made({ name: as, slug: slugOf(as) });
      const key = await keyIn(workspace.id, name);
      const { id } = await ok(call('POST', '/byok', { provider: 'b', workspace_id: workspace.id, ...body }));
      return { use: () => credential(scene, key.token), revoke: () => ok(call(...change(id))) };
    },
  };
}

export const KINDS: readonly Kind[] = [
  keyKind('a deleted key', 401, ({ control }, { hash }) => control.call('DELETE', `/keys/${hash}`)),
  keyKind('a disabled key', 401, ({ control }, { hash }) =>
    ok(control.call('PATCH', `/keys/${hash}`, { disabled: true })),
  ),
  keyKind('a key that may spend nothing', 402, ({ control }, { hash }) =>
    ok(control.call('PATCH', `/keys/${hash}`, { limit: 0 })),
  ),
  keyKind('a key that gets a guardrail', 403, async ({ control }, { hash }) => {
    const { id } = await ok(control.call('POST', '/guardrails', { name: 'none', allowed_models: ['test/b'] }));
    const assigned = await control.call('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: [hash] });
    assert.deepEqual(assigned.body, { assigned_count: 1 });
  }),
  {
    ...{ name: 'a guardrail that changes', before: 200, after: 403 },
    async given(scene) {
      const { call, keyIn } = scene.control;
      const key = await keyIn(undefined, 'guarded');
      const { id } = await ok(call('POST', '/guardrails', { name: 'some', allowed_models: ['test/a'] }));
      await call('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: [key.hash] });
      const revoke = () => ok(call('PATCH', `/guardrails/${id}`, { allowed_models: ['test/b'] }));
      return { use: () => ask(scene, key.token), revoke };
    },
  },
  {
    ...{ name: 'a budget of a workspace', before: 200, after: 402 },
    async given(scene, as = 'budget') {
      const { call, keyIn, made } = scene.control;
      const workspace = await made({ name: as, slug: slugOf(as) });
      const key = await keyIn(workspace.id, 'budgeted');
      const revoke = () => ok(call('PUT', `/workspaces/${workspace.id}/budgets/daily`, { limit_usd: 0.000001 }));
      return { use: () => ask(scene, key.token), revoke };
    },
  },
  {
    ...{ name: 'a preset that is deleted', before: 200, after: 404 },
    async given(scene, as = 'preset') {
      const { call, keyIn, made } = scene.control;
      const workspace = await made({ name: as, slug: slugOf(as) });
      const key = await keyIn(workspace.id, 'preset');
      const path = `/presets/mine?workspace_id=${workspace.id}`;
      await ok(call('POST', path.replace('?', '/chat/completions?'), { model: 'test/a' }));
      return { use: () => ask(scene, key.token, '@preset/mine'), revoke: () => call('DELETE', path) };
    },
  },
  {
    ...{ name: 'a workspace that is deleted', before: 200, after: 401 },
    async given(scene, as = 'ending') {
      const { call, keyIn, made } = scene.control;
      const workspace = await made({ name: as, slug: slugOf(as) });
      const key = await keyIn(workspace.id, 'ending');
      await call('DELETE', `/workspaces/${workspace.id}`);
      return { use: () => ask(scene, key.token), revoke: () => call('DELETE', `/keys/${key.hash}`) };
    },
  },
  byokCredentialKind(
    'BYOK credential disabled',
    { key: 'own-one' },
    'Bearer own-one',
    `Bearer ${UPSTREAM_KEY}`,
    (id) => ['PATCH', `/byok/${id}`, { disabled: true }],
  ),
  byokCredentialKind(
    'BYOK credential deleted',
    { key: 'own-two' },
    'Bearer own-two',
    `Bearer ${UPSTREAM_KEY}`,
    (id) => ['DELETE', `/byok/${id}`],
  ),
  byokCredentialKind(
    'BYOK credential of others',
    { key: 'own-three' },
    'Bearer own-three',
    `Bearer ${UPSTREAM_KEY}`,
    (id) => ['PATCH', `/byok/${id}`, { allowed_user_ids: ['user_of_nobody'] }],
  ),
  {
    ...{ name: 'a BYOK credential that is required', before: `Bearer ${UPSTREAM_KEY}`, after: 'Bearer own-required' },
    async given(scene, as = 'required') {
      const { call, keyIn, made } = scene.control;
      const workspace = await made({ name: as, slug: slugOf(as) });
      const key = await keyIn(workspace.id, 'required');
      const body = { provider: 'b', workspace_id: workspace.id, key: 'own-required', is_required: true };
      return { use: () => credential(scene, key.token), revoke: () => ok(call('POST', '/byok', body)) };
    },
  },
  {
    ...{ name: 'access tokens that an operator ends', before: 200, after: 401 },
    async given(scene) {
      const { a } = scene;
      const token = await accessToken(a, await sign(given, claimsAt(a.clock.now(), ISSUER)));
      const revoke = () =>
        asOperator(scene, ({ database, changes }) => {
          const sealing = new Sealing({ database, clock: systemClock, settings: a.config.sealing });
          const parts = { database, changes, clock: systemClock, sealing };
          return rotateSigningKey(parts, { author: operatorAuthor, endsTokens: true });
        });
      return { use: () => ask(scene, token), revoke };
    },
  },
  {
    ...{ name: 'the balance of the account', before: 200, after: 402 },
    async given(scene) {
      const key = await scene.control.keyIn(undefined, 'balance');
      const { organization_id: account } = await ok(scene.control.call('GET', '/key'));
      const revoke = () => asOperator(scene, (opened) => setBalance({ ...opened, clock: systemClock }, account, 1n));
      return { use: () => ask(scene, key.token), revoke };
    },
  },
];
