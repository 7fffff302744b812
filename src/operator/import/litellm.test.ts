import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parse, stringify } from 'yaml';
import { loadConfig } from '../../base/config.ts';
import { buildCatalog, type Catalog, SHIPPED_FACTS } from '../../catalog/index.ts';
import { KINDS, providersFrom } from '../../providers/index.ts';
import { samples } from '../../testing/laws/samples.ts';
import { fromLitellm, ImportError, type Imported } from './litellm.ts';
import { SERVICES } from './service-kinds.ts';

function of(config: unknown): Imported {
  return fromLitellm(stringify(config), SHIPPED_FACTS);
}

/** The catalog of the written file, with a value for every variable in it. */
function catalogOf({ yaml }: Imported): Catalog {
  const names = [...yaml.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name!);
  const value = (name: string) =>
    /BASE|URL/.test(name) ? 'https://example.com' : /REGION/.test(name) ? 'eu-central-1' : 'value';
  const config = loadConfig({
    kinds: KINDS,
    env: {
      GATEHOUSE_CONFIG: 'a.yaml',
      ...Object.fromEntries([...names, 'MISSING'].map((name) => [name, value(name)])),
      ...keysFor(yaml),
    },
    cwd: '/',
    cores: 1,
    readFile: () => yaml,
  });
  return buildCatalog(config.providers, providersFrom(config), KINDS);
}

/** What the gateway reads by itself for providers without a key in the file. */
function keysFor(yaml: string): Record<string, string> {
  const kinds = ((parse(yaml).providers ?? []) as { kind: string }[]).map(({ kind }) => kind);
  const used = KINDS.filter(({ id, environment }) => kinds.includes(id) && environment !== undefined);
  return Object.fromEntries(used.map(({ environment }) => [environment!, 'k']));
}

const name = fc.oneof(
  fc.constantFrom(
    'gpt-4o',
    'openai/gpt-4o',
    'claude-haiku-4-5',
    'my model',
    'ä/ö',
    'a//b',
    '*',
    'x/*',
    'gpt-*',
    ' ',
    `$${'{X}'}`,
    'a:free',
  ),
  fc.string({ minLength: 1, maxLength: 20 }),
);
const upstream = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(...Object.keys(SERVICES), 'unknown', 'replicate'),
      fc.constantFrom('large', '', '*', 'claude-sonnet-4-5', 'us.amazon.nova-pro-v1:0', 'a/b/c'),
    )
    .map(([service, model]) => `${service}/${model}`),
  fc.constantFrom(
    'gpt-4o',
    'claude-haiku-4-5',
    'unheard-of',
    'os.environ/MODEL',
    'bedrock/converse/eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
  ),
);
const entry = fc.record(
  {
    model_name: name,
    litellm_params: fc.record(
      {
        model: upstream,
        api_base: fc.constantFrom(
          ...[
            'https://example.com/v1',
            'os.environ/BASE',
            'https://my.openai.azure.com/',
            'example.com',
            'file:///etc',
          ],
        ),
        extra_headers: fc.record(
          {
            'X-Team': fc.constantFrom('plain', 'a\nb', '', 5, null),
            'X-Session': fc.constant('literal-secret'),
            'X-Api-Key': fc.constant('literal-secret'),
            'a name': fc.constant('plain'),
          },
          { requiredKeys: [] },
        ),
        api_key: fc.constantFrom('os.environ/KEY', 'literal-secret', '', null),
        timeout: fc.constantFrom(5, 'soon'),
        input_cost_per_token: fc.constantFrom(3e-7, 'free', -1),
        rpm: fc.constant(3),
      },
      { requiredKeys: ['model'] },
    ),
  },
  { requiredKeys: ['model_name', 'litellm_params'] },
);

test('every entry of a model list is served under its name, or listed with its path', () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
      const result = of({ model_list: entries });
      const catalog = catalogOf(result);
      entries.forEach(({ model_name: asked, litellm_params: { model } }, index) => {
        const listed = [...result.missing, ...result.different].some(
          ({ path }) =>
            path.startsWith(`model_list[${index}].model_name`) ||
            path === `model_list[${index}]` ||
            path.startsWith(`model_list[${index}].litellm_params.model`) ||
            path === `model_list[${index}].litellm_params.api_base`,
        );
        if (listed) return;
        const wildcard = asked.includes('*') || model.includes('*');
        const found = catalog.find(wildcard ? asked.replace('*', 'any-model') : asked);
        assert.ok(found, `${asked} of ${model}`);
        if (wildcard) return;
        const wanted = model.slice(model.lastIndexOf('/') + 1);
        assert.ok(
          found.endpoints.some(({ upstreamId }) => upstreamId.endsWith(wanted)),
          `${asked}: ${model}`,
        );
      });
    }),
    { numRuns: samples(150) },
  );
});

