/** The value of a secret is in no answer, log line, row, audit entry or metric, whatever is asked and whatever goes wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { secretForms } from '../../src/base/secret-forms.ts';
import { wholeDatabase } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { inDatabase } from '../workspaces/control.ts';

const CANARY = 'canary-0123456789 "of" a customer é';
/** In any encoding, and in the hexadecimal of a bytea column. */
const TRACES = [...secretForms(CANARY), 'canary-0123', Buffer.from('canary-0123').toString('hex')];

test('in no operation of the vault, right or wrong', async (t) => {
  const lines: string[] = [];
  const log = createLog({ stream: { write: (line: string) => lines.push(line) > 0 } as never, level: 'debug' });
  const gateway = await startGateway(t, { log });
  const told: string[] = [];
  const send = async (method: string, route: string, body?: string, token = INFERENCE_KEY) => {
    const response = await fetch(gateway.api + route, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
    });
    told.push(`${method} ${JSON.stringify([...response.headers])} ${await response.text()}`);
    return response.status;
  };
  const write = (more: object = {}) => JSON.stringify({ value: CANARY, hosts: ['api.test'], ...more });
  const route = '/vault/secrets/token';
  const attempts: [number, string, string, string?, string?][] = [
    [200, 'PUT', route, write()],
    [200, 'PUT', route, write()],
    [200, 'PUT', route, write({ hosts: ['other.test'] })],
    [400, 'PUT', route, write({ hosts: [CANARY] })],
    [400, 'PUT', route, write({ hosts: [] })],
    [400, 'PUT', route, write({ value: { inside: CANARY } })],
    [400, 'PUT', route, write({ value: [CANARY] })],
    [400, 'PUT', route, write({ value: CANARY.repeat(2_500) })],
    [400, 'PUT', route, write({ value: `${CANARY}\0` })],
    [400, 'PUT', route, write({ unknown: CANARY })],
    [413, 'PUT', route, write().padEnd(430_000)],
    [400, 'PUT', route, `{"value":"${CANARY}"`],
    [400, 'PUT', route, `${CANARY}{}`],
    [400, 'PUT', `/vault/secrets/${encodeURIComponent(CANARY)}`, write()],
    [400, 'PUT', `${route}?value=${encodeURIComponent(CANARY)}`, write()],
    [403, 'PUT', route, write(), MANAGEMENT_KEY],
    [401, 'PUT', route, write(), 'sk-wrong'],
    [400, 'POST', '/vault/interns/x/secrets/copy', write()],
    [404, 'PUT', '/vault/interns/x/secrets/token', write()],
    [405, 'POST', route, write()],
    [200, 'GET', '/vault/secrets'],
    [200, 'GET', '/audit?limit=100', undefined, MANAGEMENT_KEY],
    [200, 'GET', '/../../metrics', undefined, MANAGEMENT_KEY],
  ];
  const seen: number[] = [];
  for (const [, ...attempt] of attempts) seen.push(await send(...attempt));
  assert.deepEqual(
    seen,
    attempts.map(([status]) => status),
  );
  // The database refuses a row and quotes its values, or has lost a column.
  await inDatabase(gateway, [`alter table vault_secrets add constraint no_boom check (name <> 'boom')`]);
  assert.equal(await send('PUT', '/vault/secrets/boom', write()), 500);
  assert.ok(lines.some((line) => line.includes('no_boom')));
  await inDatabase(gateway, ['alter table vault_secrets rename column fingerprint to gone']);
  for (const method of ['GET', 'PUT']) {
    assert.equal(
      await send(method, method === 'GET' ? '/vault/secrets' : route, method === 'PUT' ? write() : undefined),
      500,
    );
  }
  await inDatabase(gateway, [
    'alter table vault_secrets rename column gone to fingerprint',
    `update vaults set data_key = set_byte(data_key, 29, get_byte(data_key, 29) # 255)`,
  ]);
  assert.equal(await send('PUT', route, write()), 503);
  assert.equal(await send('DELETE', route), 204);
  log.flush();
  const everything = [
    ...told,
    ...lines,
    await wholeDatabase(gateway.target),
    JSON.stringify(await gateway.app.report()),
  ];
  for (const text of everything) {
    for (const trace of TRACES) assert.ok(!text.includes(trace), `${trace} in ${text.slice(0, 500)}`);
  }
});
