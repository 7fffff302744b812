/** Google machine identities and workload identity exchange, with servers of this test and no key file. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, beforeEach, describe, test } from 'node:test';
import { googleSigner } from '../../src/providers/auth/google-sign-in.ts';
import { SignInError, type UnsignedCall } from '../../src/providers/auth/sign.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { TestClock } from '../../src/testing/clock/clock.ts';
import { type RecordedRequest, startRecordingServer } from '../../src/testing/upstream/recording-server.ts';

const BEGIN_MS = 1_800_000_000_000;
const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-google-machine-'));
const given = { ...process.env };

let answer: (request: RecordedRequest) => unknown = () => 404;
const server = await startRecordingServer((request) => answer(request));

describe('Google machine identities', () => {
  beforeEach(() => {
    for (const name of ['GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_CLOUD_PROJECT']) delete process.env[name];
    // This folder holds no user's sign-in.
    Object.assign(process.env, {
      HOME: folder,
      CLOUDSDK_CONFIG: folder,
      GCE_METADATA_HOST: new URL(server.url).host,
      METADATA_SERVER_DETECTION: 'assume-present',
    });
    server.asked.length = 0;
  });

  after(async () => {
    for (const name of Object.keys(process.env)) if (!(name in given)) delete process.env[name];
    Object.assign(process.env, given);
    rmSync(folder, { recursive: true });
    await server.close();
  });

  function signer(options: Record<string, string> = {}, baseUrl = 'https://aiplatform.googleapis.com/v1') {
    return googleSigner({
      id: 'vertex',
      baseUrl,
      options: { project: 'cloud-project', ...options },
    } as unknown as Provider);
  }

  function call(clock: TestClock, credential: string | null = null): UnsignedCall {
    return { request: {} as UnsignedCall['request'], credential, clock };
  }

  test('a Google machine signs in once for many calls, and again when the token expires', async () => {
    let run = 0;
    answer = ({ path: asked }) => {
      if (!asked.startsWith('/computeMetadata/v1/instance/service-accounts/default/token')) return 404;
      run += 1;
      return { access_token: `machine-${run}`, expires_in: 3600, token_type: 'Bearer' };
    };
    const clock = new TestClock(Date.now());
    const machine = signer();
    const waiting = await Promise.all(Array.from({ length: 10 }, async () => machine.sign(call(clock))));
    assert.deepEqual(new Set(waiting.map(({ authorization }) => authorization)), new Set(['Bearer machine-1']));
    assert.equal(run, 1);
    const token = server.asked.find(({ path: asked }) => asked.includes('/token'))!;
    assert.equal(token.headers['metadata-flavor'], 'Google');
    clock.advance(2 * 3_600_000);
    assert.deepEqual(await machine.sign(call(clock)), { authorization: 'Bearer machine-2' });
  });

  test('the machine identity is sent to Google hosts only', async () => {
    assert.deepEqual(await signer({}, 'https://vertex.example.com/v1').sign(call(new TestClock(BEGIN_MS))), {});
    assert.equal(server.asked.length, 0);
  });

  test('a workload identity is exchanged for a token with the current proof in its file', async () => {
    const proof = path.join(folder, 'proof');
    writeFileSync(proof, 'first-proof');
    const document = JSON.stringify({
      type: 'external_account',
      audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/elsewhere',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: 'https://sts.googleapis.com/v1/token',
      credential_source: { file: proof },
    });
    let run = 0;
    answer = () => {
      run += 1;
      return {
        access_token: `exchanged-${run}`,
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        token_type: 'Bearer',
        expires_in: 3600,
      };
    };
    const clock = new TestClock(Date.now());
    const elsewhere = signer({ sign_in_url: server.url });
    const waiting = await Promise.all(Array.from({ length: 5 }, async () => elsewhere.sign(call(clock, document))));
    assert.deepEqual(new Set(waiting.map(({ authorization }) => authorization)), new Set(['Bearer exchanged-1']));
    assert.equal(server.asked.length, 1);
    const form = new URLSearchParams(server.asked[0]!.body);
    assert.equal(form.get('grant_type'), 'urn:ietf:params:oauth:grant-type:token-exchange');
    assert.equal(form.get('subject_token'), 'first-proof');
    writeFileSync(proof, 'second-proof');
    clock.advance(2 * 3_600_000);
    assert.deepEqual(await elsewhere.sign(call(clock, document)), { authorization: 'Bearer exchanged-2' });
    assert.equal(new URLSearchParams(server.asked.at(-1)!.body).get('subject_token'), 'second-proof');
  });

  test('a failing token server is a provider outage whose message quotes nothing that was sent', async () => {
    answer = () => 503;
    const failed = await Promise.resolve(signer().sign(call(new TestClock(BEGIN_MS)))).then(
      () => undefined,
      (error: unknown) => error,
    );
    assert.ok(failed instanceof SignInError, String(failed));
    assert.equal(failed.failure.kind, 'server');
    assert.doesNotMatch(JSON.stringify(failed.failure), /127\.0\.0\.1|metadata/);
  });
});
