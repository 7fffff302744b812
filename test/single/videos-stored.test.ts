/** A video that its provider has made is kept, whatever moment the connection to the database breaks at. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce, emptyDatabase } from '../../src/testing/database/database.ts';
import { losingAnswers } from '../../src/testing/database/lost-answers.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const scope = { after: (close: unknown) => after(close as () => Promise<void>) };
const target = await emptyDatabase(scope, migrations, true);
const database = await losingAnswers(scope, target);
const pricing = { prompt: '0', completion: '0', output_second: '0.1' };
const model = { upstream_id: 'sora-2', pricing, output_modalities: ['video'] };
const gateway = await startGateway(scope, {
  target: database.target,
  providers: { sora: { kind: 'openai', model } },
});
const sql = await connectOnce(scope, target);

const json = (body: unknown): Answer => ({
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(body)],
});
const FILM = Buffer.alloc(5_000, 7);
const video = (status: string) => json({ id: 'v_1', status, seconds: '8' });

for (const written of ['insert into blobs', 'update blobs set bytes', "update blobs set state = 'kept'", 'commit']) {
  test(`a video is stored and charged once, although the answer to ${written} is lost`, async () => {
    const before = await sql.query('select count(*)::integer as count from generations');
    const content: Answer = { headers: { 'content-type': 'video/mp4' }, chunks: [FILM] };
    gateway.upstream.script('sora', [video('queued'), video('completed'), content]);
    const created = await gateway.post('/videos', { model: 'test/sora', prompt: 'a cat', duration: 8 });
    const { id } = (await created.json()) as { id: string };
    const lost = database.lost.length;
    database.lose((statement, transaction) =>
      statement === 'commit' && written === 'commit'
        ? transaction.some((each) => each.includes('update videos set status'))
        : statement.includes(written) && written !== 'commit',
    );
    const job = await until(async () => {
      gateway.clock.jump(1_000);
      const found = (await (await gateway.get(`/videos/${id}`)).json()) as Record<string, unknown>;
      return found['status'] === 'in_progress' ? undefined : found;
    }, 'the job ends');
    assert.equal(database.lost.length, lost + 1);
    assert.deepEqual([job['status'], job['usage']], ['completed', { cost: 0.8, is_byok: false }], JSON.stringify(job));
    const stored = await gateway.get(`/videos/${id}/content`);
    assert.deepEqual(Buffer.from(await stored.arrayBuffer()), FILM);
    const after = await sql.query(
      'select count(*)::integer as count, (select count(*)::integer from spend_holds) as holds from generations',
    );
    assert.deepEqual(after.rows, [{ count: before.rows[0].count + 1, holds: 0 }]);
  });
}
