/** AWS keys from servers: web identity, containers and machines, all simulated by this test. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, beforeEach, describe, test } from 'node:test';
import { chainKeeper } from '../../src/providers/auth/bedrock-credentials.ts';
import { TestClock } from '../../src/testing/clock/clock.ts';
import { type RecordedRequest, startRecordingServer } from '../../src/testing/upstream/recording-server.ts';

const BEGIN_MS = 4_000_000_000_000;
const HOUR_MS = 3_600_000;
const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-aws-machine-'));
const given = { ...process.env };

let answer: (request: RecordedRequest) => unknown = () => 404;
const server = await startRecordingServer((request) => answer(request));

describe('AWS keys from servers', () => {
  beforeEach(() => {
    for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
    Object.assign(process.env, {
      AWS_CONFIG_FILE: path.join(folder, 'config'),
      AWS_SHARED_CREDENTIALS_FILE: path.join(folder, 'credentials'),
      AWS_REGION: 'eu-west-1',
    });
    server.asked.length = 0;
  });

  after(async () => {
    for (const name of Object.keys(process.env)) if (!(name in given)) delete process.env[name];
    Object.assign(process.env, given);
    rmSync(folder, { recursive: true });
    await server.close();
  });

  const endsAt = (hours: number) => new Date(BEGIN_MS + hours * HOUR_MS).toISOString();
  const keysOf = (name: string, hours = 1) => ({
    Code: 'Success',
    AccessKeyId: name,
    SecretAccessKey: 's',
    Token: 't',
    Expiration: endsAt(hours),
  });

  test('a web identity is exchanged for keys with the current token in its file', async () => {
    const file = path.join(folder, 'token');
    writeFileSync(file, 'first-identity');
    Object.assign(process.env, {
      AWS_WEB_IDENTITY_TOKEN_FILE: file,
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/gateway',
      AWS_ENDPOINT_URL_STS: server.url,
    });
    let run = 0;
    answer = () => {
      run += 1;
      return `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
      <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>AKIDWEB${run}</AccessKeyId>
      <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${endsAt(run)}</Expiration>
      </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`;
    };
    const clock = new TestClock(BEGIN_MS);
    const keeper = chainKeeper(undefined);
    const waiting = await Promise.all(Array.from({ length: 10 }, () => keeper.token(clock)));
    assert.deepEqual(new Set(waiting.map(({ accessKeyId }) => accessKeyId)), new Set(['AKIDWEB1']));
    assert.equal(server.asked.length, 1);
    const form = new URLSearchParams(server.asked[0]!.body);
    assert.equal(form.get('Action'), 'AssumeRoleWithWebIdentity');
    assert.equal(form.get('WebIdentityToken'), 'first-identity');
    assert.equal(form.get('RoleArn'), 'arn:aws:iam::123456789012:role/gateway');
    writeFileSync(file, 'second-identity');
    clock.advance(HOUR_MS + 1);
    assert.equal((await keeper.token(clock)).accessKeyId, 'AKIDWEB2');
    assert.equal(new URLSearchParams(server.asked[1]!.body).get('WebIdentityToken'), 'second-identity');
  });

  test('container keys are fetched once for many calls, and again five minutes before they expire', async () => {
    Object.assign(process.env, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url}/keys`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'container-token',
    });
    let run = 0;
    answer = () => {
      run += 1;
      return keysOf(`AKIDBOX${run}`, run);
    };
    const clock = new TestClock(BEGIN_MS);
    const keeper = chainKeeper(undefined);
    assert.equal((await keeper.token(clock)).accessKeyId, 'AKIDBOX1');
    assert.deepEqual([server.asked[0]!.path, server.asked[0]!.headers.authorization], ['/keys', 'container-token']);
    clock.advance(HOUR_MS - 6 * 60_000);
    await keeper.token(clock);
    assert.equal(server.asked.length, 1, 'six minutes before their end they are kept');
    clock.advance(2 * 60_000);
    assert.equal((await keeper.token(clock)).accessKeyId, 'AKIDBOX1', 'no call waits for the new ones');
    for (let turns = 0; turns < 1000 && (await keeper.token(clock)).accessKeyId !== 'AKIDBOX2'; turns++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal((await keeper.token(clock)).accessKeyId, 'AKIDBOX2');
    assert.equal(server.asked.length, 2);
  });

  test('the keys of a machine role come from version 2 of the metadata service, with a token', async () => {
    process.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] = server.url;
    answer = ({ method, path: asked }) => {
      if (method === 'PUT') return asked === '/latest/api/token' ? 'metadata-token' : 404;
      if (asked === '/latest/meta-data/iam/security-credentials/') return 'gateway-role';
      return asked === '/latest/meta-data/iam/security-credentials/gateway-role' ? keysOf('AKIDMACHINE') : 404;
    };
    const keys = await chainKeeper(undefined).token(new TestClock(BEGIN_MS));
    assert.deepEqual(keys, { accessKeyId: 'AKIDMACHINE', secretAccessKey: 's', sessionToken: 't' });
    const reads = server.asked.filter(({ method }) => method === 'GET');
    assert.deepEqual(
      new Set(reads.map(({ headers }) => headers['x-aws-ec2-metadata-token'])),
      new Set(['metadata-token']),
    );
  });

  test('a failing key server fails the waiting calls, and the next call tries again', async () => {
    process.env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = `${server.url}/keys`;
    answer = () => 500;
    const clock = new TestClock(BEGIN_MS);
    const keeper = chainKeeper(undefined);
    await assert.rejects(async () => keeper.token(clock));
    answer = () => keysOf('AKIDBACK');
    assert.equal((await keeper.token(clock)).accessKeyId, 'AKIDBACK');
  });
});
