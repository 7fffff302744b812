import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { systemClock } from '../../src/base/clock.ts';
import { loadConfig } from '../../src/base/config.ts';
import { createLog, silentLog } from '../../src/base/log.ts';
import { parsePrice } from '../../src/base/money.ts';
import { ModelFactsSchema } from '../../src/catalog/facts.ts';
import { buildCatalog } from '../../src/catalog/index.ts';
import { loadFacts, runCatalogCommand } from '../../src/catalog/refresh/index.ts';
import { priceText } from '../../src/catalog/refresh/millions.ts';
import { listedNames } from '../../src/catalog/refresh/refresh.ts';
import { mergeRegistry } from '../../src/catalog/refresh/registry.ts';
import { SHIPPED_FACTS } from '../../src/catalog/snapshot/index.ts';
import { createTransport, KINDS, providersFrom } from '../../src/providers/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Json = any;

/** The shipped offers as a registry states them, with every price changed. */
function registry(): Record<string, { models: Record<string, Json> }> {
  const ids: Record<string, string> = {
    openai: 'openai',
    anthropic: 'anthropic',
    openrouter: 'openrouter',
    google: 'google',
  };
  const answer: Record<string, { models: Record<string, Json> }> = {};
  for (const [id, kind] of Object.entries(ids)) {
    const models: Record<string, Json> = {};
    for (const row of SHIPPED_FACTS.models) {
      const offer = row.offers.find(({ provider }) => provider === kind);
      if (offer)
        models[offer.upstream_id] = { id: offer.upstream_id, name: row.name, limit: { context: 1000, output: 100 } };
    }
    answer[id] = { models };
  }
  return answer;
}

interface Served {
  url: string;
  /** By path; a function writes its own response. */
  answers: Record<string, Json | ((response: http.ServerResponse) => void)>;
  asked: { path: string; headers: http.IncomingHttpHeaders; method: string }[];
}

