/**
 * Every method that `@openrouter/sdk` has for keys and governance, unmodified, each once and in an order in which they make
 * sense. A method that a newer SDK adds makes this fail until it is listed here.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { claimsAt, KEY_HASH, makeKey, sign } from '../sign-in/federation/issuer.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const ISSUER = 'https://issuer.test';
const issued = await makeKey('one', 'ES256');
const policy = { id: 'ci', issuer: ISSUER, audience: 'gatehouse', claims: { sub: 'repo:*' }, key: KEY_HASH };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    providers: { a: {} },
    yaml: { federation: [{ ...policy, jwks: { keys: [issued.jwk] } }] },
  },
);
const control = controlOf(gateway);
const sdk = new OpenRouter({ apiKey: MANAGEMENT_KEY, serverURL: gateway.api, retryConfig: { strategy: 'none' } });

const AREAS = [
  'apiKeys',
  'byok',
  'oAuth',
  'organization',
  'workspaces',
  'guardrails',
  'scim',
  'credits',
  'analytics',
] as const;

/** Made by some rows for those after them. */
const ids: Json = {};
const NOBODY = '00000000-0000-7000-8000-000000000000';
const missing = async (pending: Promise<unknown>) => {
  await assert.rejects(pending, (error) => (error as { statusCode?: number }).statusCode === 404);
};
const pages = async (answer: unknown): Promise<Json[]> => {
  const found: Json[] = [];
  for await (const { result } of answer as AsyncIterable<{ result: { data: Json[] } }>) found.push(...result.data);
  return found;
};

