/**
 * One guardrail more never allows more: on a whole gateway, with generated catalogs, account settings, guardrails in every
 * place where one can stand, and requests. Every upstream says that it does not know the model, so each request walks
 * through all of the endpoints that may serve it, and the upstreams record which those are.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import type { Config } from '../../src/base/config.ts';
import { UpdateGuardrailSchema } from '../../src/guardrails/schema.ts';
import { VENDORS } from '../../src/guardrails/vendors.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import type { Json, TeamKey } from '../workspaces/control.ts';
import { postThrough, startGuarded } from './guarded.ts';

const PROVIDERS = ['one', 'two', 'three'];
const MODELS = [
  'anthropic/claude-haiku-4.5',
  'google/gemini-2.5-flash',
  'openai/gpt-5-mini',
  'x-ai/grok-4.6',
  'test/d',
  'test/d:free',
];
const NAMES = [
  ...MODELS,
  'claude-haiku-4-5-20251001',
  'gemini-2.5-flash-latest',
  'gpt-5-mini',
  'test/d:nitro',
  'openai/gpt-5-mini:floor',
  'openai/gpt-5-mini:free',
];
const HOSTS = { global: 'localhost', europe: 'eu.example.com', us: 'us.example.com' };
const REGIONS = Object.keys(HOSTS) as (keyof typeof HOSTS)[];
const WORDS = ['ann@example.org', '078-05-1120', 'zebra', 'PRJ-12', '4111111111111111', 'hello', 'é'];

const { gateway, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: Object.fromEntries(
      PROVIDERS.map((name) => [
        name,
        {
          models: MODELS.map((id) => ({
            id,
            upstream_id: id,
            context_length: 100_000,
            max_completion_tokens: 4_000,
            pricing: { prompt: '0.000003', completion: '0.000015' },
          })),
        },
      ]),
    ),
    yaml: { hosts: { europe: [HOSTS.europe], us: [HOSTS.us] }, limits: { candidates: 100 } },
  },
);
const UNKNOWN = {
  status: 404,
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify({ error: { message: 'The model does not exist', code: 'model_not_found' } })],
};

// What is generated.

const flag = fc.constantFrom(null, true, false);
const often = fc.constantFrom(true, true, true, false);
const seldom = often.map((value) => !value);
const some = <T>(values: readonly T[], least = 1) =>
  fc.option(fc.subarray([...values], { minLength: least }), { nil: null });
const { prompt, completion } = { prompt: 3n * 10n ** 12n, completion: 15n * 10n ** 12n };
const offering = fc.record({
  offered: often,
  dataPolicy: fc.record({ zdr: often, trains: seldom, publishes: seldom, retainsForSafety: fc.boolean() }),
  pricing: fc.constantFrom(
    null,
    { prompt: 0n, completion: 0n },
    { prompt, completion },
    { prompt: 9n, completion: 9n },
  ),
  region: fc.constantFrom(null, 'eu'),
});
const catalog = fc.array(offering, { minLength: 18, maxLength: 18 });
const account = fc.record({
  zdr: seldom,
  allowTraining: often,
  allowPublication: often,
  allowSafetyRetention: often,
});

const action = fc.constantFrom('block', 'redact', 'redact', 'flag');
const applyTo = fc.constantFrom(['request'], ['response'], ['request', 'response']);
const builtin = fc.record({ slug: fc.constantFrom('email', 'ssn', 'credit-card'), action, apply_to: applyTo });
const pattern = fc.record({
  pattern: fc.constantFrom('zebra', 'PRJ-[0-9]{1,9}', '(?i)ZEB', 'org'),
  action,
  label: fc.constantFrom(null, '[X]'),
  apply_to: applyTo,
});
const limit = fc.option(
  fc.record({
    limit_usd: fc.constantFrom(0.000001, 0.02, 0.05, 5),
    reset_interval: fc.constantFrom('daily', 'weekly', 'monthly'),
  }),
  { nil: { limit_usd: null, reset_interval: null } },
);
/** Every field. */
const fields = fc.record({
  allowed_data_regions: some(REGIONS, 2),
  allowed_models: some([...NAMES, 'TEST/D'], 6),
  ignored_models: some(MODELS),
  allowed_providers: some([...PROVIDERS, 'Provider one', 'two/eu'], 2),
  ignored_providers: some([...PROVIDERS, 'provider two', 'one/eu']),
  content_filter_builtins: fc.option(fc.uniqueArray(builtin, { minLength: 1, selector: ({ slug }) => slug }), {
    nil: null,
  }),
  content_filters: fc.option(fc.array(pattern, { minLength: 1, maxLength: 2 }), { nil: null }),
  enable_free_model_publication: flag,
  enable_free_model_training: flag,
  enable_paid_model_training: flag,
  enforce_zdr: flag,
  enforce_zdr_anthropic: flag,
  enforce_zdr_vendor_b: flag,
  enforce_zdr_google: flag,
  enforce_zdr_xai: flag,
  enforce_zdr_other: flag,
  allow_safety_retention_vendor_c: flag,
  allow_safety_retention_other: flag,
  limit,
});
test('every field of a guardrail is generated', () => {
  const limits = ['limit_usd', 'reset_interval', 'include_byok_in_budgets'];
  const [sample] = fc.sample(fields, 1);
  const { limit: _, ...rules } = sample!;
  const generated = [...Object.keys(rules), ...limits, 'name', 'description'].map(underOneName);
  const fieldsOfSchema = Object.keys(UpdateGuardrailSchema.properties).map(underOneName);
  assert.deepEqual([...new Set(fieldsOfSchema)].toSorted(), generated.toSorted());
});

