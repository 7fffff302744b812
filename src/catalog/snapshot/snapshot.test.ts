import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Compile } from 'typebox/compile';
import { loadConfig } from '../../base/config.ts';
import { KINDS, providersFrom } from '../../providers/index.ts';
import { FactsFileSchema, pricingFrom } from '../facts.ts';
import { buildCatalog } from '../index.ts';
import { costsNothing } from '../pricing.ts';
import { SHIPPED_FACTS } from './index.ts';
import file from './models.json' with { type: 'json' };

const { models } = SHIPPED_FACTS;

test('the shipped facts match their schema, every row and offer with source and date', () => {
  assert.deepEqual([...Compile(FactsFileSchema).Errors(file)].slice(0, 5), []);
  for (const { id, source, date, offers } of models) {
    for (const [what, dated] of [[source, date], ...offers.map((offer) => [offer.source, offer.date])] as const) {
      assert.ok(what.trim().length > 10, id);
      assert.ok(dated <= SHIPPED_FACTS.date, id);
      assert.ok(!Number.isNaN(Date.parse(dated)), id);
    }
  }
});

test('there are at least 60 models of at least 10 authors, and most of them have a known price somewhere', () => {
  assert.ok(models.length >= 60);
  assert.ok(new Set(models.map(({ id }) => id.split('/')[0])).size >= 10);
  assert.ok(models.filter(({ offers }) => offers.some(({ pricing }) => pricing !== null)).length > models.length * 0.9);
});

test('every image provider kind, except those with custom deployment names, has an image model', () => {
  const drawing = new Set(
    models
      .filter((row) => row.output_modalities?.includes('image'))
      .flatMap(({ offers }) => offers.map(({ provider }) => provider)),
  );
  const kinds = KINDS.filter((kind) => kind.image !== undefined && kind.baseUrl !== undefined).map(({ id }) => id);
  const elsewhere = ['azure', 'vertex', 'openrouter'];
  assert.deepEqual(kinds.filter((id) => !drawing.has(id)).toSorted(), elsewhere.toSorted());
});

test('speech, transcription and video are available with a key of OpenAI alone, at prices that a limit can bound', () => {
  for (const [output, slugs] of [
    ['speech', ['gpt-4o-mini-tts', 'tts-1', 'tts-1-hd']],
    ['transcription', ['gpt-transcribe', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe', 'whisper-1']],
    ['video', ['sora-2']],
  ] as const) {
    for (const slug of slugs) {
      const row = models.find(({ id }) => id === `openai/${slug}`);
      assert.deepEqual(row?.output_modalities, [output]);
      assert.ok(row.offers.some(({ provider, pricing }) => provider === 'openai' && pricing !== null));
    }
  }
});

test('no name refers to two models', () => {
  const owners = new Map<string, string>();
  for (const { id, canonical_slug, aliases, dated, offers } of models) {
    const bare = id.slice(id.indexOf('/') + 1);
    const author = id.slice(0, id.indexOf('/'));
    const own = offers.filter(({ provider }) => KINDS.some((kind) => kind.id === provider && kind.author === author));
    const names = [id, bare, canonical_slug, ...aliases, ...dated, ...own.map(({ upstream_id }) => upstream_id)];
    for (const name of new Set(names)) {
      assert.equal(owners.get(name) ?? id, id, name);
      owners.set(name, id);
    }
  }
});

test('no provider offers a model twice, and every price and limit is plausible', () => {
  for (const { id, offers, context_length, max_completion_tokens } of models) {
    assert.equal(new Set(offers.map(({ provider }) => provider)).size, offers.length, id);
    if (context_length !== null) assert.ok((max_completion_tokens ?? 0) <= context_length, id);
    for (const { pricing } of offers) {
      if (pricing === null) continue;
      const read = pricingFrom(pricing);
      const { prompt, completion, inputCacheRead = 0n } = read;
      assert.ok(prompt < 10n ** 15n && completion < 10n ** 15n, `${id}: past 1000 USD a million tokens`);
      assert.ok(inputCacheRead <= prompt, id);
      assert.equal(id.endsWith(':free'), costsNothing(read), id);
      for (const { price } of read.outputImages ?? []) assert.ok(price > 0n && price < 10n ** 18n, id);
    }
  }
});

test('rows of a family are newest first, so that its latest is the newest', () => {
  const newest = new Map<string, number>();
  for (const { id, family, created } of models) {
    if (family === null || created === null) continue;
    const key = `${id.split('/')[0]}/${family}`;
    assert.ok(created <= (newest.get(key) ?? created), id);
    newest.set(key, created);
  }
});

test('every provider kind in an offer exists, and every model is reached by all its names', () => {
  const kinds = new Map(KINDS.map((kind) => [kind.id, kind]));
  for (const { offers } of models) for (const { provider } of offers) assert.ok(kinds.has(provider), provider);
  const names = [
    'OPENAI',
    'GEMINI',
    'MISTRAL',
    'COHERE',
    'VOYAGE',
    'OPENROUTER',
    'PERPLEXITY',
    'XAI',
    'BFL',
    'STABILITY',
  ];
  const env = {
    ...Object.fromEntries(names.map((name) => [`${name}_API_KEY`, 'k'])),
    ...{ FAL_KEY: 'k', RECRAFT_API_TOKEN: 'k', AWS_BEARER_TOKEN_BEDROCK: 'k', AWS_REGION: 'us-east-1' },
  };
  const config = loadConfig({
    env,
    cwd: '/',
    kinds: KINDS,
    readFile() {
      throw Object.assign(new Error('none'), { code: 'ENOENT' });
    },
  });
  const catalog = buildCatalog(config.providers, providersFrom(config), KINDS);
  assert.equal(catalog.models.length, models.length);
  for (const { id, canonical_slug, aliases, dated, offers } of models) {
    const slug = id.slice(id.indexOf('/') + 1);
    for (const name of [id, slug, canonical_slug, ...aliases, ...dated, ...offers.map((offer) => offer.upstream_id)]) {
      assert.equal(catalog.find(name)?.id, id, name);
    }
  }
});