test('no literal secret is in the written file or in a finding, and each has a variable', () => {
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 5 }), (entries) => {
      const { yaml, missing, different, secrets, variables } = of({ model_list: entries });
      assert.ok(![yaml, JSON.stringify([missing, different, secrets])].some((text) => text.includes('literal-secret')));
      assert.equal(secrets.length > 0, variables.size > 0);
    }),
    { numRuns: samples(50) },
  );
});

test('deployments of one name are endpoints of one model, and those of one account are one provider', () => {
  const result = of({
    model_list: [
      { model_name: 'gpt-4o', litellm_params: { model: 'openai/gpt-4o', api_key: 'os.environ/A' } },
      {
        model_name: 'gpt-4o',
        litellm_params: {
          model: 'azure/my-4o',
          api_base: 'https://r.openai.azure.com',
          api_key: 'os.environ/B',
          api_version: '2024-10-21',
        },
      },
      { model_name: 'gpt-4o-mini', litellm_params: { model: 'openai/gpt-4o-mini', api_key: 'os.environ/A' } },
    ],
  });
  const { endpoints, id, facts } = catalogOf(result).find('gpt-4o')!;
  assert.equal(id, 'openai/gpt-4o');
  assert.equal(facts?.id, id);
  assert.deepEqual(
    endpoints.map(({ provider, upstreamId }) => [provider.kind.id, upstreamId]),
    [
      ['openai', 'gpt-4o'],
      ['azure', 'my-4o'],
    ],
  );
  assert.equal(result.providers, 2);
});

test('prices, windows, timeouts and fallbacks are taken over', () => {
  const { yaml } = of({
    model_list: [
      {
        model_name: 'ours',
        litellm_params: {
          model: 'hosted_vllm/m',
          api_base: 'http://10.0.0.1/v1',
          input_cost_per_token: 3e-7,
          output_cost_per_token: '0.0000012',
          timeout: 30,
        },
        model_info: { max_input_tokens: 8000, cache_read_input_token_cost: 1e-8 },
      },
      { model_name: 'other/spare', litellm_params: { model: 'groq/m' } },
    ],
    router_settings: { fallbacks: [{ ours: ['other/spare', 'nowhere'] }], model_group_alias: { nick: 'ours' } },
    litellm_settings: { request_timeout: 600, max_budget: 100 },
  });
  const { providers, routing, account } = parse(yaml);
  assert.deepEqual(routing, { fallbacks: { 'vllm/ours': ['other/spare'] } });
  assert.deepEqual(account, { balance_usd: 100 });
  assert.deepEqual(providers[0].models[0], {
    id: 'vllm/ours',
    upstream_id: 'm',
    aliases: ['ours', 'nick'],
    pricing: { prompt: '0.0000003', completion: '0.0000012', input_cache_read: '0.00000001' },
    context_length: 8000,
  });
  assert.deepEqual(
    providers.map(({ timeouts }: { timeouts: unknown }) => timeouts),
    [{ total: '30s' }, { total: '600s' }],
  );
});

test('what the gateway lacks is listed with the line and path of each', () => {
  const text =
    'model_list: []\nguardrails:\n  - guardrail_name: a\n  - guardrail_name: b\nlitellm_settings:\n  success_callback: [langfuse]\nnew_section: 1\n';
  const { missing } = fromLitellm(text, SHIPPED_FACTS);
  assert.deepEqual(
    missing.map(({ line, path }) => `${line} ${path}`),
    ['3 guardrails[0]', '4 guardrails[1]', '6 litellm_settings.success_callback', '7 new_section'],
  );
});

test('a user, a password and a query of an address are listed and not written', () => {
  const { yaml, missing } = of({
    model_list: ['openai/m', 'anthropic/m', 'azure/m'].map((model) => ({
      model_name: model,
      litellm_params: {
        model,
        api_key: 'k',
        api_base: 'https://zoe:pass-word@host.test/v1?key=q-secret',
        api_version: '1',
      },
    })),
  });
  assert.doesNotMatch(yaml, /zoe|pass-word|q-secret/);
  assert.equal(missing.filter(({ path }) => path.endsWith('.api_base')).length, 6);
  assert.ok(missing.every(({ message }) => !/zoe|pass-word|q-secret/.test(message)));
  assert.match(yaml, /base_url: "https:\/\/host\.test\/v1"/);
});

test('what is no configuration is refused without quoting it', () => {
  for (const text of ['- a', 'model_list: 3', 'a: [sk-secret', '"sk-secret', `${'['.repeat(20_000)}`]) {
    assert.throws(
      () => fromLitellm(text, SHIPPED_FACTS),
      (error: Error) => error instanceof ImportError && !error.message.includes('sk-secret'),
    );
  }
});