async function serve(t: TestContext, answers: Served['answers']): Promise<Served> {
  const asked: Served['asked'] = [];
  const served: Served = { url: '', answers, asked };
  const server = http.createServer((request, response) => {
    asked.push({ path: request.url!, headers: request.headers, method: request.method! });
    const answer = served.answers[request.url!];
    if (typeof answer === 'function') return answer(response);
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(answer === undefined ? '{}' : JSON.stringify(answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  served.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return served;
}

async function installation(t: TestContext, served: Served, providers: Json[] = []) {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'gatehouse-catalog-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const transport = createTransport({ clock: systemClock, log: silentLog });
  t.after(() => transport.close());
  const config = loadConfig({
    env: { GATEHOUSE_DATA_DIR: dataDir, GATEHOUSE_CATALOG_URL: `${served.url}/api.json`, OPENAI_API_KEY: 'sk-canary' },
    cwd: '/',
    kinds: KINDS,
    readFile: () =>
      JSON.stringify({ providers: [{ id: 'openai', kind: 'openai', models: [{ id: 'openai/x' }] }, ...providers] }),
  });
  const lines: string[] = [];
  const run = (...args: string[]) =>
    runCatalogCommand(args, {
      config,
      transport,
      clock: systemClock,
      log: silentLog,
      print: (line) => lines.push(line),
    });
  return { dataDir, config, run, lines, file: path.join(dataDir, 'catalog.json') };
}

test('a refresh applies models, limits and prices of the registry and keeps values that it omits', async (t) => {
  const answer = registry();
  answer['openai']!.models['gpt-4o'] = {
    name: 'GPT-4o',
    release_date: '2024-05-13',
    modalities: { input: ['text', 'pdf'], output: ['text'] },
    limit: { context: 128_000, output: 16_000 },
    cost: { input: 2.6, output: 10, cache_read: 1.3, context_over_200k: { input: 5.2, output: 20 } },
  };
  answer['anthropic']!.models['claude-opus-9'] = {
    name: 'Claude Opus 9',
    family: 'claude-opus',
    release_date: '2027-01-02',
    reasoning: true,
    tool_call: true,
    modalities: { input: ['text'], output: ['text'] },
    limit: { context: 5, output: 4 },
    cost: { input: 1e-7, output: 0.1 },
  };
  answer['groq'] = {
    models: { 'llama-3.3-70b-versatile': { name: 'L', cost: { input: 0.5, output: 0.75 } }, 'made-up': { name: 'M' } },
  };
  const served = await serve(t, { '/api.json': answer });
  const { dataDir, run, lines, config } = await installation(t, served);
  assert.equal(await run('refresh'), 0);
  assert.ok(
    lines.some((line) => line === 'new: anthropic/claude-opus-9'),
    lines.join('\n'),
  );
  assert.ok(lines.some((line) => /openai\/gpt-4o at openai: 0.0000025 -> 0.0000026/.test(line)));
  assert.deepEqual(
    served.asked.map(({ method }) => method),
    ['GET'],
  );
  const facts = loadFacts(dataDir, silentLog);
  const gpt = facts.models.find(({ id }) => id === 'openai/gpt-4o')!;
  const before = SHIPPED_FACTS.models.find(({ id }) => id === 'openai/gpt-4o')!;
  assert.equal(gpt.created, before.created);
  assert.equal(gpt.family, before.family);
  assert.deepEqual(gpt.dated, before.dated);
  assert.equal(gpt.max_completion_tokens, 16_000);
  assert.deepEqual(gpt.input_modalities, ['text', 'file']);
  const offer = gpt.offers.find(({ provider }) => provider === 'openai')!;
  assert.deepEqual(offer.pricing, {
    prompt: '0.0000026',
    completion: '0.00001',
    input_cache_read: '0.0000013',
    overrides: [{ min_prompt_tokens: 200_000, prompt: '0.0000052', completion: '0.00002' }],
  });
  assert.match(offer.source, /^registry 127\.0\.0\.1/);
  // This registry states no price for it.
  const haiku = facts.models.find(({ id }) => id === 'anthropic/claude-haiku-4.5')!;
  const shipped = SHIPPED_FACTS.models.find(({ id }) => id === 'anthropic/claude-haiku-4.5')!;
  assert.deepEqual(haiku.offers[0]!.pricing, shipped.offers[0]!.pricing);
  assert.ok(!facts.models.some(({ id }) => id.includes('made-up')));
  const llama = facts.models.find(({ id }) => id === 'meta-llama/llama-3.3-70b-instruct')!;
  assert.equal(llama.offers.find(({ provider }) => provider === 'groq')!.pricing!.prompt, '0.0000005');
  const both = loadConfig({ env: { ANTHROPIC_API_KEY: 'k' }, cwd: '/', kinds: KINDS, readFile: () => '{}' });
  const catalog = buildCatalog(both.providers, providersFrom(both), KINDS, facts);
  assert.equal(catalog.find('~anthropic/claude-opus-latest')!.id, 'anthropic/claude-opus-9');
  assert.equal(catalog.find('claude-opus-9')!.endpoints[0]!.pricing!.prompt, parsePrice('0.0000000000001'));
  assert.equal(config.catalogUrl, `${served.url}/api.json`);
});

type Answer = (response: http.ServerResponse) => void;

const broken: Answer = (response) => {
  response.writeHead(200, { 'content-length': '1000' });
  response.write('{"openai":');
  setImmediate(() => response.destroy());
};
const html: Answer = (response) => response.end('<html>');
const noText: Answer = (response) => response.end(Buffer.from([0x22, 0xff, 0x22]));
const failing: Answer = (response) => response.writeHead(500).end('{}');
const leading: Answer = (response) => response.writeHead(302, { location: 'http://elsewhere.example/' }).end();

const WRONG: [string, Json][] = [
  ['nothing', {}],
  ['a list', []],
  ['a provider without models', { openai: {} }],
  ['only part of the known models', { openai: { models: { 'gpt-4o': { name: 'x' } } } }],
  [
    'entries that are not models',
    Object.fromEntries(
      Object.entries(registry()).map(([id, { models }]) => [
        id,
        { models: Object.fromEntries(Object.keys(models).map((name) => [name, 7])) },
      ]),
    ),
  ],
  ['something that is not JSON', html],
  ['bytes that are not UTF-8', noText],
  ['an error', failing],
  ['a redirect', leading],
  ['a truncated response', broken],
];

for (const [what, answer] of WRONG) {
  test(`a registry that answers with ${what} changes nothing and is reported`, async (t) => {
    const served = await serve(t, { '/api.json': registry() });
    const { run, lines, file, dataDir } = await installation(t, served);
    assert.equal(await run('refresh'), 0);
    const good = readFileSync(file, 'utf8');
    served.answers = { '/api.json': answer };
    assert.equal(await run('refresh'), 1);
    assert.match(lines.at(-1)!, /^The catalog is unchanged: ./);
    assert.equal(readFileSync(file, 'utf8'), good);
    assert.deepEqual(readdirSync(dataDir), ['catalog.json']);
  });
}

test('an unreachable registry and an unwritable folder change nothing and are reported', async (t) => {
  const served = await serve(t, { '/api.json': registry() });
  const { run, lines, file, dataDir } = await installation(t, served);
  served.answers = { '/api.json': (response: http.ServerResponse) => response.destroy() };
  assert.equal(await run('refresh'), 1);
  assert.match(lines.at(-1)!, /^The catalog is unchanged: the registry http\S+ could not be reached: the \w/);
  served.answers = { '/api.json': registry() };
  rmSync(dataDir, { recursive: true });
  writeFileSync(dataDir, 'a file where the folder was');
  assert.equal(await run('refresh'), 1);
  assert.match(lines.at(-1)!, /^The catalog is unchanged: E(NOTDIR|EXIST)/);
  assert.equal(existsSync(file), false);
});

test('provider model lists are stored, make models reachable, and survive a failed fetch', async (t) => {
  const served = await serve(t, {
    '/api.json': registry(),
    '/v1/models': {
      data: [
        { id: 'gpt-4o' },
        { id: 'gpt-4o-2024-08-06' },
        { id: 'brand-new' },
        { id: '~a/b-latest' },
        { id: 'not a name' },
        {},
        null,
      ],
    },
  });
  const { run, lines, dataDir, config } = await installation(t, served, [
    { id: 'mirror', kind: 'openai', base_url: `${served.url}/v1`, api_key: 'sk-canary-mirror' },
  ]);
  assert.equal(await run('refresh'), 0);
  assert.ok(lines.includes('mirror lists 4 models'), lines.join('\n'));
  assert.equal(
    served.asked.find(({ path: asked }) => asked === '/v1/models')!.headers['authorization'],
    'Bearer sk-canary-mirror',
  );
  const catalogNow = () => buildCatalog(config.providers, providersFrom(config), KINDS, loadFacts(dataDir, silentLog));
  const found = catalogNow().find('openai/brand-new')!;
  assert.equal(found.endpoints[0]!.upstreamId, 'brand-new');
  assert.equal(found.endpoints[0]!.pricing, null);
  const ids = catalogNow().models.map(({ id }) => id);
  assert.ok(ids.includes('openai/brand-new') && ids.includes('openai/gpt-4o'));
  assert.ok(!ids.includes('openai/gpt-4o-2024-08-06') && !ids.includes('~a/b-latest'));
  delete served.answers['/v1/models'];
  assert.equal(await run('refresh'), 0);
  assert.ok(lines.includes('mirror has no list: it answered with status 404'), lines.join('\n'));
  assert.ok(catalogNow().models.some(({ id }) => id === 'openai/brand-new'));
  assert.ok(!lines.join('\n').includes('canary'));
});

test('a broken, foreign or outdated file in the data folder is reported and not used', async (t) => {
  const served = await serve(t, { '/api.json': registry() });
  const { dataDir, file, run, lines } = await installation(t, served);
  assert.equal(loadFacts(dataDir, silentLog), SHIPPED_FACTS);
  const told: string[] = [];
  const log = createLog({ stream: { write: (line) => told.push(line) } });
  const row = SHIPPED_FACTS.models[0]!;
  const wrong = [
    '{"version":1',
    '[]',
    JSON.stringify({ version: 2, date: '2099-01-01', source: 'x', models: [] }),
    JSON.stringify({
      version: 1,
      date: '2099-01-01',
      source: 'x',
      models: [{ ...row, offers: [{ ...row.offers[0], pricing: { prompt: '-1', completion: '1' } }] }],
    }),
  ];
  for (const text of wrong) {
    writeFileSync(file, text);
    assert.equal(loadFacts(dataDir, log), SHIPPED_FACTS);
    assert.ok(told.pop()!.includes('catalog.json'));
  }
  writeFileSync(
    file,
    JSON.stringify({ version: 1, date: '2001-01-01', source: 'x', models: [], listed: { a: ['b'] } }),
  );
  assert.equal(loadFacts(dataDir, log).models, SHIPPED_FACTS.models);
  assert.deepEqual(loadFacts(dataDir, log).listed, { a: ['b'] });
  assert.equal(await run('show'), 0);
  assert.match(lines.join('\n'), new RegExp(`^${SHIPPED_FACTS.models.length} models, as of ${SHIPPED_FACTS.date}`));
  if (process.getuid?.() !== 0) {
    chmodSync(file, 0);
    assert.equal(loadFacts(dataDir, log), SHIPPED_FACTS);
  }
});

test('wrong arguments are refused', async (t) => {
  const { run } = await installation(t, await serve(t, {}));
  for (const args of [[], ['fetch'], ['refresh', 'now']]) {
    assert.equal(await run(...args), 2);
  }
});

test('lists of every shape are read, and anything else is refused', () => {
  assert.deepEqual(listedNames({ data: [{ id: 'a' }, { id: 'a' }, { id: 'b/c' }] }), ['a', 'b/c']);
  assert.deepEqual(listedNames([{ id: 'a' }]), ['a']);
  assert.deepEqual(listedNames({ models: [{ name: 'models/gemini-x' }] }), ['models/gemini-x']);
  for (const wrong of [null, 7, {}, { data: {} }, 'x']) assert.throws(() => listedNames(wrong));
});

const COSTS: [string, Json, Json][] = [
  [
    'flat prices',
    { input: 1, output: 2, reasoning: 3, input_audio: 4 },
    { prompt: '0.000001', completion: '0.000002', internal_reasoning: '0.000003', audio: '0.000004' },
  ],
  [
    'tiers by the prompt',
    { input: 1, output: 2, tiers: [{ tier: { type: 'context', size: 7 }, input: 2, output: 3 }] },
    {
      prompt: '0.000001',
      completion: '0.000002',
      overrides: [{ min_prompt_tokens: 7, prompt: '0.000002', completion: '0.000003' }],
    },
  ],
  [
    'tiers of another kind',
    { input: 1, output: 2, tiers: [{ tier: { type: 'hour', size: 7 }, input: 2, output: 3 }] },
    null,
  ],
  ['an unknown structured price', { input: 1, output: 2, peak: { input: 3 } }, null],
  ['only one price', { input: 1 }, null],
  ['a price above the plausible maximum', { input: 1, output: 1e6 }, null],
  ['prices of zero, which may mean a subscription', { input: 0, output: 0 }, null],
  ['no object', 'free', null],
];

for (const [what, cost, expected] of COSTS) {
  test(`a new model with ${what} has exactly the price that is understood, or none`, () => {
    const { models } = mergeRegistry({
      known: [],
      registry: { openai: { models: { new: { name: 'New', cost } } } },
      kinds: KINDS,
      source: 'a test',
      date: '2026-11-28',
      isValid: Compile(ModelFactsSchema).Check.bind(Compile(ModelFactsSchema)),
    });
    assert.deepEqual(
      models.map(({ id, offers }) => [id, offers[0]!.pricing]),
      [['openai/new', expected]],
    );
  });
}

test('thinking, embeddings and retired models of a registry are understood', () => {
  const { models, added } = mergeRegistry({
    known: [],
    registry: {
      openai: {
        models: {
          thinks: { name: 'T', reasoning: true, reasoning_options: [{ type: 'effort', values: ['none', 'low'] }] },
          always: { name: 'A', reasoning: true, reasoning_options: [{ type: 'effort', values: ['high'] }] },
          'text-embedding-9': {
            name: 'E',
            limit: { context: 10, output: 3072 },
            modalities: { input: ['text'], output: ['text'] },
          },
          gone: { name: 'G', status: 'deprecated' },
        },
      },
    },
    kinds: KINDS,
    source: 'a test',
    date: '2026-11-28',
    isValid: () => true,
  });
  assert.deepEqual(added, ['openai/thinks', 'openai/always', 'openai/text-embedding-9']);
  const [thinks, always, vectors] = models;
  assert.deepEqual(thinks!.reasoning, { mandatory: false, supported_efforts: ['none', 'low'] });
  assert.deepEqual(always!.reasoning, { mandatory: true, supported_efforts: ['high'] });
  assert.deepEqual([vectors!.output_modalities, vectors!.max_completion_tokens], [['embeddings'], null]);
});

test('prices per million tokens convert exactly to prices per token', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 ** 9 }), (millionths) => {
      assert.equal(parsePrice(priceText(millionths / 1e6)!), BigInt(millionths) * 10n ** 6n);
    }),
  );
  for (const wrong of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1001, '1', null, {}, 1e-13]) {
    assert.equal(priceText(wrong), undefined);
  }
});
