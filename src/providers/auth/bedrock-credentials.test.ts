/** AWS keys from files and a program of the test, never from the network. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { TestClock } from '../../testing/clock/clock.ts';
import { chainKeeper } from './bedrock-credentials.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-aws-'));
const started = path.join(folder, 'started');
const program = path.join(folder, 'keys.mjs');
const given = { ...process.env };

const HOUR_MS = 3_600_000;
/**
 * Far after real time, because the vendor's library uses the real clock: keys that it caches would count as expired.
 */
const BEGIN_MS = 4_000_000_000_000;

// Each run of the program returns other keys, valid for an hour of the test clock.
writeFileSync(
  program,
  `import { appendFileSync, readFileSync } from 'node:fs';
appendFileSync(${JSON.stringify(started)}, 'x');
const run = readFileSync(${JSON.stringify(started)}, 'utf8').length;
const Expiration = new Date(${BEGIN_MS} + run * ${HOUR_MS}).toISOString();
console.log(JSON.stringify({ Version: 1, AccessKeyId: 'AKID' + run, SecretAccessKey: 's', SessionToken: 't', Expiration }));
`,
);
writeFileSync(path.join(folder, 'config'), `[profile work]\ncredential_process = ${process.execPath} ${program}\n`);
writeFileSync(
  path.join(folder, 'credentials'),
  '[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = secret\n',
);
describe('AWS keys of this machine', () => {
  before(() => {
    for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
    Object.assign(process.env, {
      AWS_CONFIG_FILE: path.join(folder, 'config'),
      AWS_SHARED_CREDENTIALS_FILE: path.join(folder, 'credentials'),
      AWS_EC2_METADATA_DISABLED: 'true',
    });
  });

  after(() => {
    for (const name of Object.keys(process.env))
      if (name.startsWith('AWS_') && !(name in given)) delete process.env[name];
    Object.assign(process.env, given);
    rmSync(folder, { recursive: true });
  });

  const runs = () => readFileSync(started, 'utf8').length;

  test('keys of the environment take precedence over those of the credentials file', async () => {
    const clock = new TestClock(BEGIN_MS);
    const fromFile = await chainKeeper(undefined).token(clock);
    assert.equal(fromFile.accessKeyId, 'AKIDFILE');
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKIDENV', AWS_SECRET_ACCESS_KEY: 'secret' });
    assert.equal((await chainKeeper(undefined).token(clock)).accessKeyId, 'AKIDENV');
    delete process.env['AWS_ACCESS_KEY_ID'];
    delete process.env['AWS_SECRET_ACCESS_KEY'];
  });

  test('expiring keys are fetched once for many calls, and again before they expire', async () => {
    const clock = new TestClock(BEGIN_MS);
    const keeper = chainKeeper('work');
    const first = await Promise.all([keeper.token(clock), keeper.token(clock), keeper.token(clock)]);
    assert.deepEqual([...new Set(first.map((keys) => keys.accessKeyId))], ['AKID1']);
    assert.equal(runs(), 1);
    assert.deepEqual(await keeper.token(clock), { accessKeyId: 'AKID1', secretAccessKey: 's', sessionToken: 't' });
    clock.advance(HOUR_MS + 1);
    assert.equal((await keeper.token(clock)).accessKeyId, 'AKID2');
    assert.equal(runs(), 2);
  });

  test('keys that the service refused are fetched again', async () => {
    const clock = new TestClock(BEGIN_MS);
    const keeper = chainKeeper('work');
    const { accessKeyId } = await keeper.token(clock);
    keeper.forget();
    assert.notEqual((await keeper.token(clock)).accessKeyId, accessKeyId);
  });

  test('without keys the call fails', async () => {
    writeFileSync(path.join(folder, 'credentials'), '');
    await assert.rejects(async () => chainKeeper('absent').token(new TestClock(BEGIN_MS)));
  });
});
