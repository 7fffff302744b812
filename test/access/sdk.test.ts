/** `@openrouter/sdk`, unmodified, through keys, sign-in, members and credits; it checks each answer by its schemas. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf } from '../workspaces/control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    yaml: { account: { balance_usd: 10 }, providers: [{ id: 'simulated', kind: 'simulated' }] },
  },
);
const clientOf = (apiKey: string) =>
  new OpenRouter({ apiKey, serverURL: gateway.api, retryConfig: { strategy: 'none' } });
const manager = clientOf(MANAGEMENT_KEY);

const statusIs = (statusCode: number) => (error: unknown) =>
  (error as { statusCode?: number }).statusCode === statusCode;

test('keys: create, list, read, change, use, delete', async () => {
  const { id: workspaceId } = await controlOf(gateway).made({ name: 'Team', slug: 'team' });
  const expiresAt = new Date('2099-01-31T12:00:00Z');
  const { key, data: made } = await manager.apiKeys.create({
    requestBody: {
      name: 'sdk',
      limit: 3,
      limitReset: 'monthly',
      includeByokInLimit: true,
      expiresAt,
      workspaceId,
      external: { user: 'end-user', apiKey: 'partner-key-of-more-than-32-characters' },
    },
  });
  assert.deepEqual(
    [made.name, made.limit, made.limitReset, made.externalUser, made.workspaceId, made.expiresAt],
    ['sdk', 3, 'monthly', 'end-user', workspaceId, expiresAt],
  );
  const listed = await manager.apiKeys.list({ workspaceId });
  assert.deepEqual(
    listed.data.map(({ hash }) => hash),
    [made.hash],
  );
  assert.equal((await manager.apiKeys.get({ hash: made.hash })).data.label, made.label);
  for (const secret of [key, 'partner-key-of-more-than-32-characters']) {
    const { data: current } = await clientOf(secret).apiKeys.getCurrentKeyMetadata();
    assert.deepEqual([current.label, current.limit, current.isManagementKey], [made.label, 3, false]);
  }
  const { data: changed } = await manager.apiKeys.update({
    hash: made.hash,
    requestBody: { disabled: true, limit: null, limitReset: null, name: 'renamed' },
  });
  assert.deepEqual([changed.disabled, changed.limit, changed.limitReset, changed.name], [true, null, null, 'renamed']);
  assert.equal((await manager.apiKeys.list({ workspaceId })).data.length, 0);
  assert.equal((await manager.apiKeys.list({ workspaceId, includeDisabled: true })).data.length, 1);
  await assert.rejects(clientOf(key).apiKeys.getCurrentKeyMetadata(), statusIs(401));
  assert.equal((await manager.apiKeys.delete({ hash: made.hash })).deleted, true);
  await assert.rejects(manager.apiKeys.get({ hash: made.hash }), statusIs(404));
  await assert.rejects(clientOf(INFERENCE_KEY).apiKeys.list(), statusIs(403));
});

test('sign-in: the page, a code with a challenge, and its exchange', async () => {
  const { oAuth } = manager;
  const { codeChallenge, codeVerifier } = await oAuth.createSHA256CodeChallenge();
  const callbackUrl = 'https://app.example.test/back';
  const address = await oAuth.createAuthorizationUrl({
    callbackUrl,
    codeChallenge,
    codeChallengeMethod: 'S256',
    limit: 2,
  });
  const page = await fetch(address);
  assert.equal(page.status, 200, address);
  assert.match(await page.text(), /app\.example\.test/);
  const { data } = await oAuth.createAuthCode({
    requestBody: {
      callbackUrl,
      codeChallenge,
      codeChallengeMethod: 'S256',
      keyLabel: 'From the SDK',
      limit: 2,
      usageLimitType: 'daily',
    },
  });
  assert.ok(Number.isSafeInteger(data.appId));
  const wrong = { code: data.id, codeVerifier: 'x'.repeat(43), codeChallengeMethod: 'S256' as const };
  await assert.rejects(oAuth.exchangeAuthCodeForAPIKey({ requestBody: wrong }), statusIs(403));
  const right = { ...wrong, codeVerifier };
  const { key, userId } = await oAuth.exchangeAuthCodeForAPIKey({ requestBody: right });
  assert.match(userId ?? '', /^user_/);
  const { data: current } = await clientOf(key).apiKeys.getCurrentKeyMetadata();
  assert.deepEqual([current.limit, current.limitReset, current.creatorUserId], [2, 'daily', userId]);
  await assert.rejects(oAuth.exchangeAuthCodeForAPIKey({ requestBody: right }), statusIs(403));
});

test('members of the organization and credits of the account', async () => {
  const roles: string[] = [];
  for await (const { result } of await manager.organization.listMembers({ limit: 1 })) {
    assert.equal(result.totalCount, 1);
    roles.push(...result.data.map(({ role }) => role));
  }
  assert.deepEqual(roles, ['org:admin']);
  const { data } = await manager.credits.getCredits();
  assert.deepEqual([data.totalCredits, data.totalUsage], [10, 0]);
});

test('past a rate limit the SDK throws what it throws for 429', async () => {
  const { body } = await controlOf(gateway).call('POST', '/keys', {
    name: 'slow',
    rate_limits: { requests_per_day: 1 },
  });
  const { chat } = clientOf(body.key);
  const request = {
    model: 'simulated/echo',
    messages: [{ role: 'user' as const, content: 'hi' }],
    stream: false as const,
  };
  assert.ok(await chat.send({ chatRequest: request }));
  await assert.rejects(chat.send({ chatRequest: request }), (error: Error & { statusCode?: number }) => {
    assert.equal(error.statusCode, 429);
    assert.equal(error.name, 'TooManyRequestsResponseError');
    return true;
  });
});
