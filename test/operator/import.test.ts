/** `gatehouse import litellm`: the written file starts a gateway that serves the same names, at the same upstreams. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { parse, stringify } from 'yaml';
import { hashToken } from '../../src/access/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { type Config, loadConfig } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { migrations } from '../../src/migrations.ts';
import type { CommandParts } from '../../src/operator/command.ts';
import { SERVICES } from '../../src/operator/import/service-kinds.ts';
import { importCommand } from '../../src/operator/import.ts';
import { KINDS } from '../../src/providers/index.ts';
import { sealedRows } from '../../src/sealed-rows.ts';
import { databaseUrl } from '../../src/testing/database/database.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Json } from '../../src/testing/gateway/sdk.ts';
import { chatReply, messagesReply } from '../../src/testing/upstream/answers.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { type RecordedRequest, startRecordingServer } from '../../src/testing/upstream/recording-server.ts';
import { serviceAccount } from '../../src/testing/upstream/service-account.ts';
import { controlOf } from '../workspaces/control.ts';

const SAID = { text: 'imported' };

/** What a service answers, by the path of the request. */
function answer({ path: whole, method }: RecordedRequest): unknown {
  const [asked] = whole.split('?') as [string];
  if (method === 'GET') return 404;
  if (asked.includes('/token')) return { access_token: 'ya29.test', expires_in: 3600, token_type: 'Bearer' };
  if (asked.includes(':generateContent')) {
    const parts = [{ text: SAID.text }];
    return {
      candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    };
  }
  if (asked.endsWith('/converse')) {
    return {
      output: { message: { role: 'assistant', content: [{ text: SAID.text }] } },
      stopReason: 'end_turn',
      usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
    };
  }
  if (asked.endsWith('/messages')) return messagesReply(SAID);
  if (asked.endsWith('/v2/chat')) {
    const message = { role: 'assistant', content: [{ type: 'text', text: SAID.text }] };
    const tokens = { input_tokens: 3, output_tokens: 2 };
    return { id: 'c', finish_reason: 'COMPLETE', message, usage: { billed_units: tokens, tokens } };
  }
  if (asked.endsWith('/embeddings')) {
    return {
      data: [{ index: 0, embedding: [0.5, 0.25], object: 'embedding' }],
      usage: { prompt_tokens: 2, total_tokens: 2 },
    };
  }
  if (asked.endsWith('/chat/completions')) return chatReply(SAID);
  return 404;
}

/** Services that only make images or audio. */
const MEDIA = new Set(['deepgram', 'elevenlabs', 'recraft', 'stability', 'fal_ai', 'black_forest_labs']);
const EMBEDDINGS = new Set(['voyage', 'jina_ai']);

test('an imported file serves every service of LiteLLM that has a kind of provider here', async (t) => {
  const stand = await startRecordingServer(answer);
  t.after(stand.close);
  const services = Object.keys(SERVICES).filter((name) => !MEDIA.has(name));
  const config = {
    model_list: services.map((name) => ({
      model_name: `my ${name}`,
      litellm_params: paramsOf(name, `${stand.url}/${name}`),
    })),
  };
  const { yaml, out, folder } = await imported(t, stringify(config));
  assert.doesNotMatch(out, /not imported/);
  const content = parse(yaml) as { providers: Record<string, unknown>[] };
  for (const provider of content.providers) {
    // Google's own address is the only one that its library signs in at.
    if (provider['kind'] === 'vertex') provider['sign_in_url'] = stand.url;
  }
  const env = { STAND_IN_KEY: 'k-of-the-stand-in', KEY_FILE: path.join(folder, 'key.json') };
  writeFileSync(env.KEY_FILE, serviceAccount());
  const gateway = await startGateway(t, { yaml: content, env });
  await Promise.all(
    services.map(async (name) => {
      const isEmbedding = EMBEDDINGS.has(name);
      const response = isEmbedding
        ? await gateway.post('/embeddings', { model: `my ${name}`, input: 'hello' })
        : await gateway.post('/chat/completions', {
            model: `my ${name}`,
            messages: [{ role: 'user', content: 'hello' }],
          });
      const text = await response.text();
      assert.equal(response.status, 200, `${name}: ${text}`);
      if (!isEmbedding) assert.ok(text.includes(SAID.text), `${name}: ${text}`);
    }),
  );
  const asked = new Set(stand.asked.map(({ path: each }) => each.split('/')[1]));
  assert.deepEqual(
    services.filter((name) => !asked.has(name)),
    [],
  );
});

