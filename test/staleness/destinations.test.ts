/** Two gateways on one database, one of which stops getting change notifications: it still forwards by the current settings. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { System } from '../destinations/scene.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { DatabaseLine } from './database-line.ts';

const YAML = { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] }, io_logging: { enabled: true } };
const KEK = { GATEHOUSE_KEK: Buffer.alloc(32, 7).toString('base64') };

test('a process that hears of no changes forwards nothing that new settings forbid, and learns of new destinations', async (t) => {
  const target = await emptyDatabase(t, migrations);
  const line = await DatabaseLine.open(t, target);
  const options = { yaml: YAML, providers: { a: {} }, env: KEK };
  const a = await startGateway(t, { ...options, target });
  const b = await startGateway(t, { ...options, target: line.target });
  b.upstream.script('a', { ...wholeOf(chatReply({ text: 'hello' })), repeat: true });
  const system = await new System().listen();
  t.after(() => system.close());
  const control = controlOf(a);
  const workspace = async (slug: string) => {
    const made = await control.made({ name: slug, slug, is_observability_broadcast_enabled: true });
    return { id: made.id as string, key: (await control.keyIn(made.id, slug)).token };
  };
  const [changing, marking] = [await workspace('changing'), await workspace('marking')];
  const destination = async (path: string, { id }: { id: string }): Promise<string> => {
    const config = { endpoint: `${system.url}${path}` };
    const body = { name: path, type: 'otel-collector', config, workspace_id: id };
    const made = await control.call('POST', '/observability/destinations', body);
    assert.equal(made.status, 201, JSON.stringify(made.body));
    return made.body.data.id;
  };
  const askIn = async ({ key }: { key: string }): Promise<string> => {
    const body = { model: 'test/a', max_tokens: 16, messages: [{ role: 'user', content: 'hi' }] };
    const answer = await controlOf(b).call('POST', '/chat/completions', body, key);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    b.clock.jump(1_000);
    return answer.body.id;
  };
  const spanOf = (path: string, id: string): Json | undefined =>
    system.spans(path).find(({ attributes }) => attributes['gen_ai.response.id'] === id);
  const arrives = async (path: string, id: string): Promise<Json> => {
    await until(() => spanOf(path, id) !== undefined, `${id} at ${path}`);
    return spanOf(path, id)!.attributes;
  };

  const first = await destination('/first', changing);
  await destination('/marker', marking);
  await until(async () => (await arrivesSoon('/first', changing)) !== undefined, 'the destination is known');
  line.dropsNotifications = true;

  const patched = await control.call('PATCH', `/observability/destinations/${first}`, { privacy_mode: true });
  assert.equal(patched.status, 200);
  const shown = await arrives('/first', await askIn(changing));
  assert.equal(shown['gen_ai.input.messages'], undefined);
  assert.equal(shown['gen_ai.output.messages'], undefined);

  await destination('/second', changing);
  await until(async () => (await arrivesSoon('/second', changing)) !== undefined, 'the new destination is known');

  await control.call('PATCH', `/observability/destinations/${first}`, { enabled: false });
  const afterDisabling = await askIn(changing);
  await arrives('/second', afterDisabling);
  await control.call('PATCH', '/workspaces/changing', { is_observability_broadcast_enabled: false });
  const afterTurningOff = await askIn(changing);
  await arrives('/marker', await askIn(marking));
  assert.equal(spanOf('/first', afterDisabling), undefined);
  for (const path of ['/first', '/second']) assert.equal(spanOf(path, afterTurningOff), undefined);

  /** The record of a new request, if the destination gets it with the next delivery. */
  async function arrivesSoon(path: string, { key }: { key: string }): Promise<Json | undefined> {
    const id = await askIn({ key });
    await arrives('/marker', await askIn(marking));
    return spanOf(path, id);
  }
});
