import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { ConfigError, loadConfig, needsRestart } from '../config.ts';

function load(yaml: string, env: Record<string, string> = {}) {
  const inputs = { env: { ...env, GATEHOUSE_CONFIG: 'a.yaml' }, cwd: '/', cores: 1, readFile: () => yaml };
  return loadConfig({ kinds: [], ...inputs });
}

const read = (yaml: string, env?: Record<string, string>) => load(yaml, env).blobs.s3;

const KEYS = {
  GATEHOUSE_S3_ACCESS_KEY_ID: 'AKID',
  GATEHOUSE_S3_SECRET_ACCESS_KEY: 'secret-of-the-bucket',
};

test('blobs are on disk unless a bucket is configured', () => {
  assert.equal(read('limits: {}'), null);
  assert.equal(read('blobs: {}'), null);
  assert.equal(read('limits: {}', { AWS_REGION: 'eu-west-1' }), null);
});

test('a bucket of AWS needs only its name, and one of another service is in the path', () => {
  const usual = { bucket: 'files', region: 'us-east-1', endpoint: null, prefix: '', pathStyle: false, keys: null };
  assert.deepEqual(read('blobs: { s3: { bucket: files } }'), usual);
  assert.deepEqual(read('limits: {}', { GATEHOUSE_S3_BUCKET: 'files' }), usual);
  assert.equal(read('blobs: { s3: { bucket: files } }', { AWS_REGION: 'eu-west-1' })?.region, 'eu-west-1');
  const other = read('blobs: { s3: { bucket: files, endpoint: "http://minio:9000/" } }');
  assert.deepEqual([other?.endpoint, other?.pathStyle], ['http://minio:9000', true]);
});

test('the yaml file and the variables say the same', () => {
  const yaml = `blobs: { s3: { bucket: files, region: eu-1, endpoint: "https://s3.test", prefix: a/b/, path_style: false,
    access_key_id: AKID, secret_access_key: secret-of-the-bucket } }`;
  const fromYaml = read(yaml);
  const fromVariables = read('limits: {}', {
    GATEHOUSE_S3_BUCKET: 'files',
    GATEHOUSE_S3_REGION: 'eu-1',
    GATEHOUSE_S3_ENDPOINT: 'https://s3.test/',
    GATEHOUSE_S3_PREFIX: 'a/b/',
    GATEHOUSE_S3_PATH_STYLE: 'off',
    ...KEYS,
  });
  for (const s3 of [fromYaml, fromVariables]) {
    assert.equal(s3?.keys?.secretAccessKey.reveal(), 'secret-of-the-bucket');
    assert.doesNotMatch(inspect(s3) + JSON.stringify(s3), /secret-of/);
    const { keys, ...rest } = s3;
    assert.equal(keys.accessKeyId, 'AKID');
    assert.deepEqual(rest, {
      bucket: 'files',
      region: 'eu-1',
      endpoint: 'https://s3.test',
      prefix: 'a/b/',
      pathStyle: false,
    });
  }
});

test('a wrong value is named by its path or variable', () => {
  for (const [s3, message] of [
    ['{ region: eu-1 }', /blobs.s3 needs the member bucket/],
    ['{ bucket: Files }', /blobs.s3.bucket must be a bucket name/],
    ['{ bucket: files, prefix: /a }', /blobs.s3.prefix must be up to 255/],
    ['{ bucket: files, endpoint: "ftp://x" }', /blobs.s3.endpoint must be an http or https URL/],
    ['{ bucket: files, access_key_id: a }', /blobs.s3 needs access_key_id and secret_access_key together/],
  ] as const) {
    const isNamed = (error: unknown) => error instanceof ConfigError && message.test(error.message);
    assert.throws(() => read(`blobs: { s3: ${s3} }`), isNamed, s3);
  }
  for (const [env, message] of [
    [{ GATEHOUSE_S3_REGION: 'eu-1' }, /GATEHOUSE_S3_REGION needs GATEHOUSE_S3_BUCKET too/],
    [{ GATEHOUSE_S3_BUCKET: 'a b' }, /GATEHOUSE_S3_BUCKET must be a bucket name/],
    [{ GATEHOUSE_S3_BUCKET: 'files', GATEHOUSE_S3_PATH_STYLE: 'yes' }, /GATEHOUSE_S3_PATH_STYLE must be on or off/],
    [{ GATEHOUSE_S3_BUCKET: 'files', GATEHOUSE_S3_ENDPOINT: 'http://u:p@x' }, /GATEHOUSE_S3_ENDPOINT must be/],
    [{ GATEHOUSE_S3_BUCKET: 'files', GATEHOUSE_S3_ACCESS_KEY_ID: 'a' }, /must be set together/],
  ] as const) {
    const isNamed = (error: unknown) => error instanceof ConfigError && message.test(error.message);
    assert.throws(() => read('limits: {}', env as Record<string, string>), isNamed, JSON.stringify(env));
  }
  const both = () => read('blobs: { s3: { bucket: one } }', { GATEHOUSE_S3_BUCKET: 'two' });
  assert.throws(both, /GATEHOUSE_S3_BUCKET and blobs.s3 of the yaml file are both set/);
});

test('another bucket or secret needs a restart', () => {
  const env = { GATEHOUSE_S3_BUCKET: 'files', ...KEYS };
  const running = load('limits: {}', env);
  assert.deepEqual(needsRestart(running, load('limits: {}', env)), []);
  for (const change of [{ GATEHOUSE_S3_BUCKET: 'other' }, { GATEHOUSE_S3_SECRET_ACCESS_KEY: 'new' }]) {
    assert.deepEqual(needsRestart(running, load('limits: {}', { ...env, ...change })), ['blobs']);
  }
});