function underOneName(field: string): string {
  const vendor = VENDORS.find(({ alias }) => field.endsWith(`_${alias}`));
  return vendor === undefined ? field : `${field.slice(0, -vendor.alias.length)}${vendor.token}`;
}

/** Fields that mean something together. */
const GROUPS = [
  ['content_filter_builtins', 'content_filters'],
  ['allowed_data_regions'],
  ['enforce_zdr', 'allow_safety_retention_vendor_c', 'allow_safety_retention_other'],
  ['limit'],
];
/** Several guardrails that speak of the same few things: about everything would leave nothing to compare. */
const guardrails: fc.Arbitrary<Json[]> = fc
  .tuple(fc.shuffledSubarray(Object.keys(fc.sample(fields, 1)[0]!), { maxLength: 3 }), fc.constantFrom(...GROUPS))
  .chain(([named, group]) => fc.array(guardrailOn([...named, ...group]), { minLength: 3, maxLength: 3 }));

function guardrailOn(names: readonly string[]): fc.Arbitrary<Json> {
  return fc
    .record({
      all: fields,
      kept: fc.subarray([...names], { minLength: Math.ceil(names.length / 2) }),
      byok: fc.boolean(),
    })
    .map(({ all: { limit: spending, ...rules }, kept, byok }) => ({
      ...Object.fromEntries(Object.entries(rules).filter(([name]) => kept.includes(name))),
      ...(kept.includes('limit') && { ...spending, include_byok_in_budgets: byok }),
    }));
}

const nameList = fc.oneof(fc.constant(undefined), fc.subarray([...PROVIDERS, 'provider two'], { minLength: 1 }));
const request = fc.record({
  format: fc.constantFrom('chat', 'chat', 'messages', 'responses'),
  region: fc.constantFrom(...REGIONS),
  models: fc.shuffledSubarray(NAMES, { minLength: 1, maxLength: 4 }),
  maxTokens: fc.constantFrom(undefined, 100, 1_000),
  words: fc.subarray(WORDS, { minLength: 1, maxLength: 3 }),
  provider: fc.record({
    only: nameList,
    order: nameList,
    ignore: fc.constantFrom(undefined, undefined, ['three']),
    data_collection: fc.constantFrom(undefined, 'allow', 'allow', 'deny'),
    zdr: fc.constantFrom(undefined, false, false, true),
    sort: fc.constantFrom(undefined, 'price', 'latency'),
  }),
});
type Asked = typeof request extends fc.Arbitrary<infer T> ? T : never;

// What it comes to.

interface Seen {
  status: number;
  /** Endpoints that were asked, with what they were sent. */
  sent: Map<string, Json>;
  body: string;
}

