/** BYOK credentials of clouds reach their own project, region and resource, and only that cloud. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byokTarget, KINDS, type Provider, providersFrom } from '../providers/index.ts';
import { serviceAccount } from '../testing/upstream/service-account.ts';
import { readCredential } from './credential.ts';

type Json = Record<string, unknown>;

const AWS = { accessKeyId: 'AKIAEXAMPLE12345', secretAccessKey: 'secret' };

function configured(kind: string, options: Record<string, string>, baseUrl?: string): Provider {
  const timeouts = { connect: 1, firstByte: 1, idle: 1, stall: 1, total: 1 };
  const settings = { id: kind, name: kind, kind, options, credentials: [], timeouts, maxConcurrency: 1 };
  return providersFrom({ providers: [{ ...settings, ...(baseUrl && { baseUrl }) }] } as never)[0]!;
}

/** URL and headers of a call with the credential. */
function reached(provider: Provider, text: string, model = 'gemini-2.5-flash') {
  const { value } = readCredential(KINDS.find(({ id }) => id === provider.kind.id)!, text);
  const target = byokTarget(provider, value);
  const format = provider.kind.id === 'vertex' ? ('gemini' as const) : ('chat' as const);
  const delivery = { ...target, format, model, stream: false, path: '/chat/completions', body: '' };
  return {
    url: target.provider.baseUrl + (target.provider.kind.path?.(delivery) ?? delivery.path),
    credential: target.credential,
  };
}

test('project and location of a key file override the configuration, which supplies absent ones', () => {
  const vertex = configured('vertex', { project: 'gateway', location: 'europe-west1' });
  const { url } = reached(vertex, serviceAccount({ project_id: 'own-project', region: 'us-central1' }));
  assert.match(
    url,
    /^https:\/\/us-central1-aiplatform\.googleapis\.com\/v1\/projects\/own-project\/locations\/us-central1\//,
  );
  assert.match(
    reached(vertex, serviceAccount()).url,
    /^https:\/\/europe-west1-aip.*\/projects\/gateway\/locations\/europe-west1\//,
  );
  const elsewhere = configured('vertex', { project: 'gateway', location: 'global' }, 'https://proxy.example/v1');
  assert.match(
    reached(elsewhere, serviceAccount({ project_id: 'own-project' })).url,
    /^https:\/\/proxy\.example\/v1\/projects\/own-/,
  );
});

test('AWS keys sign for the region that they name, and are sent there', async () => {
  const bedrock = configured('bedrock', { region: 'eu-west-1' });
  assert.match(reached(bedrock, JSON.stringify(AWS)).url, /bedrock-runtime\.eu-west-1\./);
  const own = JSON.stringify({ ...AWS, region: 'us-west-2' });
  assert.match(reached(bedrock, own).url, /^https:\/\/bedrock-runtime\.us-west-2\.amazonaws\.com/);
  const { value } = readCredential(bedrock.kind, own);
  const { provider, credential } = byokTarget(bedrock, value);
  const request = { url: `${provider.baseUrl}/model/m/converse`, headers: {}, body: '{}', timeouts: provider.timeouts };
  const clock = { now: () => Date.UTC(2026, 0, 1) } as never;
  const signature = await provider.signer!.sign({ request, credential, clock });
  assert.match(signature['authorization']!, /\/us-west-2\/bedrock\/aws4_request/);
  const bearer = reached(bedrock, JSON.stringify({ apiKey: 'bedrock-api-key', region: 'us-west-2' }));
  assert.match(bearer.url, /us-west-2/);
  assert.equal(bearer.credential, 'bedrock-api-key');
  assert.equal(reached(bedrock, 'bedrock-api-key').credential, 'bedrock-api-key');
});

test('a key of an Azure resource is sent to that resource', () => {
  const azure = configured('azure', { endpoint: 'https://gateway.openai.azure.com' });
  const own = { endpoint: 'https://own.openai.azure.com/', api_key: 'azure-key-1234567890' };
  assert.deepEqual(reached(azure, JSON.stringify(own)), {
    url: 'https://own.openai.azure.com/openai/v1/chat/completions',
    credential: own.api_key,
  });
  const dated = reached(azure, JSON.stringify({ ...own, api_version: '2024-10-21' }), 'gpt');
  assert.equal(
    dated.url,
    'https://own.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21',
  );
  assert.equal(reached(azure, 'plain-key').url, 'https://gateway.openai.azure.com/openai/v1/chat/completions');
});

test('an invalid project, region or endpoint is refused by name, and never used', () => {
  const wrong: [string, string | Json, RegExp][] = [
    ['vertex', serviceAccount({ project_id: '../x' }), /^key has an invalid project: /],
    ['vertex', serviceAccount({ region: 'evil.example/' }), /^key has an invalid location: /],
    ['bedrock', { ...AWS, region: 'evil.example#' }, /^key has an invalid region: /],
    ['bedrock', { apiKey: 'x', region: 'eu' }, /^key has an invalid region: /],
    ['azure', { api_key: 'x' }, /^key .* endpoint/],
    ...[
      'http://own.openai.azure.com',
      'https://own.openai.azure.com.evil.example',
      'https://evil.example/.openai.azure.com',
      'https://own.openai.azure.com:8443',
      'https://user@own.openai.azure.com',
      'https://own.openai.azure.com/?x=1',
      'https://own.openai.azure.com/other/path',
      'https://169.254.169.254',
      'no address',
    ].map((endpoint): [string, Json, RegExp] => ['azure', { api_key: 'x', endpoint }, /^key has an invalid endpoint/]),
    [
      'azure',
      { api_key: 'x', endpoint: 'https://a.openai.azure.com', api_version: '&x=1' },
      /^key has an invalid api_version: /,
    ],
  ];
  for (const [id, document, message] of wrong) {
    const kind = KINDS.find((each) => each.id === id)!;
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    assert.throws(() => readCredential(kind, text), { message }, text.slice(0, 80));
  }
  // As an earlier version could have stored it, before this check.
  const vertex = configured('vertex', { project: 'gateway', location: 'global' });
  const { provider } = byokTarget(vertex, serviceAccount({ region: 'evil.example/', project_id: 'own-project' }));
  assert.equal(provider.baseUrl, 'https://aiplatform.googleapis.com/v1');
  assert.equal(provider.options['project'], 'own-project');
});
