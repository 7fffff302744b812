/** The resource: validation, masks, encryption, connection tests, conflicts; and `@openrouter/sdk`, unmodified. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { TYPES } from '../../src/destinations/kinds/index.ts';
import { serviceDocument } from '../../src/service-document.ts';
import { wholeDatabase } from '../../src/testing/database/rows.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import type { Json } from '../workspaces/control.ts';
import { startScene } from './scene.ts';

const scene = await startScene({ after: (close) => after(close as () => Promise<void>) });
const { system, gateway, control } = scene;
const { call, refused } = control;
const PATH = '/observability/destinations';
const CANARY = 'canary-0123456789-abcdef';
const hook = (more: object = {}) => ({ name: 'hook', type: 'webhook', config: { url: system.url }, ...more });

test('secrets are masked in every answer, encrypted in the database, and kept when their mask is sent back', async () => {
  const headers = { authorization: `Bearer ${CANARY}`, 'x-short': 'canary-short' };
  const { status, body } = await call('POST', PATH, hook({ config: { url: `${system.url}/kept`, headers } }));
  assert.equal(status, 201, JSON.stringify(body));
  const { config, id } = body.data;
  assert.deepEqual(config, {
    url: `${system.url}/kept`,
    method: 'POST',
    headers: { authorization: '********cdef', 'x-short': '********' },
  });
  const probes = () => system.received.filter(({ path }) => path === '/kept');
  assert.equal(probes().at(-1)!.headers.authorization, `Bearer ${CANARY}`);
  const changed = await call('PATCH', `${PATH}/${id}`, { config: { ...config, method: 'PUT' } });
  assert.equal(changed.body.data.config.method, 'PUT');
  assert.deepEqual(probes().at(-1)!.headers['x-short'], 'canary-short');
  assert.equal(probes().at(-1)!.method, 'PUT');
  const before = probes().length;
  const same = await call('PATCH', `${PATH}/${id}`, { config: changed.body.data.config });
  assert.equal(same.status, 200);
  assert.equal(probes().length, before, 'an unchanged config needs no test');
  const answers = [body, changed.body, same.body, (await call('GET', PATH)).body, (await call('GET', '/audit')).body];
  for (const answer of answers) assert.ok(!JSON.stringify(answer).includes('canary'));
  const moved = { ...changed.body.data.config, url: 'https://elsewhere.test/kept' };
  await refused(
    call('PATCH', `${PATH}/${id}`, { config: moved, enabled: false }),
    400,
    /config\.headers\.[a-z-]+ must be given again/,
  );
  const anew = { ...moved, headers: { authorization: 'Bearer another' } };
  assert.equal((await call('PATCH', `${PATH}/${id}`, { config: anew, enabled: false })).status, 200);
  const rows = await wholeDatabase(gateway.target);
  assert.ok(!rows.includes('canary-'));
  await call('DELETE', `${PATH}/${id}`);
});

test('a destination is tested on request, also a disabled one, and the answer says why it failed', async () => {
  const config = { url: `${system.url}/asked`, headers: { 'x-secret': CANARY } };
  const made = await call('POST', PATH, hook({ name: 'asked', enabled: false, config }));
  const path = `${PATH}/${made.body.data.id}/test`;
  const asked = () => system.received.filter((each) => each.path === '/asked');
  assert.equal(asked().length, 0);
  assert.deepEqual((await call('POST', path)).body, { data: { accepted: true, error: null } });
  assert.equal(asked().at(-1)!.headers['x-secret'], CANARY);
  system.answer = () => 503;
  const { status, body } = await call('POST', path);
  system.answer = () => 200;
  assert.equal(status, 200);
  assert.deepEqual(body, { data: { accepted: false, error: 'the destination answered with status 503' } });
  await call('DELETE', `${PATH}/${made.body.data.id}`);
  await refused(call('POST', path), 404, /destination with this id/);
});

test('openapi.json has the config of every type, with what is required and secret', () => {
  const { schemas } = (serviceDocument() as Json).components;
  const types = schemas.DestinationConfig['$defs'];
  assert.deepEqual(Object.keys(types), TYPES);
  assert.deepEqual(types.langfuse.required, ['publicKey', 'secretKey']);
  assert.deepEqual(types.langfuse.properties.secretKey, { type: 'string', format: 'password' });
  assert.equal(types.langfuse.properties.baseUrl.default, 'https://us.cloud.langfuse.com');
  assert.deepEqual(types.webhook.properties.method.enum, ['POST', 'PUT']);
});

test('a wrong body is refused with the path of the field', async () => {
  const wrong: [object, RegExp][] = [
    [hook({ type: 'carrier-pigeon' }), /type must be one of/],
    [hook({ config: {} }), /config\.url is required/],
    [hook({ config: { url: 'nowhere' } }), /config\.url is not a URL/],
    [hook({ config: { url: 'http://192.0.2.1/' } }), /config\.url/],
    [hook({ config: { url: system.url, method: 'DELETE' } }), /config\.method must be one of POST, PUT/],
    [hook({ config: { url: system.url, secret: 'x' } }), /config\.secret is unknown/],
    [hook({ config: { url: system.url, headers: { host: 'x' } } }), /config\.headers\.host is set by the connection/],
    [hook({ config: { url: system.url, headers: { 'x-a': 'b\r\nc' } } }), /config\.headers\.x-a/],
    [hook({ config: { url: system.url, headers: { 'x-a': '********' } } }), /config\.headers\.x-a is masked/],
    [hook({ config: { url: system.url, headers: { constructor: '********' } } }), /headers\.constructor is masked/],
    [hook({ config: { url: system.url, headers: { 'x-a': 'b', 'X-A': 'c' } } }), /config\.headers\.X-A occurs twice/],
    [hook({ config: { url: `${system.url}/\0` } }), /U\+0000/],
    [hook({ sampling_rate: 0 }), /sampling_rate/],
    [hook({ regions: ['moon'] }), /regions/],
    [hook({ api_key_hashes: ['0'.repeat(64)] }), /api_key_hashes\[0\] is not a key/],
    [hook({ workspace_id: '00000000-0000-7000-8000-000000000000' }), /workspace_id/],
    [hook({ filter_rules: { groups: [{ rules: [{ field: 'model', operator: 'gt', value: 1 }] }] } }), /rules\[0\]/],
    [hook({ filter_rules: { groups: [{ rules: [{ field: 'model', operator: 'equals' }] }] } }), /value is required/],
    [hook({ filter_rules: { groups: [{ rules: [{ field: 'input', operator: 'regex', value: '(' }] }] } }), /RE2/],
    [
      hook({
        filter_rules: { enabled: false, groups: [{ rules: [{ field: 'input', operator: 'regex', value: '(' }] }] },
      }),
      /RE2/,
    ],
    ...[' ', '0x10', '1e999', 'many'].map((value): [object, RegExp] => [
      hook({ filter_rules: { groups: [{ rules: [{ field: 'total_cost', operator: 'gt', value }] }] } }),
      /rules\[0\]\.value must be a number/,
    ]),
  ];
  for (const [body, message] of wrong) await refused(call('POST', PATH, body), 400, message);
  await refused(call('GET', `${PATH}/none`), 404, /destination/);
});

test('a destination that fails its connection test is not saved, unless it is disabled', async () => {
  system.answer = () => 401;
  const error = await refused(call('POST', PATH, hook()), 400, /config did not pass the connection test: .*status 401/);
  assert.equal(error.code, 400);
  const { body } = await call('POST', PATH, hook({ enabled: false }));
  const { id } = body.data;
  await refused(call('PATCH', `${PATH}/${id}`, { enabled: true }), 400, /connection test/);
  await refused(call('POST', PATH, hook({ enabled: false })), 409, /name: is taken/);
  system.answer = () => 200;
  assert.equal((await call('PATCH', `${PATH}/${id}`, { enabled: true })).body.data.enabled, true);
  const other = await call('POST', PATH, hook({ name: 'other' }));
  await refused(call('PATCH', `${PATH}/${other.body.data.id}`, { name: 'hook' }), 409, /name: is taken/);
  for (const each of [id, other.body.data.id]) await call('DELETE', `${PATH}/${each}`);
});

test('@openrouter/sdk works unmodified', async () => {
  const client = new OpenRouter({ apiKey: MANAGEMENT_KEY, serverURL: gateway.api });
  // Its union of types has no members in common.
  const observability = client.observability as Json;
  const created = await observability.create({
    createObservabilityDestinationRequest: {
      name: 'by the sdk',
      type: 'otel-collector',
      config: { endpoint: `${system.url}/sdk`, headers: { 'x-key': 'secret' } },
      filterRules: { groups: [{ logic: 'or', rules: [{ field: 'model', operator: 'exists' }] }] },
    },
  });
  const { id } = created.data;
  assert.equal(created.data.type, 'otel-collector');
  const list = await observability.list({});
  const found = await observability.get({ id });
  assert.equal(found.data.name, 'by the sdk');
  assert.ok(JSON.stringify(list).includes(id));
  const updated = await observability.update({
    id,
    updateObservabilityDestinationRequest: { samplingRate: 0.25, regions: ['eu'] },
  });
  assert.equal(updated.data.samplingRate, 0.25);
  assert.deepEqual(updated.data.regions, ['europe']);
  assert.deepEqual(await observability.delete({ id }), { deleted: true });
});
