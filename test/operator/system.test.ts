/** The state of the installation as operations tell it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };
import { MANAGEMENT_KEY, startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';

interface Listed {
  data: Record<string, unknown>[];
}

test('a gateway lists its processes and the findings of the doctor, without secrets', async (t) => {
  const one = await startGateway(t, { providers: { acme: {} } });
  const two = await startGateway(t, { providers: { acme: {} }, target: one.target });
  const read = async (path: string) => {
    const reply = await one.get(path, MANAGEMENT_KEY);
    assert.equal(reply.status, 200);
    const text = await reply.text();
    for (const secret of [UPSTREAM_KEY, MANAGEMENT_KEY]) assert.ok(!text.includes(secret));
    return (JSON.parse(text) as Listed).data;
  };
  const processes = await read('/system/processes');
  assert.deepEqual(
    processes.map(({ state, version, is_this }) => [state, version, is_this]),
    [
      ['live', manifest.version, true],
      ['live', manifest.version, false],
    ],
  );
  assert.ok(processes.every(({ started_at, seen_at }) => started_at !== null && seen_at !== null));
  await two.close();
  assert.equal((await read('/system/processes')).length, 1);

  const findings = await read('/system/findings');
  const areas = new Set(findings.map(({ area }) => area));
  for (const area of ['configuration', 'machine', 'data folder', 'database', 'keys', 'module'])
    assert.ok(areas.has(area));
  assert.ok(!areas.has('provider'));
  one.upstream.script('acme', { status: 401, repeat: true });
  const online = await read('/system/findings?online=true');
  assert.deepEqual(
    online.filter(({ area }) => area === 'provider').map(({ level }) => level),
    ['fault'],
  );
});
