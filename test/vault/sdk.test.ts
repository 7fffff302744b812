/** `@openrouter/sdk`, unmodified: the vaults of a workspace and of an intern. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { thrownBy } from '../../src/testing/gateway/sdk.ts';
import { internsOf } from '../interns/interns.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { env: { GATEHOUSE_NAMESPACE: 'openrouter' } },
);
const { vault } = new OpenRouter({
  apiKey: INFERENCE_KEY,
  serverURL: gateway.api,
  retryConfig: { strategy: 'none' },
});
const write = { value: 'ghp_0123456789', hosts: ['API.GitHub.com.', 'github.com', 'api.github.com'] };

test('a secret is stored, listed and deleted, and errors arrive as errors of the client', async () => {
  const { data } = await vault.storeVaultSecret({ name: 'github_token', vaultSecretWriteRequest: write });
  assert.deepEqual([data.name, data.hosts], ['github_token', ['api.github.com', 'github.com']]);
  assert.match(data.fingerprint ?? '', /^sha256:[0-9a-f]{64}$/);
  assert.ok(data.createdAt instanceof Date);
  assert.deepEqual(await vault.listVaultSecrets(), { data: [data], hasMore: false });
  assert.deepEqual(await vault.listVaultSecrets({ limit: 1, offset: 1 }), { data: [], hasMore: false });

  const wrong = { ...write, hosts: ['https://github.com'] };
  const bad = await thrownBy(() => vault.storeVaultSecret({ name: 'other', vaultSecretWriteRequest: wrong }));
  assert.deepEqual([bad.statusCode, bad.error.code], [400, 400]);
  assert.match(bad.error.message, /^hosts\[0\] /);

  assert.equal(await vault.deleteVaultSecret({ name: 'github_token' }), undefined);
  const gone = await thrownBy(() => vault.deleteVaultSecret({ name: 'github_token' }));
  assert.deepEqual([gone.statusCode, gone.error.code], [404, 404]);
  assert.deepEqual((await vault.listVaultSecrets()).data, []);
});

test('secrets of an intern are stored, copied, listed and deleted', async () => {
  const { id: internId } = await internsOf(gateway).made({ name: 'helper' });
  await vault.storeVaultSecret({ name: 'github_token', vaultSecretWriteRequest: write });
  const { data } = await vault.copyVaultSecretsToIntern({
    internId,
    vaultSecretCopyRequest: { names: ['github_token'] },
  });
  assert.deepEqual(
    data.map(({ name, hosts }) => [name, hosts]),
    [['github_token', ['api.github.com', 'github.com']]],
  );
  const own = await vault.storeInternVaultSecret({ internId, name: 'own', vaultSecretWriteRequest: write });
  assert.deepEqual(await vault.listInternVaultSecrets({ internId }), { data: [...data, own.data], hasMore: false });
  assert.equal(await vault.deleteInternVaultSecret({ internId, name: 'own' }), undefined);
  const missing = await thrownBy(() => vault.listInternVaultSecrets({ internId: 'intern' }));
  assert.deepEqual([missing.statusCode, missing.error.code], [404, 404]);
});