function paramsOf(name: string, base: string): Record<string, unknown> {
  const model = `${name}/${EMBEDDINGS.has(name) ? 'embed-1' : 'large-1'}`;
  if (name.startsWith('bedrock')) {
    return {
      model,
      aws_region_name: 'eu-central-1',
      aws_bedrock_runtime_endpoint: base,
      api_key: 'os.environ/STAND_IN_KEY',
    };
  }
  if (name.startsWith('vertex_ai')) {
    return { model, vertex_project: 'my-project', api_base: base, vertex_credentials: 'os.environ/KEY_FILE' };
  }
  const address = name === 'azure' ? { api_base: base, api_version: '2024-10-21' } : { api_base: base };
  return { model, ...address, api_key: 'os.environ/STAND_IN_KEY' };
}

const SECRET = 'sk-literal-0123456789';

test('literal secrets are refused without a file for them, and neither printed nor written to the yaml', async (t) => {
  const config = stringify({
    model_list: [{ model_name: 'gpt-4o', litellm_params: { model: 'openai/gpt-4o', api_key: SECRET } }],
    general_settings: { master_key: SECRET },
  });
  await assert.rejects(imported(t, config, []), (error: Error) => {
    assert.match(error.message, /line 5: model_list\[0\]\.litellm_params\.api_key/);
    return !error.message.includes(SECRET);
  });
  const { yaml, out, secrets, folder } = await imported(t, config);
  assert.ok(!yaml.includes(SECRET) && !out.includes(SECRET));
  assert.equal(secrets, `LITELLM_OPENAI_API_KEY=${SECRET}\n`);
  assert.equal(statSync(path.join(folder, 'secrets.env')).mode & 0o777, 0o600);
  assert.match(out, /line 7: general_settings\.master_key/);
});

test('an existing file is not overwritten without --force, and nothing is written then', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-import-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'config.yaml');
  const output = path.join(folder, 'gatehouse.yaml');
  writeFileSync(file, 'model_list: []');
  writeFileSync(output, 'mine');
  const run = (...more: string[]) => importCommand(['litellm', file, '--output', output, ...more], partsWith([]));
  await assert.rejects(run(), /--force/);
  assert.equal(readFileSync(output, 'utf8'), 'mine');
  await assert.rejects(run('--force', '--secrets', output), /two files/);
  assert.equal(readFileSync(output, 'utf8'), 'mine');
  assert.equal(await run('--force'), 0);
  assert.notEqual(readFileSync(output, 'utf8'), 'mine');
});

/** @param config default: reads no settings */
function partsWith(printed: string[], config?: Config): CommandParts {
  const out = { isTTY: false, print: (line: string) => void printed.push(line) };
  return { clock: systemClock, log: silentLog, migrations, sealedRows, version: '0', out, config: config! };
}

const TOKENS = ['sk-team-0123456789abcdef', 'sk-alone-0123456789abcdef', 'sk-gone-0123456789abcdef'];
const KEYS = `{
  "keys": [
    {
      "token": "${hashToken(TOKENS[0]!)}",
      "key_name": "sk-...cdef", "key_alias": "team key", "team_id": "7f3c2a10-aaaa", "user_id": "ada",
      "models": ["gpt-4o"], "max_budget": 10.0, "spend": 2.5, "budget_duration": null,
      "rpm_limit": 60, "tpm_limit": null, "expires": "2099-01-01T00:00:00", "blocked": null,
      "max_parallel_requests": 3,
      "metadata": {"a": "b"}, "permissions": {}, "aliases": {}
    },
    {
      "token": "${hashToken(TOKENS[1]!)}",
      "key_name": "sk-...cdef", "models": [], "max_budget": 5, "spend": 4, "budget_duration": "30d"
    },
    { "token": "${hashToken(TOKENS[2]!)}", "models": [], "expires": "2020-01-01 00:00:00" },
    "0123"
  ],
  "total_count": 4
}`;
const TEAMS = JSON.stringify([
  {
    ...{ team_id: '7f3c2a10-aaaa', team_alias: 'Search Team', max_budget: 100, budget_duration: '7d', tpm_limit: 1000 },
    ...{ models: ['gpt-4o', 'spare'], members_with_roles: [{ user_id: 'ada', role: 'admin' }] },
  },
]);

