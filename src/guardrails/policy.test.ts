/** The laws of the effective policy and of filters, on generated guardrails. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { systemClock } from '../base/clock.ts';
import { readDocument } from '../base/json.ts';
import type { Catalog, Endpoint } from '../catalog/index.ts';
import { chat } from '../formats/index.ts';
import { samples } from '../testing/laws/samples.ts';
import { BUILTINS } from './filters/builtins.ts';
import { Filters, type FiltersOf } from './filters/filters.ts';
import { compileRules, OPEN_POLICY, Policy } from './policy.ts';
import { NO_RULES, type Rules } from './settings.ts';
import { VENDORS } from './vendors.ts';

const MODELS = ['google/a', 'openai/b', 'x-ai/c', 'test/d', 'test/d:free'];
const PROVIDERS = ['one', 'two'];
const REGIONS = ['global', 'europe', 'us'] as const;
/** Knows every model by its id and as `alias-<slug>`. */
const catalog = {
  find: (name: string) => {
    const id = MODELS.find((model) => model === name || `alias-${model.split('/')[1]}` === name);
    return id === undefined ? undefined : { id };
  },
} as unknown as Catalog;

const endpoints: Endpoint[] = MODELS.flatMap((modelId) =>
  PROVIDERS.flatMap((id) =>
    [0, 1, 2, 3].map((bits) => ({
      modelId,
      provider: { id, name: `Provider ${id}` },
      region: null,
      quantization: null,
      pricing: bits === 0 ? null : { prompt: bits === 1 ? 0n : 5n, completion: 0n },
      dataPolicy: {
        zdr: bits !== 2,
        trains: (bits & 1) === 1,
        publishes: (bits & 2) === 2,
        retainsForSafety: bits === 3,
      },
    })),
  ),
) as unknown as Endpoint[];

const flag = fc.constantFrom(null, true, false);
const some = <T>(values: readonly T[]) => fc.option(fc.subarray([...values], { minLength: 1 }), { nil: null });
const names = some([...MODELS, 'alias-a', 'alias-d', 'TEST/D']);
const action = fc.constantFrom('block' as const, 'redact' as const, 'flag' as const);

const rules: fc.Arbitrary<Rules> = fc.record({
  allowedRegions: some(REGIONS),
  allowedModels: names,
  ignoredModels: names,
  allowedProviders: some([...PROVIDERS, 'Provider one']),
  ignoredProviders: some([...PROVIDERS, 'provider two']),
  builtins: fc.option(fc.array(fc.record({ slug: fc.constantFrom('email', 'ssn'), action }), { maxLength: 2 }), {
    nil: null,
  }),
  patterns: fc.option(
    fc.array(fc.record({ pattern: fc.constantFrom('ann', 'x+', '[0-9]{3}'), action, label: fc.constant(null) }), {
      maxLength: 2,
    }),
    { nil: null },
  ),
  freePublication: flag,
  freeTraining: flag,
  paidTraining: flag,
  zdrWritten: fc.constant(null),
  zdr: fc.record({ vendor_a: flag, vendor_b: flag, vendor_c: flag, vendor_d: flag, other: flag }),
  safetyRetention: fc.record({ vendor_c: flag, other: flag }),
});

test('every rule has an effect, except the deprecated one as it was written', async () => {
  const compiled = async (one: Rules) =>
    compileRules([one], await Filters.of([{ guardrailId: 'g', via: 'api-key', rules: one }]));
  const none = await compiled(NO_RULES);
  const generated = fc.sample(rules, { numRuns: 40, seed: 1 });
  for (const name of Object.keys(NO_RULES) as (keyof Rules)[]) {
    const changed = await Promise.all(generated.map((sample) => compiled({ ...NO_RULES, [name]: sample[name] })));
    const hasEffect = changed.some((each) => !isDeepStrictEqual(each, none));
    assert.equal(hasEffect, name !== 'zdrWritten', name);
  }
});

function policyFor(all: readonly Rules[]): Policy {
  return new Policy([], compileRules(all, undefined), []);
}

/** Same check as routing. */
function allows(policy: Policy, endpoint: Endpoint, zdr: boolean): boolean {
  const { dataPolicy, modelId } = endpoint;
  if (!policy.compiled.rules.every((rule) => rule.keeps(endpoint, catalog))) return false;
  if (!zdr && !policy.wantsZdr(modelId)) return true;
  return dataPolicy.zdr && (!dataPolicy.retainsForSafety || policy.allowsSafetyRetention(modelId));
}

function admits(policy: Policy, region: (typeof REGIONS)[number]): boolean {
  try {
    policy.admit(region);
    return true;
  } catch {
    return false;
  }
}

