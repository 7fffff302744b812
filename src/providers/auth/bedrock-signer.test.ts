/** AWS signatures, compared with AWS's published examples and with an implementation in the test. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TestClock } from '../../testing/clock/clock.ts';
import { samples } from '../../testing/laws/samples.ts';
import { signatureFault } from '../../testing/upstream/aws-signature.ts';
import { bedrock } from '../kinds/bedrock.ts';
import type { Provider } from '../provider.ts';
import type { UpstreamRequest } from '../send/index.ts';
import { awsSigner, signatureOf } from './bedrock-signer.ts';
import { SignInError } from './sign.ts';

const TIMEOUTS = { connect: 1, firstByte: 1, idle: 1, stall: 1, total: 1 };
const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };

function clockAt(iso: string): TestClock {
  return new TestClock(Date.parse(iso));
}

function request(url: string, body = '', headers: Record<string, string> = {}, method?: 'GET'): UpstreamRequest {
  return { url, body, headers, timeouts: TIMEOUTS, ...(method && { method }) };
}

test('the documented signature examples are reproduced', async () => {
  // docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
  const keys = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' };
  const scope = { region: 'us-east-1', service: 's3', clock: clockAt('2013-05-24T00:00:00Z') };
  const examples: [string, Record<string, string>, string][] = [
    ['/test.txt', { range: 'bytes=0-9' }, 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41'],
    ['/?lifecycle', {}, 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'],
    ['/?max-keys=2&prefix=J', {}, '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
  ];
  for (const [path, headers, signature] of examples) {
    const call = request(`https://examplebucket.s3.amazonaws.com${path}`, '', headers, 'GET');
    const signed = await signatureOf(call, keys, scope);
    assert.match(signed['authorization']!, new RegExp(`Signature=${signature}$`), path);
    assert.equal(signed['x-amz-date'], '20130524T000000Z');
  }
});

test('every call is signed over method, path, headers and body, as an upstream computes it', async () => {
  const models = fc.constantFrom(
    'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-pro-v1:0',
    "odd id/with (all) that's left!*",
  );
  const tokens = fc.option(fc.constant('FwoGZXIvYXdzEXAMPLE=='), { nil: undefined });
  await fc.assert(
    fc.asyncProperty(
      models,
      fc.string({ unit: 'grapheme' }),
      fc.boolean(),
      tokens,
      async (model, body, bytes, token) => {
        const path = `/model/${encodeURIComponent(model)}/converse`;
        const call = request(`http://127.0.0.1:8080${path}`, body, { 'content-type': 'application/json' });
        const sent = bytes ? { ...call, body: Buffer.from(body) } : call;
        const keys = { ...KEYS, ...(token !== undefined && { sessionToken: token }) };
        const scope = { region: 'eu-west-1', service: 'bedrock', clock: clockAt('2026-03-01T10:00:00Z') };
        const signed = await signatureOf(sent, keys, scope);
        assert.equal(signed['x-amz-security-token'], token);
        assert.equal('host' in signed, false);
        const received = {
          method: 'POST',
          path,
          headers: { ...sent.headers, ...signed, host: '127.0.0.1:8080' },
          body: Buffer.from(body),
        };
        const known = { [KEYS.accessKeyId]: KEYS.secretAccessKey };
        assert.equal(signatureFault(received, known, scope), null);
        const changed = { ...received, body: Buffer.from(`${body} `) };
        assert.notEqual(signatureFault(changed, known, scope), null);
      },
    ),
    { numRuns: samples(60) },
  );
});

function provider(options: Record<string, string>, baseUrl: string): Provider {
  return {
    id: 'b',
    name: 'B',
    kind: bedrock,
    baseUrl,
    options,
    credentials: [],
    timeouts: TIMEOUTS,
    maxConcurrency: 1,
  };
}

test('a bearer key adds no signature, a key document signs for the region of the option or the URL', async () => {
  const clock = clockAt('2026-03-01T10:00:00Z');
  const document = JSON.stringify(KEYS);
  const regionOf = async (options: Record<string, string>, baseUrl: string) => {
    const call = { request: request(`${baseUrl}/model/m/converse`), credential: document, clock };
    const { authorization } = await awsSigner(provider(options, baseUrl)).sign(call);
    return /Credential=AKIDEXAMPLE\/\d+\/([^/]+)\/bedrock/.exec(authorization!)?.[1];
  };
  assert.equal(await regionOf({ region: 'eu-west-1' }, 'http://127.0.0.1:1'), 'eu-west-1');
  assert.equal(await regionOf({}, 'https://bedrock-runtime.ap-southeast-2.amazonaws.com'), 'ap-southeast-2');
  assert.equal(await regionOf({}, 'https://vpce-1.bedrock-runtime.us-gov-west-1.vpce.amazonaws.com'), 'us-gov-west-1');
  const bearer = awsSigner(provider({}, 'http://127.0.0.1:1'));
  const call = { request: request('http://127.0.0.1:1/x'), credential: 'bedrock-api-key-abc', clock };
  assert.deepEqual(await bearer.sign(call), {});
  assert.deepEqual(bedrock.headers('bedrock-api-key-abc')['authorization'], 'Bearer bedrock-api-key-abc');
  assert.equal(bedrock.headers(document)['authorization'], undefined);
});

test('a document without keys is an invalid credential and is not shown', () => {
  const signer = awsSigner(provider({ region: 'us-east-1' }, 'http://127.0.0.1:1'));
  const clock = clockAt('2026-03-01T10:00:00Z');
  for (const credential of ['{"accessKeyId":"AKIDEXAMPLE"}', '{secret-of-mine']) {
    assert.throws(
      () => signer.sign({ request: request('http://127.0.0.1:1/x'), credential, clock }),
      (error: unknown) =>
        error instanceof SignInError && error.failure.kind === 'auth' && !/AKID|mine/.test(error.message),
    );
  }
});

test('the base URL follows the region', () => {
  const address = bedrock.baseUrl as (options: Record<string, string>) => string;
  assert.equal(address({ region: 'eu-central-1' }), 'https://bedrock-runtime.eu-central-1.amazonaws.com');
  assert.equal(address({ region: 'cn-north-1' }), 'https://bedrock-runtime.cn-north-1.amazonaws.com.cn');
});