test('keys and teams are imported: clients keep their keys, with budgets, limits, models and expiry', async (t) => {
  const models = [
    { model_name: 'gpt-4o', litellm_params: { model: 'openai/gpt-4o', api_key: 'os.environ/KEY' } },
    { model_name: 'spare', litellm_params: { model: 'openai/gpt-4o-mini', api_key: 'os.environ/KEY' } },
    { model_name: 'third', litellm_params: { model: 'openai/gpt-4.1', api_key: 'os.environ/KEY' } },
  ];
  const { yaml, folder } = await imported(t, stringify({ model_list: models }));
  const file = (name: string, text: string) => {
    const made = path.join(folder, name);
    writeFileSync(made, text);
    return made;
  };
  const gateway = await startGateway(t, { yaml: parse(yaml), env: { KEY: 'k' } });
  const printed: string[] = [];
  const env = { DATABASE_URL: databaseUrl(gateway.target), GATEHOUSE_DATA_DIR: folder };
  const config = loadConfig({ kinds: KINDS, env, cwd: '/', cores: 1, readFile: () => '' });
  const files = [file('keys.json', KEYS), file('teams.json', TEAMS)];
  const args = ['litellm-keys', ...files, '--config', path.join(folder, 'config.yaml')];
  assert.equal(await importCommand(args, partsWith(printed, config)), 0);
  const out = printed.join('\n');
  assert.match(out, /imported: 2 keys, 1 workspace\n/);
  const lines = [...out.matchAll(/line (\d+): (keys\[\d\][.\w]*)/g)].map(([, line, at]) => `${line} ${at}`);
  assert.deepEqual(lines, [
    '13 keys[1].budget_duration',
    '8 keys[0].max_parallel_requests',
    '9 keys[0].metadata',
    '15 keys[2].expires',
    '16 keys[3]',
  ]);
  const asked = async (token: string, route: string, body?: object) => {
    const response = await fetch(gateway.api + route, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Json };
  };
  const [team, alone] = await Promise.all(
    TOKENS.slice(0, 2).map(async (token) => (await asked(token, '/key')).body.data),
  );
  assert.deepEqual([team.limit, team.limit_reset, team.rate_limits], [7.5, null, { requests_per_minute: 60 }]);
  assert.equal(team.expires_at, '2099-01-01T00:00:00.000Z');
  assert.deepEqual([alone.limit, alone.limit_reset, alone.rate_limits], [5, 'monthly', null]);
  assert.equal((await asked(TOKENS[2]!, '/key')).status, 401);
  const chat = { messages: [{ role: 'user', content: 'hi' }] };
  for (const [token, model, allowed] of [
    [TOKENS[0]!, 'gpt-4o', true],
    [TOKENS[0]!, 'spare', false],
    [TOKENS[1]!, 'third', true],
  ] as const) {
    const { status } = await asked(token, '/messages/count_tokens', { ...chat, model, max_tokens: 5 });
    assert.equal(status === 200, allowed, `${model}: ${status}`);
  }
  const workspace = (await asked(MANAGEMENT_KEY, '/workspaces/search-team-7f3c2a10')).body.data;
  assert.deepEqual([workspace.name, workspace.rate_limits], ['Search Team', { tokens_per_minute: 1000 }]);
  const budget = await asked(MANAGEMENT_KEY, '/workspaces/search-team-7f3c2a10/budgets/weekly');
  assert.equal(budget.body.data.limit_usd, 100);
  assert.equal(await importCommand(args, partsWith(printed, config)), 0);
  assert.match(printed.join('\n'), /imported: 0 keys, 0 workspaces\nhere already and unchanged: 2 keys/);
});

const GUARDRAILS = stringify({
  guardrails: [
    {
      guardrail_name: 'for all',
      litellm_params: {
        ...{ guardrail: 'presidio', mode: 'pre_call', default_on: true, presidio_filter_scope: 'input' },
        pii_entities_config: { EMAIL_ADDRESS: 'BLOCK', URL: 'MASK' },
      },
    },
    {
      guardrail_name: 'for all, too',
      litellm_params: {
        ...{ guardrail: 'litellm_content_filter', mode: 'pre_call', default_on: true },
        blocked_words: [{ keyword: 'Falcon', action: 'BLOCK' }],
      },
    },
    {
      guardrail_name: 'by choice',
      litellm_params: {
        ...{ guardrail: 'litellm_content_filter', mode: ['pre_call', 'post_call'] },
        patterns: [
          { pattern_type: 'regex', pattern: 'acme-\\d+', name: 'acme', action: 'MASK' },
          { pattern_type: 'regex', pattern: '(?=x)y', action: 'BLOCK' },
        ],
      },
    },
    { guardrail_name: 'elsewhere', litellm_params: { guardrail: 'lakera_v2', mode: 'pre_call', default_on: true } },
  ],
});

