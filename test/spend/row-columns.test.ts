import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../src/base/log.ts';
import { spendMigrations } from '../../src/spend/index.ts';
import { enterBatch } from '../../src/spend/ledger.ts';
import { decodeSettled } from '../../src/spend/record.ts';
import { COLUMNS, decodeRow } from '../../src/spend/row.ts';
import { generationById } from '../../src/spend/store.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { sampleAccepted, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';

test('the table of columns is that of the database', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  const columns = await database.query<{ column_name: string; data_type: string }>(
    `select column_name, data_type from information_schema.columns
     where table_name = 'generations' and column_name <> 'summed'`,
  );
  const ours = COLUMNS.map(([name, type]) => [name, type.replace('timestamptz', 'timestamp with time zone')]);
  assert.deepEqual(columns.map((each) => [each.column_name, each.data_type]).toSorted(), ours.toSorted());
});

/** A settled record of the first version. Never changes: a later version must still enter it. */
const FIRST_VERSION =
  '["gen-old",["key/key-1/daily/1773792000000","1500","0"]]\t' +
  '{"id":"gen-old","created_at":"2026-03-18T12:00:00.000Z","key_id":"key-1","workspace_id":"workspace-1",' +
  '"organization_id":"org-1","api_type":"completions","streamed":true,"data_region":"global","origin":"",' +
  '"model":"acme/large","endpoint_id":"acme/large@acme","provider_name":"Acme","is_byok":false,"status":200,' +
  '"cancelled":false,"estimated":false,"unconfirmed":false,"finish_reason":"stop","input_tokens":100,' +
  '"cache_read_tokens":7,"cache_write_5m_tokens":3,"cache_write_1h_tokens":2,"output_tokens":50,' +
  '"reasoning_tokens":20,"media":{},"cost_nano":"1500","byok_nano":"0","latency_ms":12.5,"generation_ms":80,' +
  '"provider_responses":[{"status":200}]}';

test('a record of the first version is entered and read', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  const entry = decodeSettled(FIRST_VERSION);
  await enterBatch(database, 'process', [entry], silentLog);
  const accepted = sampleAccepted('gen-old', {
    requestId: null,
    streamed: true,
    userAgent: null,
    origin: '',
    title: null,
  });
  const row = sampleGeneration(accepted, {
    upstreamId: null,
    nativeFinishReason: null,
    providerResponses: [{ status: 200 }],
  });
  assert.deepEqual(decodeRow(JSON.parse(entry.row)), row);
  assert.deepEqual(decodeRow((await generationById(database, 'gen-old'))!), row);
});
