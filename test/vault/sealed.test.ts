/** What protects stored secrets: keys, their rotation, and rows that are bound to their place. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { operatorAuthor } from '../../src/audit/index.ts';
import { sealedRows } from '../../src/sealed-rows.ts';
import { rotateInstallationKey, sweep } from '../../src/sealing/index.ts';
import { emptyFolder } from '../../src/testing/database/database.ts';
import { type GatewayOptions, startGateway } from '../../src/testing/gateway/gateway.ts';
import { checkVaults, rotateVaultKeys } from '../../src/vault/index.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { auditOf, partsOf, vaultOf } from './vault.ts';

/** A gateway whose vaults have secrets, and its database as the operator's commands open it. */
async function scene(t: TestContext, options: GatewayOptions = {}) {
  const gateway = await startGateway(t, options);
  const control = controlOf(gateway);
  const { id: otherId } = await control.made({ name: 'other', slug: 'other' });
  const [vault, other] = [vaultOf(gateway), vaultOf(gateway, (await control.keyIn(otherId, 'other')).token)];
  for (const name of ['a', 'b', 'c']) await vault.put(name, `value of ${name}`);
  await other.put('a', 'value of a');
  const parts = await partsOf(t, gateway);
  const { database } = parts();
  const { sealing: settings } = gateway.config;
  const problems = async () => (await checkVaults(parts())).unreadable.map(({ name, problem }) => [name, problem]);
  return { gateway, vault, other, otherId, database, settings, parts, problems };
}

const MOVED = /was altered, moved, or encrypted with another key/;

test('a row that was exchanged, renamed, bound to other hosts or altered does not decrypt, and no rotation covers it up', async (t) => {
  const { vault, database, parts, problems } = await scene(t);
  assert.deepEqual(await checkVaults(parts()), { checked: 4, unreadable: [] });
  const changesOfRows = [
    [`sealed = (select sealed from vault_secrets where name = 'b' limit 1)`, MOVED],
    [
      `sealed = (select sealed from vault_secrets s where s.name = 'a' and s.vault_id <> vault_secrets.vault_id)`,
      MOVED,
    ],
    [`name = 'renamed'`, MOVED],
    [`hosts = '{evil.test}'`, MOVED],
    [`hosts = hosts || '{evil.test}'`, MOVED],
    [`hosts = '{}'`, MOVED],
    [`sealed = set_byte(sealed, 24, get_byte(sealed, 24) # 255)`, MOVED],
    [`sealed = '\\x00'`, /unknown format/],
    [`sealed = overlay(sealed placing '\\x07' from 5)`, /needs version 7 of its key/],
    [`fingerprint = 'sha256:' || repeat('0', 64)`, /fingerprint is not that of its value/],
  ] as const;
  const [{ id: vaultId }] = (await database.query(`select vault_id as id from vault_secrets where name = 'b'`)) as [
    { id: string },
  ];
  for (const [change, message] of changesOfRows) {
    const [before] = await database.query<Json>(`select * from vault_secrets where name = 'a' and vault_id = $1`, [
      vaultId,
    ]);
    await database.query(`update vault_secrets set ${change} where name = 'a' and vault_id = $1`, [vaultId]);
    const [[name, problem], ...others] = (await problems()) as [[string, string], ...unknown[]];
    assert.deepEqual([name, others], [change.includes('renamed') ? 'renamed' : 'a', []], change);
    assert.match(problem, message, change);
    if (!change.includes('fingerprint')) {
      const rotating = rotateVaultKeys(parts(), null, operatorAuthor);
      await assert.rejects(rotating, (error: Error) => error.message.startsWith(`the secret ${name} of the vault`));
    }
    await database.query(`delete from vault_secrets where name in ('a', 'renamed') and vault_id = $1`, [vaultId]);
    const columns = [
      before.name,
      before.hosts,
      before.fingerprint,
      before.sealed,
      before.created_at,
      before.updated_at,
    ];
    await database.query('insert into vault_secrets values ($1, $2, $3, $4, $5, $6, $7)', [vaultId, ...columns]);
  }
  assert.deepEqual(await problems(), []);
  await vault.put('a', 'value of a');
});

test('exchanged data keys of two vaults are a clear refusal, and writing never replaces them', async (t) => {
  const { vault, other, database, problems } = await scene(t);
  const before = await vault.list();
  await database.query('update vaults v set data_key = (select data_key from vaults o where o.id <> v.id)');
  const write = { value: 'v', hosts: ['a.test'] };
  for (const one of [vault, other]) await one.refused(one.call('PUT', 'secrets/a', write), 503, /cannot be encrypted/);
  const seen = await problems();
  assert.deepEqual(
    seen.map(([name]) => name),
    [null, null],
  );
  for (const [, problem] of seen) assert.match(problem!, MOVED);
  assert.deepEqual(await vault.list(), before);
});

