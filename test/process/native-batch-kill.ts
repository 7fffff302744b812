/** Kill -9 at the steps of a batch in the batch interface of a provider. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { databaseUrl, emptyDatabase } from '../../src/testing/database/database.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { PRICING } from '../../src/testing/gateway/gateway.ts';
import { gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { BatchVendor, type Fault, type VendorRequest } from '../../src/testing/upstream/batch-vendor.ts';
import { batchesOf } from '../batches/batches-client.ts';
import { answers, halfCost, item, type Kind, nativeBatch, settings } from '../batches/native.ts';

const ITEMS = 40;
type At = (request: VendorRequest) => boolean;

/** Requests of a batch by which its steps are recognized. */
export interface Steps {
  isUpload: At;
  isCreation: At;
  isPoll: At;
  isResults: At;
}

/** What the process is doing at the provider when it is killed. */
function rounds({ isUpload, isCreation, isPoll, isResults }: Steps): readonly [name: string, at: At, fault: Fault][] {
  return [
    ['while it uploads', isUpload, 'stall'],
    ['when the upload is complete', isUpload, 'hang'],
    ['when the batch is created', isCreation, 'hang'],
    ['while it polls', isPoll, 'stall'],
    ['while it reads results', isResults, 'half'],
    ['while it removes the data', ({ method }) => method === 'DELETE', 'hang'],
  ];
}

export const OPENAI_STEPS: Steps = {
  isUpload: ({ method, path }) => method === 'POST' && path === '/files',
  isCreation: ({ method, path }) => method === 'POST' && path === '/batches',
  isPoll: ({ method, path }) => method === 'GET' && /^\/batches\/./.test(path),
  isResults: ({ path }) => /^\/files\/out-.*\/content$/.test(path),
};

interface Options {
  /** Of the list price. */
  percent?: number;
  /** Names of the rounds; all unless given. */
  only?: readonly string[];
}

/** Another process continues, and nothing is submitted, lost or paid twice. */
export async function killAtSteps(
  t: TestContext,
  kind: keyof typeof answers,
  steps: Steps,
  { percent, only }: Options = {},
): Promise<void> {
  const kills = rounds(steps).filter(([name]) => only?.includes(name) ?? true);
  assert.equal(kills.length, only?.length ?? kills.length);
  const vendor = await new BatchVendor(kind).listen();
  t.after(() => vendor.close());
  vendor.answer = answers[kind];
  let step = 0;
  let reached = -1;
  vendor.fault = (request) => {
    const [, at, fault] = kills[step] ?? [];
    if (at?.(request) !== true) return undefined;
    reached = step;
    return fault;
  };
  const target = await emptyDatabase(t, migrations, true);
  const env = { DATABASE_URL: databaseUrl(target) };
  const yaml = yamlOf(vendor, kind);
  const start = async () => startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml });
  let current = await start();
  const texts = Array.from({ length: ITEMS }, (_, n) => `item-${n}`);
  const { id } = await batchesOf(current).submitted(nativeBatch(texts.map((text) => item(text))));
  for (const [name] of kills) {
    await until(() => reached === step, name, 60_000);
    current.signal('SIGKILL');
    await current.exit;
    t.diagnostic(`killed ${name}`);
    step += 1;
    current = await start();
  }
  const batch = await until(
    async () => {
      const { body } = await batchesOf(current).send('GET', `/batches/${id}`);
      return body.status === 'completed' && body;
    },
    'the batch ends',
    90_000,
  );
  assert.deepEqual(batch.request_counts, { total: ITEMS, completed: ITEMS, failed: 0 });
  assert.deepEqual(
    batch.results.map(
      ({ response }: { response: { body: ReturnType<typeof answers.openai>['body'] } }) =>
        response.body.choices[0]!.message.content,
    ),
    texts.map((text) => `re: ${text}`),
  );
  assert.equal(vendor.batches.length, 1);
  const db = await connect(target);
  t.after(() => db.end());
  const sql = `select (select count(*)::int from generations) as rows, (select sum(cost_nano)::float8 from generations) as nano,
    (select count(*)::int from native_batches) as parts, (select count(*)::int from spend_holds) as holds`;
  const row = await until(async () => {
    const { rows } = await db.query(sql);
    return rows[0].parts === 0 && rows[0];
  }, 'nothing is left of the native batch');
  assert.equal(vendor.files.size, 0);
  assert.deepEqual(row, { rows: ITEMS, nano: Math.round(halfCost(texts, percent) * 1e9), parts: 0, holds: 0 });
}

function yamlOf(vendor: BatchVendor, kind: Kind): string {
  const { model, ...members } = settings(vendor)[kind] ?? {};
  const limits = { context_length: 100_000, max_completion_tokens: 1000 };
  const models = [{ id: 'test/native', pricing: PRICING, ...limits, ...model }];
  const provider = { id: 'native', kind, base_url: vendor.url, api_key: 'key-of-the-test', ...members, models };
  return JSON.stringify({ providers: [provider] });
}