function bodyOf({ format, models: [model, ...models], maxTokens, words, provider }: Asked): [string, Json] {
  const content = words.join(' ');
  const messages = [{ role: 'user', content }];
  const shared = { model, ...(models.length > 0 && { models }), provider };
  if (format === 'responses') return ['/responses', { ...shared, input: content, max_output_tokens: maxTokens }];
  if (format === 'messages') return ['/messages', { ...shared, messages, max_tokens: maxTokens ?? 500 }];
  return ['/chat/completions', { ...shared, messages, max_tokens: maxTokens }];
}

async function seen(key: TeamKey, asked: Asked): Promise<Seen> {
  const before = gateway.upstream.requests().length;
  const answer = await postThrough(gateway, HOSTS[asked.region], key.token, ...bodyOf(asked));
  assert.notEqual(answer.status, 500, answer.body);
  const sent = new Map<string, Json>();
  for (const { key: provider, json } of gateway.upstream.requests().slice(before)) {
    sent.set(`${provider} ${(json as Json).model}`, json);
  }
  return { ...answer, sent };
}

async function listed(key: TeamKey): Promise<{ models: string[]; zdr: string[] }> {
  const get = async (path: string) => (await control.call('GET', path, undefined, key.token)).body.data as Json[];
  const [models, zdr] = [await get('/models/user'), await get('/endpoints/zdr')];
  return {
    // Those with a tilde are aliases of others in the list, and router models choose among the others.
    models: models.flatMap(({ id }) => (/^(?:~|svc\/)/.test(id) ? [] : [id])).toSorted(),
    zdr: zdr.map(({ provider_name, model_id }) => `${provider_name.replace('Provider ', '')} ${model_id}`).toSorted(),
  };
}

function configured(offerings: readonly Json[], settings: Json): Config {
  const { config } = gateway;
  let at = 0;
  const providers = config.providers.map((provider) => ({
    ...provider,
    models: provider.models.flatMap((model) => {
      const { offered, ...facts } = offerings[at++];
      return offered ? [{ ...model, ...facts }] : [];
    }),
  }));
  return { ...config, providers, account: { ...config.account, ...settings } };
}

type Place = 'workspace' | 'member' | 'key';
const PLACES: readonly Place[] = ['workspace', 'member', 'key'];

async function ok(pending: Promise<{ status: number; body: Json }>): Promise<Json> {
  const { status, body } = await pending;
  assert.ok(status < 300, JSON.stringify(body));
  return body.data;
}

/** Sets guardrails on a key's places, and takes them all away again. */
async function placesOf(key: TeamKey) {
  const { workspace_id, creator_user_id } = await ok(control.call('GET', `/keys/${key.hash}`));
  const { default_guardrail_id: standard } = await ok(control.call('GET', `/workspaces/${workspace_id}`));
  const made: string[] = [];
  return {
    async put(place: Place, rules: Json): Promise<void> {
      if (place === 'workspace') {
        await ok(control.call('PATCH', `/guardrails/${standard}`, rules));
        made.push(standard);
        return;
      }
      const { id } = await ok(control.call('POST', '/guardrails', { name: place, ...rules }));
      made.push(id);
      const body = place === 'key' ? { key_hashes: [key.hash] } : { member_user_ids: [creator_user_id] };
      const noun = place === 'key' ? 'keys' : 'members';
      assert.deepEqual((await control.call('POST', `/guardrails/${id}/assignments/${noun}`, body)).body, {
        assigned_count: 1,
      });
    },
    async clear(): Promise<void> {
      for (const id of made.splice(0)) await ok(control.call('DELETE', `/guardrails/${id}`));
    },
  };
}

/** For every model, and with nothing of its own in the way. */
const PLAIN: Asked = {
  format: 'chat',
  region: 'global',
  models: MODELS,
  maxTokens: undefined,
  words: ['hello'],
  provider: {} as Asked['provider'],
};

/** What is listed is what can be asked for, unless a budget, the region or a model without an endpoint is in the way. */
function assertListed(lists: { models: string[]; zdr: string[] }, [any, zdr]: readonly [Seen, Seen]): void {
  const asked = {
    models: [...new Set([...any.sent.keys()].map((endpoint) => endpoint.split(' ')[1]!))].toSorted(),
    zdr: [...zdr.sent.keys()].toSorted(),
  };
  for (const list of ['models', 'zdr'] as const) {
    assert.deepEqual(
      asked[list].filter((one) => !lists[list].includes(one)),
      [],
      `asked and not in ${list}`,
    );
  }
  if (/region_restricted|payment_required|cannot be bounded|model_not_found","retryable/.test(any.body + zdr.body))
    return;
  assert.deepEqual(asked, lists);
  counts.listed += 1;
}