test('a rotated vault key gives every secret another fingerprint and keeps the rest', async (t) => {
  const { gateway, vault, other, otherId, parts, problems, database } = await scene(t);
  const [before, untouched] = [(await vault.list()).data, await other.list()];
  const [{ id }] = (await database.query('select workspace_id as id from vaults where workspace_id <> $1', [
    otherId,
  ])) as [{ id: string }];
  assert.deepEqual(await rotateVaultKeys(parts(), id, operatorAuthor), { vaults: 1, secrets: 3 });
  const after = (await vault.list()).data as Json[];
  assert.deepEqual(
    after.map(({ fingerprint: _, ...rest }) => rest),
    (before as Json[]).map(({ fingerprint: _, ...rest }) => rest),
  );
  assert.ok(after.every(({ fingerprint }, at) => fingerprint !== before[at].fingerprint));
  assert.deepEqual(await other.list(), untouched);
  assert.deepEqual(await problems(), []);
  assert.equal((await vault.put('a', 'value of a')).fingerprint, after[0].fingerprint);
  const [entry] = await auditOf(gateway, 'vault');
  assert.deepEqual(
    [entry.action, entry.before, entry.after],
    ['vault.rotated', { key_version: 1 }, { key_version: 2 }],
  );
  assert.equal(entry.actor.type, 'operator');
  assert.deepEqual(await rotateVaultKeys(parts(), null, operatorAuthor), { vaults: 2, secrets: 4 });
  assert.deepEqual(await problems(), []);
});

test('writes during rotations are neither lost nor left under an old key', async (t) => {
  const { vault, parts, problems } = await scene(t);
  const rotations = (async () => {
    for (let round = 0; round < 4; round++) await rotateVaultKeys(parts(), null, operatorAuthor);
  })();
  const writes = Array.from({ length: 24 }, (_, at) => vault.put(`w${at}`, `written ${at}`));
  await Promise.all([rotations, ...writes]);
  assert.deepEqual(await problems(), []);
  assert.equal((await vault.list()).data.length, 27);
});

test('rotations of the installation key and of the data keys cover vaults, whose fingerprints stay', async (t) => {
  const { vault, parts, problems, database, settings } = await scene(t);
  const before = await vault.list();
  const keys = async () =>
    (await database.query<{ key: Buffer }>('select data_key as key from vaults')).map(({ key }) => key);
  assert.equal(await rotateInstallationKey({ database, settings }), 'rotated');
  assert.deepEqual(await problems(), []);
  const sealed = await keys();
  const { sealing, log } = parts();
  assert.equal(await database.transaction((tx) => sealing.addKey(tx, 'vault')), 2);
  sealing.forget();
  assert.deepEqual(await sweep({ database, sealing, rows: sealedRows, log }), { resealed: 2, unreadable: 0, left: 0 });
  for (const [at, key] of (await keys()).entries()) assert.notDeepEqual(key, sealed[at]);
  assert.deepEqual(await problems(), []);
  assert.deepEqual(await vault.list(), before);
  assert.equal((await vault.put('a', 'value of a')).fingerprint, before.data[0].fingerprint);
});

test('a database restored from before a rotation is readable with the previous key only', async (t) => {
  const { parts, problems, database, settings } = await scene(t);
  const wrapped = await database.query<Json>('select * from sealing_keys');
  const canary = await database.query<Json>('select * from sealing_canary');
  await rotateInstallationKey({ database, settings });
  await database.query('update sealing_canary set sealed = $1', [canary[0].sealed]);
  for (const { purpose, version, wrapped: key } of wrapped) {
    await database.query('update sealing_keys set wrapped = $3 where purpose = $1 and version = $2', [
      purpose,
      version,
      key,
    ]);
  }
  assert.deepEqual(await problems(), []);
  rmSync(`${(settings.current as { path: string }).path}.previous`);
  for (const [, problem] of await problems()) assert.match(problem!, /is not the key that encrypted/);
  await assert.rejects(rotateVaultKeys(parts(), null, operatorAuthor), /is not the key that encrypted/);
});

test('while the sealing key cannot be read the first secret is 503, nothing is stored, and lists work', async (t) => {
  const file = path.join(emptyFolder(t), 'kek');
  const place = () => writeFileSync(file, Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 });
  place();
  const gateway = await startGateway(t, { env: { GATEHOUSE_KEK_FILE: file } });
  const vault = vaultOf(gateway);
  rmSync(file);
  const write = { value: 'v', hosts: ['a.test'] };
  await vault.refused(vault.call('PUT', 'secrets/a', write), 503, /cannot be encrypted on this machine/);
  assert.deepEqual(await vault.list(), { data: [], has_more: false });
  place();
  await vault.put('a', 'v');
  rmSync(file);
  const again = startGateway(t, { target: gateway.target, env: { GATEHOUSE_KEK_FILE: file } });
  await assert.rejects(again, /kek, which does not exist/);
});

test('a machine with another key stores no secrets in the vaults of the others', async (t) => {
  const env = (byte: number) => ({ GATEHOUSE_KEK: Buffer.alloc(32, byte).toString('base64') });
  const a = await startGateway(t, { env: env(1) });
  const b = await startGateway(t, { env: env(2), target: a.target });
  const [one, other] = [vaultOf(a), vaultOf(b)];
  const stored = await one.put('first', 'v');
  const write = { value: 'v', hosts: ['a.test'] };
  for (const name of ['first', 'second']) {
    await other.refused(other.call('PUT', `secrets/${name}`, write), 503, /cannot be encrypted on this machine/);
  }
  assert.deepEqual(await other.list(), { data: [stored], has_more: false });
  assert.equal((await other.call('DELETE', 'secrets/first')).status, 204);
});