test('a further guardrail never allows an endpoint or a region that was not allowed without it', () => {
  fc.assert(
    fc.property(fc.array(rules, { maxLength: 2 }), rules, fc.boolean(), (before, further, zdr) => {
      const [without, withIt] = [policyFor(before), policyFor([...before, further])];
      for (const endpoint of endpoints) {
        if (allows(withIt, endpoint, zdr)) assert.ok(allows(without, endpoint, zdr));
      }
      for (const region of REGIONS) if (admits(withIt, region)) assert.ok(admits(without, region));
    }),
    { numRuns: samples(300) },
  );
});

test('empty guardrails allow everything, in any number, and their order has no effect', () => {
  for (const policy of [OPEN_POLICY, policyFor([NO_RULES, NO_RULES])]) {
    assert.ok(endpoints.every((endpoint) => allows(policy, endpoint, false)));
    assert.ok(REGIONS.every((region) => admits(policy, region)));
  }
  fc.assert(
    fc.property(rules, rules, (one, two) => {
      for (const endpoint of endpoints) {
        assert.equal(allows(policyFor([one, two]), endpoint, true), allows(policyFor([two, one]), endpoint, true));
      }
    }),
    { numRuns: samples(100) },
  );
});

test('an author without a named vendor belongs to "other"', () => {
  const other = policyFor([{ ...NO_RULES, zdr: { ...NO_RULES.zdr, other: true } }]);
  assert.ok(other.wantsZdr('test/d') && other.wantsZdr('nobody'));
  for (const { authors } of VENDORS) for (const author of authors) assert.ok(!other.wantsZdr(`${author}/x`));
});

const sentence = fc
  .array(fc.constantFrom('ann@example.org ', 'xxx ', '123 ', '078-05-1120 ', 'hi ', 'é '), {
    minLength: 1,
    maxLength: 6,
  })
  .map((words) => words.join(''));

/** The text that is sent; null if it is blocked. */
async function sentBy(guardrails: readonly Rules[], content: string): Promise<string | null> {
  const filters = await Filters.of(
    guardrails.map((each, index): FiltersOf => ({ guardrailId: String(index), via: 'api-key', rules: each })),
  );
  const document = readDocument(Buffer.from(JSON.stringify({ messages: [{ role: 'user', content }] })));
  try {
    const screened = filters === undefined ? document : filters.screen(document, chat.texts, systemClock).document;
    return (screened.value as { messages: { content: string }[] }).messages[0]!.content;
  } catch {
    return null;
  }
}

test('a further guardrail never sends a blocked text, nor a redacted match', async () => {
  await fc.assert(
    fc.asyncProperty(rules, rules, sentence, async (one, two, content) => {
      const [alone, together] = [await sentBy([one], content), await sentBy([one, two], content)];
      if (alone === null) assert.equal(together, null);
      if (alone === null || together === null) return;
      for (const word of content.split(' ')) {
        if (word !== '' && !alone.includes(word)) assert.ok(!together.includes(word), `${word} in ${together}`);
      }
    }),
    { numRuns: samples(200) },
  );
});

test('a text with slow filters, built-in ones too, is refused before all of it was searched', async () => {
  const name = Object.keys(BUILTINS)[0]!;
  const rules: Rules = { ...NO_RULES, builtins: [{ slug: name as never, action: 'flag' }] };
  const filters = await Filters.of([{ guardrailId: '1', via: 'api-key', rules }]);
  // Each call of this clock takes a tenth of a second.
  let looks = 0;
  const slow = { ...systemClock, monotonic: () => 100 * looks++ };
  const screen = (length: number) => {
    looks = 0;
    const content = '4111 '.repeat(length / 5);
    return filters!.screen(
      readDocument(Buffer.from(JSON.stringify({ messages: [{ role: 'user', content }] }))),
      chat.texts,
      slow,
    );
  };
  assert.ok(screen(1_000).hits.length <= 1);
  assert.throws(() => screen(2_000_000), { status: 413 });
  assert.ok(looks < 15, `${looks} looks`);
});

test('a pattern that is slow between its matches is refused as well', async () => {
  const rules: Rules = { ...NO_RULES, patterns: [{ pattern: 'x[^y]*y|x', action: 'flag', label: null }] };
  const filters = await Filters.of([{ guardrailId: '1', via: 'api-key', rules }]);
  let looks = 0;
  const slow = { ...systemClock, monotonic: () => 100 * looks++ };
  const screen = (length: number) => {
    looks = 0;
    const content = 'x'.repeat(length);
    return filters!.screen(
      readDocument(Buffer.from(JSON.stringify({ messages: [{ role: 'user', content }] }))),
      chat.texts,
      slow,
    );
  };
  assert.equal(screen(3).hits[0]?.matches, 3);
  assert.throws(() => screen(1_000), { status: 413 });
});
