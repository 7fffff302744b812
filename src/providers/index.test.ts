import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { loadConfig } from '../base/config.ts';
import { formatsFor, KINDS, type ProviderKind, providersFrom } from './index.ts';

function providersOf(providers: unknown, env: Record<string, string> = {}) {
  const config = loadConfig({ env, cwd: '/', kinds: KINDS, readFile: () => JSON.stringify({ providers }) });
  return providersFrom(config);
}

test('kinds have distinct ids and variables', () => {
  const ids = KINDS.map(({ id }) => id);
  const variables = KINDS.flatMap(({ environment, alsoEnvironment = [] }) =>
    [environment ?? [], alsoEnvironment].flat(),
  );
  const authors = KINDS.flatMap(({ author, bareModels }) => (bareModels && author) ?? []);
  for (const list of [ids, variables, authors]) assert.equal(new Set(list).size, list.length);
});

test('every file of kinds/ is in the list', async () => {
  const folder = new URL('./kinds/', import.meta.url);
  const files = readdirSync(folder).filter((file) => !/^index\.ts$|\.test\.ts$/.test(file));
  assert.equal(files.length, KINDS.length);
  for (const file of files) {
    const exported: unknown[] = Object.values(await import(new URL(file, folder).href));
    assert.ok(
      exported.some((value) => KINDS.includes(value as ProviderKind)),
      `kinds/index.ts lacks ${file}`,
    );
  }
});

test('every kind states the facts that the catalog, BYOK and the reference need', () => {
  const guides = new Set<unknown>();
  for (const { id, guide, service, transport, baseUrl, environment, alsoEnvironment, ...kind } of KINDS) {
    const takesCredential = environment ?? alsoEnvironment ?? (kind.credentialDocument || undefined);
    const isService = takesCredential !== undefined && baseUrl !== undefined && transport === undefined;
    assert.equal(service !== undefined, isService, `${id}: service`);
    assert.equal(guide !== undefined, transport === undefined, `${id}: guide`);
    if (guide !== undefined) assert.ok(!guides.has(guide), `${id} has the guide of the kind that it extends`);
    guides.add(guide);
    assert.equal(kind.byokDocument !== undefined, kind.splitByok !== undefined, `${id}: byokDocument`);
    if (service !== undefined) assert.ok(kind.author, `${id}: author`);
    if (service?.role === 'vendor') assert.ok(service.registryId === null || kind.bareModels, `${id}: bareModels`);
  }
});

test('no two services share a slug or a row of the registry', () => {
  const services = KINDS.flatMap(({ id, service }) => (service ? [{ id, ...service }] : []));
  const slugs = [...KINDS.map(({ id }) => id), ...services.flatMap(({ aliases = [] }) => aliases)];
  const rows = services.flatMap(({ registryId }) => registryId ?? []);
  for (const list of [slugs, rows]) assert.equal(new Set(list).size, list.length);
});

/** Kinds for any service of a format. */
const BARE = new Set(['chat', 'converse', 'gemini', 'messages', 'responses']);

test('every kind has a base URL, runs in the process, or is a bare format', () => {
  for (const { id, speaks, baseUrl, transport } of KINDS) {
    if (BARE.has(id)) assert.deepEqual([speaks, baseUrl], [id, undefined]);
    else if (transport === undefined) {
      const address = typeof baseUrl === 'function' ? baseUrl({}) : baseUrl;
      assert.ok(address !== undefined && !address.endsWith('/'), id);
    }
  }
});

test('no two vendors claim the same bare model name', () => {
  const names = [
    'gpt-4o',
    'o3',
    'claude-opus-5',
    'deepseek-chat',
    'grok-4',
    'sonar-pro',
    'kimi-k2',
    'glm-5',
    'qwen3-max',
  ];
  for (const name of names) assert.equal(KINDS.filter(({ bareModels }) => bareModels?.test(name)).length, 1, name);
});

test('each format sends its credential in its own header and nothing else', () => {
  const [openai, anthropic] = ['openai', 'anthropic'].map((id) => KINDS.find((kind) => kind.id === id)!);
  assert.deepEqual(openai!.headers('sk-1'), { authorization: 'Bearer sk-1' });
  assert.deepEqual(openai!.headers(null), {});
  assert.deepEqual(anthropic!.headers('sk-2'), { 'x-api-key': 'sk-2', 'anthropic-version': '2023-06-01' });
  assert.deepEqual(anthropic!.headers(null), { 'anthropic-version': '2023-06-01' });
});

test("no provider sees the client's credentials", () => {
  for (const { id, forwards } of KINDS) {
    for (const name of forwards ?? []) assert.doesNotMatch(name, /auth|key|cookie|token/, id);
  }
});

test('a configured provider combines its kind with the configuration', () => {
  const models = [{ id: 'a/b' }];
  const [first, second] = providersOf([
    {
      id: 'acme',
      name: 'Acme',
      kind: 'messages',
      base_url: 'http://acme.example/v1/',
      api_key: ['a', 'b'],
      max_concurrency: 3,
      models,
    },
    { id: 'groq', kind: 'groq', api_key: 'g' },
  ]);
  assert.equal(first!.kind.speaks, 'messages');
  assert.equal(first!.baseUrl, 'http://acme.example/v1');
  assert.deepEqual(first!.credentials, ['a', 'b']);
  assert.equal(first!.maxConcurrency, 3);
  assert.equal(second!.baseUrl, 'https://api.groq.com/openai/v1');
  assert.equal(second!.name, 'Groq');
});

test('the format of the client comes first if supported, else the usual one', () => {
  const chat = KINDS.find(({ id }) => id === 'chat')!;
  const both: ProviderKind = { ...chat, alsoSpeaks: ['responses'] };
  assert.deepEqual(formatsFor(chat, 'm', 'responses'), ['chat']);
  assert.deepEqual(formatsFor(both, 'm', 'responses'), ['responses', 'chat']);
  assert.deepEqual(formatsFor(both, 'm', 'messages'), ['chat', 'responses']);
  const byModel: ProviderKind = { ...both, speaksFor: (model) => (model === 'claude' ? ['messages'] : ['gemini']) };
  assert.deepEqual(formatsFor(byModel, 'claude', 'chat'), ['messages']);
  assert.deepEqual(formatsFor(byModel, 'claude', 'chat', ['responses', 'chat']), ['chat', 'responses']);
});

test('the configuration overrides the formats of a server', () => {
  const base = { kind: 'vllm', base_url: 'http://gpu.example/v1' };
  const [several, plain] = providersOf([
    { ...base, id: 'a', speaks: ['messages', 'chat'] },
    { ...base, id: 'b' },
  ]);
  assert.deepEqual(formatsFor(several!.kind, 'm', 'responses'), ['messages', 'chat']);
  assert.deepEqual(formatsFor(plain!.kind, 'm', 'messages'), ['chat']);
  assert.throws(() => providersOf([{ ...base, id: 'a', speaks: [] }]), /speaks must name at least one format/);
  assert.throws(() => providersOf([{ ...base, id: 'a', speaks: ['chatt'] }]), /did you mean chat/);
});

test('a strict template is a property of one server, not of its kind', () => {
  const base = { kind: 'vllm', base_url: 'http://gpu.example/v1' };
  const [strict, plain] = providersOf([
    { ...base, id: 'a', strict_template: true },
    { ...base, id: 'b' },
  ]);
  assert.equal(strict!.kind.dialect.chat?.strictTemplate, true);
  assert.equal(plain!.kind.dialect.chat?.strictTemplate, undefined);
});