test('guardrails are imported: those that are on by default for every workspace, from the next request on', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-import-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'config.yaml');
  writeFileSync(file, GUARDRAILS);
  const gateway = await startGateway(t, { providers: { one: {} } });
  const { call } = controlOf(gateway);
  const made = await call('POST', '/workspaces', { name: 'Second', slug: 'second' });
  const chat = async (content: string) => {
    const body = { model: 'test/one', messages: [{ role: 'user', content }] };
    const response = await gateway.post('/chat/completions', body);
    return { status: response.status, text: await response.text() };
  };
  gateway.upstream.script('one', chatWhole('hi'));
  assert.equal((await chat('the falcon, a@example.com')).status, 200);

  const printed: string[] = [];
  const env = { DATABASE_URL: databaseUrl(gateway.target), GATEHOUSE_DATA_DIR: folder };
  const config = loadConfig({ kinds: KINDS, env, cwd: '/', cores: 1, readFile: () => '' });
  const run = () => importCommand(['litellm-guardrails', file], partsWith(printed, config));
  assert.equal(await run(), 0);
  const out = printed.join('\n');
  assert.match(
    out,
    /imported: 1 guardrail, and filters of 2 default guardrails\nnot protected: workspaces that are created /,
  );
  const [, missing] = out.split('not imported:\n') as [string, string];
  assert.deepEqual(
    [...missing.matchAll(/guardrails\[(\d)\]\S*\.([\w[\]]+) /g)].map(([, index, member]) => `${index} ${member}`),
    ['0 URL', '2 patterns[0]', '2 patterns[1]', '2 patterns[1]', '3 guardrail'],
  );
  for (const text of ['the falcon', 'write to a@example.com']) assert.equal((await chat(text)).status, 403, text);
  assert.equal((await chat('harmless')).status, 200);

  const workspaces = [undefined, made.body.data.id as string];
  const [general, second] = await Promise.all(
    workspaces.map(async (id) => (await call('GET', `/guardrails${id ? `?workspace_id=${id}` : ''}`)).body.data),
  );
  assert.deepEqual(second.length, 1);
  assert.deepEqual(second[0].content_filter_builtins, general[0].content_filter_builtins);
  const choice = general.find(({ name }: { name: string }) => name === 'by choice');
  assert.deepEqual(choice.content_filters, [
    { pattern: '(?i)acme-\\d+', action: 'redact', label: '[ACME_REDACTED]', apply_to: ['request'] },
  ]);
  assert.equal(await run(), 0);
  assert.match(
    printed.join('\n'),
    /imported: 0 guardrails, and filters of 0 default guardrails\nnot protected: .*\nhere already and unchanged: 1 g/,
  );
  const later = (await call('POST', '/workspaces', { name: 'Later', slug: 'later' })).body.data.id as string;
  const filtersOf = async () =>
    (await call('GET', `/guardrails?workspace_id=${later}`)).body.data[0]?.content_filter_builtins ?? null;
  assert.equal(await filtersOf(), null);
  assert.equal(await run(), 0);
  assert.match(printed.join('\n'), /filters of 1 default guardrail\n/);
  assert.deepEqual(await filtersOf(), general[0].content_filter_builtins);
});

/** Runs the command in a folder of its own. @param more arguments; default a file for secrets */
async function imported(t: { after(work: () => void): void }, config: string, more?: readonly string[]) {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-import-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const at = (name: string) => path.join(folder, name);
  writeFileSync(at('config.yaml'), config);
  const printed: string[] = [];
  const args = [
    'litellm',
    at('config.yaml'),
    '--output',
    at('gatehouse.yaml'),
    ...(more ?? ['--secrets', at('secrets.env')]),
  ];
  await importCommand(args, partsWith(printed));
  const read = (name: string) => readFileSync(at(name), 'utf8');
  const secrets = (() => {
    try {
      return read('secrets.env');
    } catch {
      return '';
    }
  })();
  return { folder, yaml: read('gatehouse.yaml'), out: printed.join('\n'), secrets };
}
