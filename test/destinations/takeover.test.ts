/** Records of a durable destination survive their process: another one delivers them. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { connectOnce } from '../../src/testing/database/database.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { startScene } from './scene.ts';

test('what waits for a webhook is delivered after a restart', async (t) => {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'gatehouse-destinations-'));
  const scene = await startScene(t, { dataDir });
  const { system, gateway } = scene;
  const workspace = await scene.workspace();
  const destination = await workspace.destination({ type: 'webhook', config: { url: `${system.url}/hook` } });
  system.answer = () => 503;
  const id = await workspace.ask();
  await scene.deliveryIs(destination.id, ({ status, waiting }) => status === 'failing' && waiting === 1);
  const client = await connectOnce(t, gateway.target);
  const { rows } = await client.query('select records, sealed from destination_batches');
  assert.equal(rows[0].records, null);
  assert.ok(!(rows[0].sealed as Buffer).includes(id), 'what waits is encrypted');
  await client.end();
  await gateway.close();
  system.answer = () => 200;
  const yaml = { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] } };
  await startGateway(t, { providers: { a: {} }, target: gateway.target, dataDir, yaml, jobs: 'now' });
  // After the gateways have closed.
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const spans = await scene.spansAt('/hook', 2);
  assert.deepEqual(new Set(spans.map(({ attributes }) => attributes['gen_ai.response.id'])), new Set([id]));
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, 1, 'a repeated record has the same ids');
});