const counts = { asked: 0, fewer: 0, refused: 0, redacted: 0, capped: 0, hidden: 0, listed: 0 };

function assertNoMore(before: Seen, now: Seen, words: readonly string[]): void {
  for (const [endpoint, json] of now.sent) {
    const earlier = before.sent.get(endpoint);
    assert.ok(earlier !== undefined, `${endpoint} was not asked before: ${before.body}`);
    const [then, said] = [JSON.stringify(earlier.messages), JSON.stringify(json.messages)];
    for (const word of words) {
      if (!then.includes(word)) assert.ok(!said.includes(word), `${word} was kept back before`);
      else if (!said.includes(word)) counts.redacted += 1;
    }
    const [most, cap] = [earlier, json].map((body) => body.max_tokens ?? body.max_completion_tokens ?? Infinity);
    assert.ok(cap <= most, `${cap} tokens instead of ${most}`);
    if (cap < most) counts.capped += 1;
  }
  counts.asked += before.sent.size;
  if (now.sent.size < before.sent.size) counts.fewer += 1;
  if (before.sent.size === 0) counts.refused += 1;
}

function assertStillHidden(before: Seen, now: Seen): void {
  if (now.status !== 200) return;
  assert.equal(before.status, 200, before.body);
  for (const word of WORDS) {
    if (before.body.includes(word)) continue;
    assert.ok(!now.body.includes(word), `${word} was kept back before`);
    counts.hidden += 1;
  }
}

test('a guardrail more, wherever it is added, never lets a request reach what it did not reach, nor say what it did not', async () => {
  const key = await control.keyIn(undefined, 'governed');
  const places = await placesOf(key);
  const script = (answer: Parameters<typeof gateway.upstream.script>[1]) => {
    for (const name of PROVIDERS) gateway.upstream.script(name, answer);
  };
  const observe = async (requests: readonly Asked[]) => {
    script({ ...UNKNOWN, repeat: true });
    const walked: Seen[] = [];
    for (const asked of requests) walked.push(await seen(key, asked));
    const all = [
      await seen(key, PLAIN),
      await seen(key, { ...PLAIN, provider: { ...PLAIN.provider, zdr: true } }),
    ] as const;
    const lists = await listed(key);
    assertListed(lists, all);
    script(chatWhole(WORDS.join(' ')));
    return { walked, lists, answered: await seen(key, PLAIN) };
  };
  /** What is generated says little when nothing of it was refused, hidden or redacted. */
  const tellsMuch = () => counts.asked > 100 && counts.fewer > 10 && counts.refused > 3 && counts.redacted > 3;
  const law = fc.asyncProperty(
    fc.tuple(catalog, account),
    fc.shuffledSubarray([...PLACES], { minLength: 1 }),
    guardrails,
    fc.array(request, { minLength: 4, maxLength: 4 }),
    async ([offerings, settings], [added, ...standing], [further, ...others], requests) => {
      gateway.app.reload(configured(offerings, settings));
      try {
        for (const [at, place] of standing.entries()) await places.put(place, others[at]);
        const before = await observe(requests);
        await places.put(added!, further);
        const now = await observe(requests);
        for (const [at, { words }] of requests.entries()) assertNoMore(before.walked[at]!, now.walked[at]!, words);
        assertStillHidden(before.answered, now.answered);
        for (const list of ['models', 'zdr'] as const) {
          assert.deepEqual(
            now.lists[list].filter((one) => !before.lists[list].includes(one)),
            [],
          );
        }
      } finally {
        await places.clear();
      }
    },
  );
  // A round is nearly always enough; forty that tell little would be a fault of the generators.
  for (let round = 0; round < 40 && (round === 0 || !tellsMuch()); round++) await fc.assert(law, { numRuns: 25 });
  assert.ok(tellsMuch(), JSON.stringify(counts));
});
