/** Records of generations, from the request to a scripted system. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { inDatabase } from '../workspaces/control.ts';
import { oncePassed, startScene } from './scene.ts';

const scene = await startScene(
  { after: (close) => after(close as () => Promise<void>) },
  {
    yaml: {
      egress: { networks: ['127.0.0.1'], ports: ['1-65535'] },
      io_logging: { enabled: true },
    },
  },
);
const { system, gateway, control } = scene;

test('a generation arrives at a collector as a span of the GenAI conventions', async () => {
  const workspace = await scene.workspace();
  const destination = await workspace.destination({
    type: 'otel-collector',
    config: { endpoint: `${system.url}/v1/traces`, headers: { 'x-dataset': 'of-the-tests' } },
  });
  const [probe] = system.received.filter(({ path }) => path === '/v1/traces');
  assert.equal(probe!.headers['x-test-connection'], 'true');
  assert.equal(probe!.body, '{"resourceSpans":[]}');
  const id = await workspace.ask({
    temperature: 0.5,
    session_id: 'session-1',
    user: 'user-1',
    metadata: { team: 'blue' },
    trace: {
      trace_id: '0af7651916cd43dd8448eb211c80319c',
      parent_span_id: 'b7ad6b7169203331',
      trace_name: 'the trace',
      generation_name: 'the call',
      feature: 'search',
      depth: 3,
    },
  });
  const [span] = await scene.spansAt('/v1/traces');
  assert.equal(span.traceId, '0af7651916cd43dd8448eb211c80319c');
  assert.equal(span.parentSpanId, 'b7ad6b7169203331');
  assert.match(span.spanId, /^[0-9a-f]{16}$/);
  assert.equal(span.name, 'the call');
  assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano));
  const { attributes } = span;
  const expected = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'Provider a',
    'gen_ai.request.model': 'test/a',
    'gen_ai.response.model': 'test/a',
    'gen_ai.response.id': id,
    'gen_ai.request.max_tokens': '50',
    'gen_ai.request.temperature': 0.5,
    'gen_ai.conversation.id': 'session-1',
    'session.id': 'session-1',
    'user.id': 'user-1',
    'trace.name': 'the trace',
    'trace.metadata.team': 'blue',
    'trace.metadata.feature': 'search',
    'trace.metadata.depth': '3',
    'gatehouse.api_key.name': 'key of w1',
  };
  for (const [name, value] of Object.entries(expected)) assert.deepEqual(attributes[name], value, name);
  assert.deepEqual(JSON.parse(attributes['gen_ai.input.messages']), [
    { role: 'user', parts: [{ type: 'text', content: 'hi' }] },
  ]);
  const [output] = JSON.parse(attributes['gen_ai.output.messages']);
  assert.deepEqual(output.parts, [{ type: 'text', content: 'hello' }]);
  assert.ok(Number(attributes['gen_ai.usage.input_tokens']) > 0);
  assert.ok(attributes['gen_ai.usage.cost'] > 0);
  assert.equal(attributes['gatehouse.workspace.id'], undefined);
  assert.equal(attributes['user_agent.original'], undefined);
  const [request] = system.at('/v1/traces');
  assert.equal(request!.headers['x-dataset'], 'of-the-tests');
  assert.equal(request!.headers['content-type'], 'application/json');
  const delivery = await scene.deliveryIs(destination.id, ({ delivered }) => delivered === 1);
  assert.equal(delivery.status, 'delivering');
});

test('a name that is cut within a character stays a text that every receiver can read', async () => {
  const workspace = await scene.workspace();
  await workspace.destination({ type: 'otel-collector', config: { endpoint: `${system.url}/names` } });
  await workspace.ask({ trace: { trace_name: `a${'🌤'.repeat(200)}`, span_name: '🌤'.repeat(200) } });
  const [span] = await scene.spansAt('/names');
  assert.equal(span.attributes['trace.name'], `a${'🌤'.repeat(127)}`);
  assert.equal(span.name, '🌤'.repeat(128));
});

test('privacy mode sends neither inputs nor outputs, and further details only where they are wanted', async () => {
  const workspace = await scene.workspace();
  const config = (path: string) => ({ type: 'otel-collector', config: { endpoint: system.url + path } });
  await workspace.destination({ ...config('/private'), privacy_mode: true });
  await workspace.destination({
    ...config('/detailed'),
    broadcast_generation_cost: true,
    broadcast_generation_identity: true,
    broadcast_generation_request_context: true,
  });
  await workspace.ask();
  const [[hidden], [detailed]] = await Promise.all([scene.spansAt('/private'), scene.spansAt('/detailed')]);
  assert.equal(hidden.attributes['gen_ai.input.messages'], undefined);
  assert.equal(hidden.attributes['gen_ai.output.messages'], undefined);
  assert.ok(Number(hidden.attributes['gen_ai.usage.output_tokens']) > 0);
  assert.ok(!system.at('/private')[0]!.body.includes('hello'));
  assert.match(detailed.attributes['gen_ai.output.messages'], /hello/);
  assert.equal(detailed.attributes['gatehouse.workspace.id'], workspace.id);
  assert.equal(detailed.attributes['gatehouse.api_key.hash'], workspace.key.hash);
  assert.equal(detailed.attributes['gatehouse.is_byok'], false);
  assert.equal(detailed.attributes['gatehouse.request.region'], 'global');
});

test('a webhook gets every record, after failures too', async () => {
  const workspace = await scene.workspace();
  const path = '/hook';
  let isDown = true;
  const destination = await workspace.destination({
    type: 'webhook',
    config: { url: system.url + path, method: 'PUT' },
  });
  system.answer = (request) => (request.path === path && isDown ? 503 : 200);
  const id = await workspace.ask();
  await oncePassed(
    () => system.at(path),
    (all) => all.length >= 1,
    'the first attempt',
  );
  const failing = await scene.deliveryIs(destination.id, ({ status }) => status === 'failing');
  assert.match(failing.last_error, /status 503/);
  assert.equal(failing.waiting, 1);
  isDown = false;
  const delivery = await scene.deliveryIs(destination.id, ({ delivered }) => delivered === 1);
  assert.deepEqual([delivery.status, delivery.waiting, delivery.dropped], ['delivering', 0, 0]);
  assert.equal(system.at(path).at(-1)!.method, 'PUT');
  assert.equal(system.spans(path).at(-1).attributes['gen_ai.response.id'], id);
  system.answer = () => 200;
});

test('a destination that never answers, or refuses, delays no request and shows its state', async () => {
  const workspace = await scene.workspace();
  const destination = (path: string) =>
    workspace.destination({ type: 'otel-collector', config: { endpoint: system.url + path } });
  const [silent, refusing, well] = [
    await destination('/silent'),
    await destination('/refusing'),
    await destination('/well'),
  ];
  system.answer = ({ path }) => (path === '/silent' ? null : path === '/refusing' ? 400 : 200);
  const ids = [await workspace.ask(), await workspace.ask()];
  const spans = await scene.spansAt('/well', 2);
  assert.deepEqual(spans.map(({ attributes }) => attributes['gen_ai.response.id']).toSorted(), ids.toSorted());
  const refused = await scene.deliveryIs(refusing.id, ({ dropped }) => dropped === 2);
  assert.match(refused.last_error, /status 400/);
  assert.equal((await scene.deliveryIs(well.id, ({ delivered }) => delivered === 2)).status, 'delivering');
  await oncePassed(
    () => system.at('/silent'),
    (all) => all.length > 0,
    'the silent one is asked',
  );
  system.answer = () => 200;
  gateway.clock.jump(16_000);
  const { last_error: error } = await scene.deliveryIs(silent.id, (each) => each.last_error !== null);
  assert.match(error, /15000 ms/);
  gateway.clock.jump(2_000);
  await scene.deliveryIs(silent.id, ({ delivered }) => delivered === 2);
});

test('a record that a destination refuses keeps no other from it', async () => {
  const workspace = await scene.workspace();
  const destinations = [
    await workspace.destination({ type: 'otel-collector', config: { endpoint: `${system.url}/picky` } }),
    await workspace.destination({ type: 'webhook', config: { url: `${system.url}/picky-hook` } }),
  ];
  system.answer = ({ path, body }) => (path.startsWith('/picky') && body.includes('poison') ? 413 : 200);
  const ask = (word: string) => workspace.ask({ session_id: word });
  await Promise.all(['a', 'b', 'poison', 'c', 'd', 'e', 'f'].map(ask));
  for (const { id } of destinations) {
    const delivery = await scene.deliveryIs(id, ({ delivered, dropped }) => delivered + dropped === 7);
    assert.deepEqual([delivery.delivered, delivery.dropped, delivery.waiting], [6, 1, 0]);
    assert.match(delivery.last_error, /status 413/);
  }
  for (const path of ['/picky', '/picky-hook']) {
    const accepted = system.at(path).filter(({ body }) => !body.includes('poison'));
    const sessions = accepted.flatMap(({ body }) => [
      ...body.matchAll(/"session\.id","value":\{"stringValue":"(\w+)"/g),
    ]);
    assert.deepEqual(sessions.map(([, session]) => session).toSorted(), ['a', 'b', 'c', 'd', 'e', 'f'], path);
  }
  system.answer = () => 200;
});

test('nothing is sent for a workspace that does not forward, for a disabled destination, or after its deletion', async () => {
  const quiet = await scene.workspace({ is_observability_broadcast_enabled: false });
  const loud = await scene.workspace();
  const create = (of: typeof quiet, path: string, more: object = {}) =>
    of.destination({ type: 'otel-collector', config: { endpoint: system.url + path }, ...more });
  await create(quiet, '/quiet');
  const off = await create(loud, '/off', { enabled: false });
  const gone = await create(loud, '/gone');
  await control.call('DELETE', `/observability/destinations/${gone.id}`);
  const last = await create(loud, '/last');
  await quiet.ask();
  await loud.ask();
  await scene.deliveryIs(last.id, ({ delivered }) => delivered === 1);
  for (const path of ['/quiet', '/off', '/gone']) assert.deepEqual(system.at(path), [], path);
  const enabled = await control.call('PATCH', `/observability/destinations/${off.id}`, { enabled: true });
  assert.equal(enabled.status, 200);
  await loud.ask();
  await scene.spansAt('/off');
});

test('keys, regions, rules and sampling choose the records of a destination', async () => {
  const workspace = await scene.workspace();
  const other = await control.keyIn(workspace.id, 'other');
  const create = (path: string, more: object) =>
    workspace.destination({ type: 'otel-collector', config: { endpoint: system.url + path }, ...more });
  const rule = (field: string, operator: string, value?: string | number) => ({
    groups: [{ rules: [{ field, operator, ...(value !== undefined && { value }) }] }],
  });
  await create('/other-key', { api_key_hashes: [other.hash] });
  await create('/europe', { regions: ['eu'] });
  await create('/with-session', { filter_rules: rule('session_id', 'exists') });
  await create('/says-hello', { filter_rules: rule('output', 'regex', '^.*hel+o') });
  await create('/expensive', { filter_rules: rule('total_cost', 'gt', 1) });
  await create('/sampled', { sampling_rate: 0.5 });
  const sessions = Array.from({ length: 16 }, (_, index) => `session ${index}`);
  for (const session of sessions) {
    await workspace.ask({ session_id: session });
    await workspace.ask({ session_id: session });
  }
  await workspace.ask();
  await other.ask({ model: 'test/a' });
  await scene.spansAt('/other-key');
  await scene.spansAt('/says-hello', 34);
  await scene.spansAt('/with-session', 32);
  assert.equal(system.spans('/other-key').length, 1);
  assert.equal(system.spans('/with-session').length, 32);
  for (const path of ['/europe', '/expensive']) assert.deepEqual(system.at(path), [], path);
  const counts = () => {
    const sampled = system.spans('/sampled').map(({ attributes }) => attributes['session.id']);
    return sessions.map((session) => sampled.filter((each) => each === session).length);
  };
  const found = await oncePassed(
    counts,
    (each) => each.includes(2) && !each.includes(1),
    'both requests of a session are sampled, or neither',
  );
  assert.ok(found.includes(0), 'half of the sessions');
});

test('a destination whose stored rules can no longer be used gets nothing, and the others continue', async () => {
  const workspace = await scene.workspace();
  const create = (path: string) =>
    workspace.destination({ type: 'otel-collector', config: { endpoint: system.url + path } });
  const [broken, sound] = [await create('/broken-rules'), await create('/sound-rules')];
  const rules = { groups: [{ rules: [{ field: 'total_cost', operator: 'gt', value: ' ' }] }] };
  await inDatabase(gateway, [
    `update destinations set filter_rules = '${JSON.stringify(rules)}' where id = '${broken.id}'`,
  ]);
  const path = (id: string) => `/observability/destinations/${id}`;
  assert.equal((await control.call('PATCH', path(sound.id), { privacy_mode: true })).status, 200);
  await workspace.ask();
  await scene.spansAt('/sound-rules');
  assert.deepEqual(system.at('/broken-rules'), []);
  assert.equal((await control.call('PATCH', path(broken.id), { filter_rules: null })).status, 200);
  await workspace.ask();
  await scene.spansAt('/broken-rules');
});
