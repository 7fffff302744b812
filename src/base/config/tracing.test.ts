import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, loadConfig } from '../config.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

function load(env: Record<string, string>) {
  const readFile = () => {
    throw Object.assign(new Error(), { code: 'ENOENT' });
  };
  return loadConfig({ env, cwd: '/srv', kinds: [], readFile }).tracing;
}

function problem(env: Record<string, string>): string {
  try {
    load({ ...ENDPOINT, ...env });
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

test('traces are off without an endpoint, and where a variable turns them off', () => {
  assert.equal(load({ OTEL_TRACES_SAMPLER: 'nonsense', OTEL_SERVICE_NAME: 'x' }), null);
  assert.equal(load({ ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE', OTEL_TRACES_SAMPLER: 'nonsense' }), null);
  assert.equal(load({ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }), null);
});

test('an endpoint alone is enough', () => {
  assert.deepEqual(load(ENDPOINT), {
    url: 'http://collector:4318/v1/traces',
    headers: {},
    encoding: 'protobuf',
    timeoutMs: 10_000,
    sampler: { parentBased: true, ratio: 1 },
    propagates: true,
    resource: {},
  });
});

test('a base URL keeps its path, and variables for traces alone win', () => {
  assert.equal(load({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c/base/' })!.url, 'https://c/base/v1/traces');
  const settings = load({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://t/own',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=1',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'Authorization=Basic%20geheim==, x-b=2',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_PROPAGATORS: 'none',
    OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,team=a%2Cb',
    OTEL_SERVICE_NAME: 'gateway-eu',
  })!;
  const shown = Object.entries(settings.headers).map(([name, value]) => [name, value.reveal()]);
  assert.equal(settings.url, 'https://t/own');
  assert.deepEqual(shown, [
    ['authorization', 'Basic geheim=='],
    ['x-b', '2'],
  ]);
  assert.doesNotMatch(JSON.stringify(settings), /geheim/);
  assert.deepEqual([settings.encoding, settings.timeoutMs, settings.propagates], ['json', 500, false]);
  assert.deepEqual(settings.sampler, { parentBased: true, ratio: 0.25 });
  assert.deepEqual(settings.resource, { 'service.name': 'gateway-eu', team: 'a,b' });
});

test('a value that the gateway does not support is refused by the name of its variable, without the value', () => {
  const wrong: [Record<string, string>, RegExp][] = [
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4317' }, /OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL/],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://u:geheim@c' }, /OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be/],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /OTEL_EXPORTER_OTLP_PROTOCOL must be http\/protobuf or http\/json/],
    [{ OTEL_EXPORTER_OTLP_TIMEOUT: '0' }, /OTEL_EXPORTER_OTLP_TIMEOUT must be an integer/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'geheim' }, /OTEL_EXPORTER_OTLP_HEADERS must be a list of name=value: entry 1/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=geheim%0d%0a' }, /OTEL_EXPORTER_OTLP_HEADERS has a name or value/],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /OTEL_TRACES_EXPORTER must be otlp or none/],
    [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }, /OTEL_TRACES_SAMPLER must be always_on/],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
      /OTEL_TRACES_SAMPLER_ARG must be a share from 0 to 1/,
    ],
    [{ OTEL_PROPAGATORS: 'b3' }, /OTEL_PROPAGATORS must be a list of tracecontext and baggage/],
    [{ OTEL_RESOURCE_ATTRIBUTES: 'a=1,=geheim' }, /OTEL_RESOURCE_ATTRIBUTES must be a list of name=value: entry 2/],
  ];
  for (const [env, expected] of wrong) {
    const told = problem(env);
    assert.match(told, expected);
    assert.doesNotMatch(told, /geheim/);
  }
});
