import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../../base/config.ts';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import { KINDS, providersFrom } from '../index.ts';

function azureOf(members: object | null, env: Record<string, string> = {}) {
  const providers = members === null ? undefined : [{ id: 'azure', kind: 'azure', ...members }];
  const config = loadConfig({ env, cwd: '/', kinds: KINDS, readFile: () => JSON.stringify({ providers }) });
  return providersFrom(config).find(({ id }) => id === 'azure')!;
}

function urlOf(provider: ReturnType<typeof azureOf>, format: FormatId = 'chat', path = '/chat/completions') {
  const delivery = { provider, credential: 'k', format, model: 'my gpt/4', stream: false, path, body: '' };
  return provider.baseUrl + provider.kind.path!(delivery);
}

const RESOURCE = 'https://res.openai.azure.com';

test('a resource is called at its v1 API, or with a dated version at its deployments', () => {
  const at = (base_url: string, api_version?: string) =>
    urlOf(azureOf({ base_url, api_key: 'k', ...(api_version && { api_version }) }));
  assert.equal(at(RESOURCE), `${RESOURCE}/openai/v1/chat/completions`);
  assert.equal(at(`${RESOURCE}/`, 'preview'), `${RESOURCE}/openai/v1/chat/completions?api-version=preview`);
  assert.equal(at(`${RESOURCE}/openai/v1`), `${RESOURCE}/openai/v1/chat/completions`);
  const deployment = `${RESOURCE}/openai/deployments/my%20gpt%2F4/chat/completions?api-version=2024-10-21`;
  assert.equal(at(RESOURCE, '2024-10-21'), deployment);
  assert.equal(at(`${RESOURCE}/openai`, '2024-10-21'), deployment);
  const named = `${RESOURCE}/openai/deployments/mine`;
  assert.equal(at(named), `${named}/chat/completions?api-version=2024-10-21`);
  assert.equal(at(named, '2025-01-01-preview'), `${named}/chat/completions?api-version=2025-01-01-preview`);
  const foundry = 'https://res.services.ai.azure.com/models';
  assert.equal(at(foundry), `${foundry}/chat/completions?api-version=2024-05-01-preview`);
});

test('the responses format names its model in the body', () => {
  const provider = azureOf({ base_url: RESOURCE, api_key: 'k', api_version: '2025-03-01-preview' });
  assert.equal(
    urlOf(provider, 'responses', '/responses'),
    `${RESOURCE}/openai/responses?api-version=2025-03-01-preview`,
  );
});

test('a key uses the header of Azure, an Entra ID token is a bearer token', () => {
  const { headers } = azureOf({ base_url: RESOURCE, api_key: 'k' }).kind;
  assert.deepEqual(headers('0123abcd'), { 'api-key': '0123abcd' });
  assert.deepEqual(headers('eyJ0eXAi.eyJhdWQi.sig-_1'), { authorization: 'Bearer eyJ0eXAi.eyJhdWQi.sig-_1' });
  assert.deepEqual(headers(null), {});
});

test('environment variables enable the provider and must name the resource', () => {
  const env = {
    AZURE_OPENAI_API_KEY: 'k',
    AZURE_OPENAI_ENDPOINT: `${RESOURCE}/`,
    AZURE_OPENAI_API_VERSION: '2024-10-21',
  };
  assert.match(urlOf(azureOf(null, env)), /^https:\/\/res\.openai\.azure\.com\/openai\/deployments\//);
  assert.throws(() => azureOf(null, { AZURE_OPENAI_API_KEY: 'k' }), /AZURE_OPENAI_ENDPOINT is not set/);
  assert.throws(() => azureOf({ base_url: RESOURCE, api_key: 'k', api_version: '2024' }), /api_version must be a date/);
});