const ROWS: readonly [string, () => Promise<unknown>][] = [
  [
    'organization.listMembers',
    async () => {
      const [member] = await pages(await sdk.organization.listMembers());
      ids.user = member!.id;
    },
  ],
  [
    'workspaces.create',
    async () => {
      ids.workspace = (await sdk.workspaces.create({ createWorkspaceRequest: { name: 'Ops', slug: 'ops' } })).data.id;
    },
  ],
  [
    'workspaces.list',
    async () => assert.ok((await pages(await sdk.workspaces.list())).some(({ id }) => id === ids.workspace)),
  ],
  ['workspaces.get', async () => assert.equal((await sdk.workspaces.get({ id: 'ops' })).data.id, ids.workspace)],
  [
    'workspaces.update',
    async () => {
      const { data } = await sdk.workspaces.update({ id: 'ops', updateWorkspaceRequest: { name: 'Operations' } });
      assert.equal(data.name, 'Operations');
    },
  ],
  [
    'workspaces.bulkAddMembers',
    () => sdk.workspaces.bulkAddMembers({ id: 'ops', bulkAddWorkspaceMembersRequest: { userIds: [ids.user] } }),
  ],
  [
    'workspaces.listMembers',
    async () => assert.equal((await pages(await sdk.workspaces.listMembers({ id: 'ops' }))).length, 1),
  ],
  [
    'workspaces.setBudget',
    () =>
      sdk.workspaces.setBudget({
        workspaceRef: 'ops',
        interval: 'daily',
        upsertWorkspaceBudgetRequest: { limitUsd: 5 },
      }),
  ],
  [
    'workspaces.getBudget',
    async () =>
      assert.equal((await sdk.workspaces.getBudget({ workspaceRef: 'ops', interval: 'daily' })).data.limitUsd, 5),
  ],
  [
    'workspaces.listBudgets',
    async () => assert.equal((await sdk.workspaces.listBudgets({ workspaceRef: 'ops' })).data.length, 1),
  ],
  ['workspaces.deleteBudget', () => sdk.workspaces.deleteBudget({ workspaceRef: 'ops', interval: 'daily' })],
  [
    'apiKeys.create',
    async () => {
      const { key, data } = await sdk.apiKeys.create({ requestBody: { name: 'sdk', workspaceId: ids.workspace } });
      Object.assign(ids, { key, hash: data.hash });
    },
  ],
  [
    'apiKeys.list',
    async () => assert.equal((await sdk.apiKeys.list({ workspaceId: ids.workspace })).data[0]!.hash, ids.hash),
  ],
  ['apiKeys.get', async () => assert.equal((await sdk.apiKeys.get({ hash: ids.hash })).data.name, 'sdk')],
  [
    'apiKeys.update',
    async () => assert.equal((await sdk.apiKeys.update({ hash: ids.hash, requestBody: { limit: 2 } })).data.limit, 2),
  ],
  [
    'apiKeys.getCurrentKeyMetadata',
    async () => {
      const own = new OpenRouter({ apiKey: ids.key, serverURL: gateway.api, retryConfig: { strategy: 'none' } });
      assert.equal((await own.apiKeys.getCurrentKeyMetadata()).data.limit, 2);
    },
  ],
  [
    'byok.create',
    async () => {
      const request = { provider: 'openai' as const, key: 'sk-own-1234567890', workspaceId: ids.workspace };
      ids.own = (await sdk.byok.create({ createBYOKKeyRequest: request })).data.id;
    },
  ],
  [
    'byok.list',
    async () => assert.equal((await pages(await sdk.byok.list({ workspaceId: ids.workspace })))[0]!.id, ids.own),
  ],
  ['byok.get', async () => assert.equal((await sdk.byok.get({ id: ids.own })).data.disabled, false)],
  [
    'byok.update',
    async () =>
      assert.equal(
        (await sdk.byok.update({ id: ids.own, updateBYOKKeyRequest: { disabled: true } })).data.disabled,
        true,
      ),
  ],
  [
    'byok.delete',
    async () => {
      await sdk.byok.delete({ id: ids.own });
      await missing(sdk.byok.get({ id: ids.own }));
    },
  ],
  [
    'oAuth.createAuthorizationUrl',
    async () => {
      const address = await sdk.oAuth.createAuthorizationUrl({ callbackUrl: 'https://app.example.test/' });
      assert.equal((await fetch(address)).status, 200);
    },
  ],
  ['oAuth.createSHA256CodeChallenge', async () => Object.assign(ids, await sdk.oAuth.createSHA256CodeChallenge())],
  [
    'oAuth.createAuthCode',
    async () => {
      const requestBody = {
        callbackUrl: 'https://app.example.test/',
        codeChallenge: ids.codeChallenge,
        codeChallengeMethod: 'S256' as const,
      };
      ids.code = (await sdk.oAuth.createAuthCode({ requestBody })).data.id;
    },
  ],
  [
    'oAuth.exchangeAuthCodeForAPIKey',
    async () => {
      const requestBody = { code: ids.code, codeVerifier: ids.codeVerifier, codeChallengeMethod: 'S256' as const };
      assert.equal((await sdk.oAuth.exchangeAuthCodeForAPIKey({ requestBody })).userId, ids.user);
    },
  ],
  [
    'oAuth.createOauthToken',
    async () => {
      const request = {
        federationPolicyId: policy.id,
        grantType: 'urn:ietf:params:oauth:grant-type:token-exchange' as const,
        subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt' as const,
        subjectToken: await sign(issued, claimsAt(gateway.clock.now(), ISSUER)),
      };
      const answer = await sdk.oAuth.createOauthToken({ tokenExchangeRequest: request });
      const own = new OpenRouter({
        apiKey: answer.accessToken,
        serverURL: gateway.api,
        retryConfig: { strategy: 'none' },
      });
      assert.equal((await own.apiKeys.getCurrentKeyMetadata()).data.isManagementKey, false);
      const unsigned = { ...request, subjectToken: 'a.b.c' };
      await assert.rejects(sdk.oAuth.createOauthToken({ tokenExchangeRequest: unsigned }), (error) => {
        const { statusCode, error: code, errorDescription } = error as Json;
        assert.match(errorDescription, /subject_token/);
        return statusCode === 400 && code === 'invalid_grant';
      });
    },
  ],
  [
    'oAuth.listOauthJwks',
    async () =>
      assert.deepEqual(
        (await sdk.oAuth.listOauthJwks()).keys.map(({ alg }) => alg),
        ['ES256'],
      ),
  ],
  [
    'guardrails.create',
    async () => {
      ids.guardrail = (
        await sdk.guardrails.create({
          createGuardrailRequest: { name: 'Rules', limitUsd: 3, resetInterval: 'monthly', workspaceId: ids.workspace },
        })
      ).data.id;
    },
  ],
  [
    'guardrails.list',
    async () =>
      assert.ok(
        (await pages(await sdk.guardrails.list({ workspaceId: ids.workspace }))).some(({ id }) => id === ids.guardrail),
      ),
  ],
  ['guardrails.get', async () => assert.equal((await sdk.guardrails.get({ id: ids.guardrail })).data.limitUsd, 3)],
  [
    'guardrails.update',
    async () => {
      const { data } = await sdk.guardrails.update({
        id: ids.guardrail,
        updateGuardrailRequest: { limitUsd: 4, resetInterval: 'daily' },
      });
      assert.equal(data.limitUsd, 4);
    },
  ],
  [
    'guardrails.bulkAssignKeys',
    async () =>
      assert.equal(
        (await sdk.guardrails.bulkAssignKeys({ id: ids.guardrail, bulkAssignKeysRequest: { keyHashes: [ids.hash] } }))
          .assignedCount,
        1,
      ),
  ],
  [
    'guardrails.listKeyAssignments',
    async () => assert.equal((await pages(await sdk.guardrails.listKeyAssignments())).length, 1),
  ],
  [
    'guardrails.listGuardrailKeyAssignments',
    async () =>
      assert.equal((await pages(await sdk.guardrails.listGuardrailKeyAssignments({ id: ids.guardrail }))).length, 1),
  ],
  [
    'guardrails.bulkUnassignKeys',
    async () =>
      assert.equal(
        (
          await sdk.guardrails.bulkUnassignKeys({
            id: ids.guardrail,
            bulkUnassignKeysRequest: { keyHashes: [ids.hash] },
          })
        ).unassignedCount,
        1,
      ),
  ],
  [
    'guardrails.bulkAssignMembers',
    async () =>
      assert.equal(
        (
          await sdk.guardrails.bulkAssignMembers({
            id: ids.guardrail,
            bulkAssignMembersRequest: { memberUserIds: [ids.user] },
          })
        ).assignedCount,
        1,
      ),
  ],
  [
    'guardrails.listMemberAssignments',
    async () => assert.equal((await pages(await sdk.guardrails.listMemberAssignments())).length, 1),
  ],
  [
    'guardrails.listGuardrailMemberAssignments',
    async () =>
      assert.equal((await pages(await sdk.guardrails.listGuardrailMemberAssignments({ id: ids.guardrail }))).length, 1),
  ],
  [
    'guardrails.bulkUnassignMembers',
    async () =>
      assert.equal(
        (
          await sdk.guardrails.bulkUnassignMembers({
            id: ids.guardrail,
            bulkUnassignMembersRequest: { memberUserIds: [ids.user] },
          })
        ).unassignedCount,
        1,
      ),
  ],
  ['guardrails.delete', async () => assert.equal((await sdk.guardrails.delete({ id: ids.guardrail })).deleted, true)],
  ['scim.listGroups', async () => assert.deepEqual(await pages(await sdk.scim.listGroups()), [])],
  ['scim.listMappings', async () => assert.deepEqual(await pages(await sdk.scim.listMappings()), [])],
  [
    'scim.create',
    () =>
      missing(
        sdk.scim.create({
          createScimGroupMappingRequest: { scimGroupId: NOBODY, workspaceId: ids.workspace, role: 'member' },
        }),
      ),
  ],
  ['scim.read', () => missing(sdk.scim.read({ id: NOBODY }))],
  ['scim.update', () => missing(sdk.scim.update({ id: NOBODY, updateScimGroupMappingRequest: { role: 'admin' } }))],
  ['scim.delete', () => missing(sdk.scim.delete({ id: NOBODY, keepMembers: 'false' }))],
  [
    'scim.createSyncJob',
    async () => {
      ids.job = (await sdk.scim.createSyncJob()).result.data.id;
    },
  ],
  ['scim.getSyncJob', async () => assert.equal((await sdk.scim.getSyncJob({ id: ids.job })).data.id, ids.job)],
  ['credits.getCredits', async () => assert.equal(typeof (await sdk.credits.getCredits()).data.totalUsage, 'number')],
  ['analytics.getUserActivity', async () => assert.deepEqual((await sdk.analytics.getUserActivity()).data, [])],
  [
    'analytics.getAnalyticsMeta',
    async () => assert.ok((await sdk.analytics.getAnalyticsMeta()).data.metrics.length > 0),
  ],
  [
    'analytics.queryAnalytics',
    async () => assert.ok((await sdk.analytics.queryAnalytics({ requestBody: { metrics: ['request_count'] } })).data),
  ],
  [
    'apiKeys.delete',
    async () => {
      await sdk.apiKeys.delete({ hash: ids.hash });
      await missing(sdk.apiKeys.get({ hash: ids.hash }));
    },
  ],
  [
    'workspaces.bulkRemoveMembers',
    () => sdk.workspaces.bulkRemoveMembers({ id: 'ops', bulkRemoveWorkspaceMembersRequest: { userIds: [ids.user] } }),
  ],
  [
    'workspaces.delete',
    async () => {
      await sdk.workspaces.delete({ id: 'ops' });
      await missing(sdk.workspaces.get({ id: 'ops' }));
    },
  ],
];

test('the table has every method of these areas', () => {
  const methods = AREAS.flatMap((area) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(sdk[area]))
      .filter((name) => name !== 'constructor' && typeof (sdk[area] as unknown as Json)[name] === 'function')
      .map((name) => `${area}.${name}`),
  );
  assert.deepEqual(ROWS.map(([name]) => name).toSorted(), methods.toSorted());
});

for (const [name, run] of ROWS) test(`${name} does what the public client expects`, async () => void (await run()));

test('changes of the client are in the audit log', async () => {
  const { body } = await control.call('GET', '/audit?limit=100');
  const actions = new Set(body.data.map(({ action }: Json) => action.split('.')[0]));
  for (const resource of ['workspace', 'key', 'byok_key', 'guardrail', 'auth_code'])
    assert.ok(actions.has(resource), [...actions].join());
});
