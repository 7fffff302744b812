/** Batches of OpenAI's SDKs when something around them fails. */
import assert from 'node:assert/strict';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf } from '../workspaces/control.ts';
import { CHAT, created, ended, jsonl, lineOf, linesOf, openaiOf, uploaded } from './openai-client.ts';

/** Makes the folder of file contents unusable until the returned function is called. */
function withoutStorage({ dataDir }: Gateway): () => void {
  const folder = path.join(dataDir, 'blobs');
  renameSync(folder, `${folder}.away`);
  writeFileSync(folder, 'not a folder');
  return () => {
    rmSync(folder);
    renameSync(`${folder}.away`, folder);
  };
}

async function rowsOf(t: TestContext, { target }: Gateway) {
  const client = await connect(target);
  t.after(() => client.end());
  return async () => {
    const { rows } = await client.query(
      `select (select count(*)::int from batches) as batches, (select count(*)::int from batch_files) as files,
        (select count(*)::int from batch_items) as items, (select count(*)::int from batch_intakes) as intakes`,
    );
    return rows[0];
  };
}

test('while results cannot be stored a batch is finalizing; none is lost', async (t) => {
  const gateway = await startGateway(t);
  const openai = openaiOf(gateway);
  const lines = [lineOf('fails', { unknown: 1 }), lineOf('runs', { text: 'x', delay_ms: { headers: 500 } })];
  const { id } = await created(openai, lines);
  await until(async () => (await openai.batches.retrieve(id)).status === 'in_progress', 'the file is read');
  const restore = withoutStorage(gateway);
  const results = () =>
    fetch(`${gateway.api}/batches/${id}/results`, { headers: { authorization: `Bearer ${INFERENCE_KEY}` } });
  await until(async () => (await results()).status === 200, 'every request has its result');
  const waiting = await openai.batches.retrieve(id);
  assert.deepEqual(
    [waiting.status, waiting.request_counts, waiting.output_file_id, waiting.completed_at],
    ['finalizing', { total: 2, completed: 1, failed: 1 }, null, null],
  );
  restore();
  const batch = await ended(openai, id);
  assert.equal(batch.status, 'completed');
  await linesOf(openai, batch, ['fails', 'runs']);
});

test('while its input file cannot be read a batch is validating, and it can still be cancelled', async (t) => {
  const gateway = await startGateway(t);
  const openai = openaiOf(gateway);
  const input = await uploaded(openai, jsonl([lineOf('a', { text: 'x' }), lineOf('b', { text: 'y' })]));
  const restore = withoutStorage(gateway);
  const create = () => openai.batches.create({ input_file_id: input, endpoint: CHAT, completion_window: '24h' });
  const [runs, stops] = [await create(), await create()];
  assert.equal((await openai.batches.cancel(stops.id)).status, 'cancelling');
  assert.equal((await openai.batches.retrieve(runs.id)).status, 'validating');
  restore();
  const batch = await ended(openai, runs.id);
  assert.equal(batch.status, 'completed');
  await linesOf(openai, batch, ['a', 'b']);
  const cancelled = await ended(openai, stops.id);
  const { errors } = await linesOf(openai, cancelled, ['a', 'b']);
  assert.deepEqual([cancelled.status, errors.length], ['cancelled', 2]);
});

test('a batch whose window ends before its file is read expires, however often reading is started', async (t) => {
  const gateway = await startGateway(t);
  const openai = openaiOf(gateway);
  const ids = Array.from({ length: 2_000 }, (_, n) => `item-${n}`);
  const input = await uploaded(openai, jsonl(ids.map((id) => lineOf(id, { text: 'x' }))));
  const restore = withoutStorage(gateway);
  const { id } = await openai.batches.create({ input_file_id: input, endpoint: CHAT, completion_window: '24h' });
  const client = await connect(gateway.target);
  t.after(() => client.end());
  const jobs = async () => {
    const sql = `select count(*)::int as count from gatehouse_jobs.job where name = 'batches.read-file' and state < 'completed'`;
    return (await client.query(sql)).rows[0].count;
  };
  for (let started = 2; started <= 3; started += 1) {
    gateway.clock.jump(660_000);
    await until(async () => (await jobs()) >= started, 'reading is started again');
  }
  assert.equal((await openai.batches.retrieve(id)).status, 'validating');
  gateway.clock.jump(86_400_000);
  restore();
  const batch = await ended(openai, id);
  assert.equal(batch.status, 'expired');
  const { errors } = await linesOf(openai, batch, ids);
  assert.deepEqual(new Set(errors.map(({ error }) => error.code)), new Set(['batch_expired']));
});

test('a batch whose key or file is gone when the file is read fails, and names the reason', async (t) => {
  const gateway = await startGateway(t);
  const control = controlOf(gateway);
  const openai = openaiOf(gateway);
  const made = await control.call('POST', '/keys', { name: 'short-lived' });
  const input = await uploaded(openai, jsonl([lineOf('a', { text: 'x' })]));
  const restore = withoutStorage(gateway);
  const create = (of = openai) => of.batches.create({ input_file_id: input, endpoint: CHAT, completion_window: '24h' });
  const withoutKey = await create(openaiOf(gateway, made.body.key));
  const withoutFile = await create();
  assert.equal((await control.call('PATCH', `/keys/${made.body.data.hash}`, { disabled: true })).status, 200);
  await openai.files.delete(input);
  restore();
  const failures: [string, string, string | null, RegExp][] = [
    [withoutKey.id, 'authentication', null, /^the key of the batch: /],
    [withoutFile.id, 'not_found', 'input_file_id', /was deleted/],
  ];
  for (const [id, code, param, message] of failures) {
    const batch = await ended(openai, id);
    assert.equal(batch.status, 'failed');
    const [error] = batch.errors!.data!;
    assert.deepEqual([error!.code, error!.line, error!.param], [code, null, param]);
    assert.match(error!.message!, message);
  }
});

test('of a workspace that is deleted while an input file is read nothing is left', async (t) => {
  const gateway = await startGateway(t);
  const control = controlOf(gateway);
  const counts = await rowsOf(t, gateway);
  const { id: workspace } = await control.made({ name: 'Ends', slug: 'ends-batches' });
  const { token } = await control.keyIn(workspace, 'ends');
  const openai = openaiOf(gateway, token);
  const input = await uploaded(openai, jsonl(Array.from({ length: 50 }, (_, n) => lineOf(`item-${n}`))));
  const restore = withoutStorage(gateway);
  await openai.batches.create({ input_file_id: input, endpoint: CHAT, completion_window: '24h' });
  assert.deepEqual(await counts(), { batches: 1, files: 1, items: 0, intakes: 1 });
  const { body: keys } = await control.call('GET', `/keys?workspace_id=${workspace}`);
  for (const each of keys.data) await control.call('DELETE', `/keys/${each.hash}`);
  assert.equal((await control.call('DELETE', `/workspaces/${workspace}`)).status, 200);
  restore();
  // A batch that is created later is read later.
  const other = openaiOf(gateway);
  const { id } = await created(other, [lineOf('after', { text: 'x' })]);
  await ended(other, id);
  assert.deepEqual(await counts(), { batches: 1, files: 1, items: 1, intakes: 0 });
});
