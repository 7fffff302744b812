/** Requests while the database is unreachable, through HTTP and with the real storage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { clientConfig, type Target } from '../../src/storage/connection.ts';
import { OUTAGE_GRACE_MS } from '../../src/storage/freshness.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { type Answer, create, installation, type KeyProcess, refused } from '../../src/testing/database/keys.ts';

/** Closes the one database to all connections, or opens it again; the server stays up for other tests. */
async function setReachable(target: Target, reachable: boolean): Promise<void> {
  assert.ok('socketFolder' in target && target.database);
  const client = new pg.Client(clientConfig({ socketFolder: target.socketFolder }));
  await client.connect();
  await client.query(`alter database ${target.database} allow_connections ${reachable}`);
  if (!reachable) {
    await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [target.database]);
  }
  await client.end();
}

/** Lets a request run while the clock of its process advances. */
async function whileTimePasses(gate: KeyProcess, request: Promise<Answer>): Promise<Answer> {
  let answer: Answer | undefined;
  const answered = request.then((each) => {
    answer = each;
  });
  await until(() => {
    gate.clock.advance(100);
    return answer;
  }, 'the request is answered');
  await answered;
  return answer ?? assert.fail();
}

test('without its database a gateway accepts cached keys for a while and gives others a retryable error', async (t) => {
  const { gate, keys, target } = await installation(t);
  const { hash, token } = await create(gate, keys, { name: 'known' });
  const { token: unread } = await create(gate, keys, { name: 'not read yet' });
  const { token: revoked, hash: revokedHash } = await create(gate, keys, { name: 'revoked' });
  await gate.call('PATCH', `/keys/${revokedHash}`, keys.management, { disabled: true });
  assert.equal((await gate.call('GET', '/key', token)).status, 200);
  refused(await gate.call('GET', '/key', revoked), 401, /disabled/);
  refused(await gate.call('GET', '/key', 'invented'), 401, /not known/);

  await setReachable(target, false);
  await until(() => {
    gate.database.query('select 1').catch(() => {});
    return !gate.database.up;
  }, 'the loss of the database is noticed');

  assert.equal((await gate.call('GET', '/key', token)).status, 200);
  refused(await gate.call('GET', '/key', revoked), 401, /disabled/);
  for (const unknown of [unread, 'invented', 'invented-now']) {
    const answer = await whileTimePasses(gate, gate.call('GET', '/key', unknown));
    refused(answer, 503, /cannot be checked/);
    assert.equal(answer.headers.get('retry-after'), '1');
    assert.deepEqual((answer.body.error as { metadata?: unknown }).metadata, { retryable: true, error_type: 'server' });
  }
  gate.clock.advance(OUTAGE_GRACE_MS);
  refused(await whileTimePasses(gate, gate.call('GET', '/key', token)), 503, /cannot be checked/);

  await setReachable(target, true);
  await until(() => {
    gate.clock.advance(100);
    return gate.database.up;
  }, 'the database is reached again');
  // The deleting key too: if time advanced during its lookup, the database would count as late.
  for (const known of [token, unread, keys.management]) {
    assert.equal((await gate.call('GET', '/key', known)).status, 200);
  }
  refused(await gate.call('GET', '/key', 'invented'), 401, /not known/);
  const answer = await whileTimePasses(gate, gate.call('DELETE', `/keys/${hash}`, keys.management));
  assert.equal(answer.status, 200);
  refused(await gate.call('GET', '/key', token), 401, /not known/);
});
