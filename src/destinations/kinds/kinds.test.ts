/** The requests of each type, against those that the vendors document. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Outgoing } from '../../egress/index.ts';
import { type CollectedTraces, decodeTraces } from '../../testing/upstream/otlp-decoder.ts';
import { fullConfig, storedConfig } from '../config.ts';
import { type GenerationRecord, shownTo, sizeOf } from '../record.ts';
import { kindOf, TYPES } from './index.ts';

const SCENE = { now: Date.UTC(2026, 2, 4, 5, 6, 7), version: '1.2.3' };

const RECORD: GenerationRecord = {
  id: 'gen-1',
  workspaceId: 'w',
  keyId: 'k',
  region: 'global',
  keyName: 'team key/1',
  startedAt: Date.UTC(2026, 2, 4, 5, 6, 7),
  endedAt: Date.UTC(2026, 2, 4, 5, 6, 9),
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parentSpanId: null,
  traceName: 'a trace',
  spanName: null,
  sessionId: 'session-1',
  userId: 'user-1',
  operation: 'chat',
  requestedModel: 'acme/large',
  model: 'acme/large-2',
  provider: 'Acme',
  streamed: true,
  status: 200,
  error: null,
  cancelled: false,
  finishReason: 'stop',
  latencyMs: 250,
  usage: { prompt: 10, completion: 20, cacheRead: 4, cacheWrite: 0, reasoning: 5 },
  cost: 0.25,
  costDetails: { upstream: 0.2, cacheDiscount: null, isByok: true },
  identity: { organizationId: 'org_1', workspaceId: 'w', keyHash: 'ab', memberId: 'user_1' },
  context: { requestId: 'r', region: 'global', userAgent: 'curl', referer: null, title: 'app' },
  parameters: { temperature: 0.5 },
  metadata: { team: 'blue' },
  input: '{"messages":[{"role":"user","content":"hi"}]}',
  output: '{"completion":"hello","reasoning":null}',
};

const HEADERS = { 'x-custom': 'one' };

async function requestsOf(type: string, config: object, records = [RECORD]): Promise<Outgoing[]> {
  const kind = kindOf(type)!;
  const stored = storedConfig(kind, { ...config, headers: HEADERS });
  const requests = [...(await kind.requests(fullConfig(stored), records, SCENE))];
  for (const { headers } of requests) assert.equal(headers['x-custom'], 'one');
  return requests;
}

/** A request without its body, and its body. */
async function requestOf(type: string, config: object) {
  const [{ body, ...request }, ...more] = (await requestsOf(type, config)) as [Outgoing, ...Outgoing[]];
  assert.deepEqual(more, []);
  return { request, body: String(body) };
}

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

const OTLP: Record<string, { config: Record<string, string>; url: string; headers: Record<string, string> }> = {
  'otel-collector': {
    config: { endpoint: 'https://o.example/v1/traces' },
    url: 'https://o.example/v1/traces',
    headers: {},
  },
  webhook: { config: { url: 'https://w.example/hook' }, url: 'https://w.example/hook', headers: {} },
  langfuse: {
    config: { publicKey: 'pk-1', secretKey: 'sk-1' },
    url: 'https://us.cloud.langfuse.com/api/public/otel/v1/traces',
    headers: { authorization: basic('pk-1:sk-1'), 'x-langfuse-ingestion-version': '4' },
  },
  grafana: {
    config: { instanceId: '123', apiKey: 'glc_1', baseUrl: 'https://otlp-gateway-prod-eu-west-2.grafana.net/' },
    url: 'https://otlp-gateway-prod-eu-west-2.grafana.net/otlp/v1/traces',
    headers: { authorization: basic('123:glc_1') },
  },
  arize: {
    config: { apiKey: 'a', spaceKey: 's', modelId: 'm' },
    url: 'https://otlp.arize.com/v1/traces',
    headers: { 'arize-api-key': 'a', 'arize-space-id': 's', api_key: 'a', space_id: 's' },
  },
  braintrust: {
    config: { apiKey: 'a', projectId: 'p' },
    url: 'https://api.braintrust.dev/otel/v1/traces',
    headers: { authorization: 'Bearer a', 'x-bt-parent': 'project_id:p' },
  },
  sentry: {
    config: {
      dsn: 'https://abc123@o1.ingest.sentry.io/45',
      otlpEndpoint: 'https://o1.ingest.sentry.io/api/45/integration/otlp/v1/traces',
    },
    url: 'https://o1.ingest.sentry.io/api/45/integration/otlp/v1/traces',
    headers: { 'x-sentry-auth': 'sentry sentry_key=abc123' },
  },
};

/** These document, or recommend, Protocol Buffers. */
const PROTOBUF: typeof OTLP = {
  newrelic: {
    config: { licenseKey: 'l', region: 'eu' },
    url: 'https://otlp.eu01.nr-data.net/v1/traces',
    headers: { 'api-key': 'l' },
  },
  opik: {
    config: { apiKey: 'a', workspace: 'w', projectName: 'p' },
    url: 'https://www.comet.com/opik/api/v1/private/otel/v1/traces',
    headers: { authorization: 'a', 'comet-workspace': 'w', projectname: 'p' },
  },
  langsmith: {
    config: { apiKey: 'lsv2', project: 'p', workspaceId: 'w-1' },
    url: 'https://api.smith.langchain.com/otel/v1/traces',
    headers: { 'x-api-key': 'lsv2', 'langsmith-project': 'p', 'x-tenant-id': 'w-1' },
  },
  weave: {
    config: { apiKey: 'wb', entity: 'team', project: 'p', baseUrl: 'https://acme.wandb.io/traces' },
    url: 'https://acme.wandb.io/traces/otel/v1/traces',
    headers: { 'wandb-api-key': 'wb' },
  },
};

for (const [type, { config, url, headers }] of Object.entries(PROTOBUF)) {
  test(`${type} gets Protocol Buffers with its URL, headers and attributes, and an empty payload as a test`, async () => {
    const [{ body, ...request }] = (await requestsOf(type, config)) as [Outgoing];
    assert.deepEqual(request, {
      url,
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf', ...HEADERS, ...headers },
    });
    const [{ spans }] = decodeTraces(body as Buffer, 'application/x-protobuf') as [CollectedTraces];
    assert.equal(spans[0]!.traceId, RECORD.traceId);
    const kind = kindOf(type)!;
    const probe = await kind.probe(fullConfig(storedConfig(kind, config)), SCENE);
    assert.equal(probe.body.length, 0);
    assert.equal(probe.headers['x-test-connection'], 'true');
  });
}

/** The first span that a type gets for a record, and the attributes of its resource. */
async function spanFor(type: string, record: GenerationRecord = RECORD) {
  const { config } = { ...OTLP, ...PROTOBUF }[type]!;
  const [{ body, headers }] = (await requestsOf(type, config, [record])) as [Outgoing];
  const [{ resource, spans }] = decodeTraces(body as Buffer, headers['content-type']!) as [CollectedTraces];
  return { resource, attributes: spans[0]!.attributes };
}

test('langsmith gets contents, metadata, and the session as the thread of its run', async () => {
  const { attributes } = await spanFor('langsmith');
  assert.deepEqual([attributes['gen_ai.prompt'], attributes['gen_ai.completion']], [RECORD.input, RECORD.output]);
  assert.deepEqual([attributes['langsmith.span.kind'], attributes['langsmith.metadata.team']], ['llm', 'blue']);
  assert.equal(attributes['langsmith.metadata.session_id'], 'session-1');
  const embedding = await spanFor('langsmith', { ...RECORD, operation: 'embeddings', sessionId: null });
  assert.equal(embedding.attributes['langsmith.span.kind'], 'embedding');
  assert.equal(embedding.attributes['langsmith.metadata.session_id'], undefined);
});

test('weave gets its project as a resource, contents, and the session as a thread', async () => {
  const { resource, attributes } = await spanFor('weave');
  assert.deepEqual([resource['wandb.entity'], resource['wandb.project']], ['team', 'p']);
  assert.deepEqual([attributes['gen_ai.prompt'], attributes['wandb.thread_id']], [RECORD.input, 'session-1']);
});

test('langfuse and braintrust get metadata where they can be filtered', async () => {
  const langfuse = (await spanFor('langfuse')).attributes;
  assert.deepEqual([langfuse['langfuse.trace.name'], langfuse['langfuse.trace.metadata.team']], ['a trace', 'blue']);
  const { attributes } = await spanFor('braintrust');
  assert.deepEqual(JSON.parse(String(attributes['braintrust.metadata'])), RECORD.metadata);
  assert.deepEqual(JSON.parse(String(attributes['braintrust.input_json'])), [{ role: 'user', content: 'hi' }]);
  assert.deepEqual(JSON.parse(String(attributes['braintrust.output_json'])), [{ role: 'assistant', content: 'hello' }]);
});

test('newrelic gets no value beyond 4,095 characters, and no request beyond 1 MB', async () => {
  const input = JSON.stringify({ messages: [{ role: 'user', content: 'ü'.repeat(20_000) }] });
  const { attributes } = await spanFor('newrelic', { ...RECORD, input, metadata: { long: 'x'.repeat(9_000) } });
  assert.equal(String(attributes['gen_ai.input.messages']).length, 4_095);
  assert.equal(String(attributes['trace.metadata.long']).length, 4_095);
  const kind = kindOf('newrelic')!;
  const count = Math.ceil(kind.batchUnits / sizeOf(RECORD));
  const [{ body }] = (await requestsOf('newrelic', PROTOBUF['newrelic']!.config, Array(count).fill(RECORD))) as [
    Outgoing,
  ];
  assert.ok(body.length < 1_000_000, `${body.length}`);
});

test('langsmith gets no workspace unless there is one, and the project `main` by default', async () => {
  const [{ headers }] = (await requestsOf('langsmith', { apiKey: 'a' })) as [Outgoing];
  assert.deepEqual([headers['langsmith-project'], headers['x-tenant-id']], ['main', undefined]);
});

for (const [type, { config, url, headers }] of Object.entries(OTLP)) {
  test(`${type} gets OTLP with its URL and headers, and an empty payload as a test`, async () => {
    const { request, body } = await requestOf(type, config);
    assert.deepEqual(request, {
      url,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...HEADERS, ...headers },
    });
    const { resourceSpans } = JSON.parse(body);
    assert.equal(resourceSpans[0].scopeSpans[0].spans[0].traceId, RECORD.traceId);
    const kind = kindOf(type)!;
    const probe = await kind.probe(fullConfig(storedConfig(kind, config)), SCENE);
    assert.equal(String(probe.body), '{"resourceSpans":[]}');
    assert.equal(probe.headers['x-test-connection'], 'true');
    assert.equal(probe.url, url);
  });
}

test('arize gets attributes of OpenInference and the model as a resource', async () => {
  const { body } = await requestOf('arize', { apiKey: 'a', spaceKey: 's', modelId: 'm' });
  const [{ resource, scopeSpans }] = JSON.parse(body).resourceSpans;
  assert.ok(
    resource.attributes.some(
      ({ key, value }: never) => key === 'model_id' && (value as { stringValue: string }).stringValue === 'm',
    ),
  );
  const names = scopeSpans[0].spans[0].attributes.map(({ key }: { key: string }) => key);
  for (const name of ['openinference.span.kind', 'llm.token_count.total', 'input.value'])
    assert.ok(names.includes(name), name);
});

test('datadog gets spans of its own format', async () => {
  const { request, body } = await requestOf('datadog', { apiKey: 'dd', mlApp: 'app' });
  assert.equal(request.url, 'https://api.datadoghq.com/api/intake/llm-obs/v1/trace/spans');
  assert.equal(request.headers['dd-api-key'], 'dd');
  const { data } = JSON.parse(body);
  assert.equal(data.type, 'span');
  assert.equal(data.attributes.ml_app, 'app');
  const [span] = data.attributes.spans;
  assert.equal(span.parent_id, 'undefined');
  assert.equal(span.session_id, 'session-1');
  assert.equal(span.start_ns, RECORD.startedAt * 1e6);
  assert.equal(span.duration, 2e9);
  assert.deepEqual(span.meta.input, { messages: [{ role: 'user', content: 'hi' }] });
  assert.deepEqual(span.meta.output, { messages: [{ role: 'assistant', content: 'hello' }] });
  assert.deepEqual(span.metrics, { input_tokens: 10, output_tokens: 20, total_tokens: 30, time_to_first_token: 0.25 });
});

test('datadog gets metadata of plain values, and messages only for spans of models', async () => {
  const nested = { ...RECORD, provider: null, metadata: { team: { name: 'blue' }, none: null, size: 3 } };
  const [request] = await requestsOf('datadog', { apiKey: 'dd', mlApp: 'app' }, [
    nested,
    { ...RECORD, operation: 'embeddings' },
  ]);
  const [chat, embedding] = JSON.parse(String(request!.body)).data.attributes.spans;
  for (const value of Object.values(chat.meta.metadata)) assert.match(typeof value, /^(?:string|number|boolean)$/);
  assert.deepEqual([chat.meta.metadata.team, chat.meta.metadata.size], ['{"name":"blue"}', 3]);
  assert.deepEqual([embedding.meta.kind, embedding.meta.input], ['embedding', { value: 'hi' }]);
});

test('ramp gets events with tokens, cost and attribution, and an event without use as a test', async () => {
  const { request, body } = await requestOf('ramp', { apiKey: 'rmp' });
  assert.equal(request.url, 'https://api.ramp.com/developer/v1/ai-usage/unified');
  assert.equal(request.headers['authorization'], 'Bearer rmp');
  const { schema_version: version, events } = JSON.parse(body);
  assert.deepEqual([version, events.length], ['1.0', 1]);
  const [event] = events;
  assert.deepEqual([event.event_id, event.model, event.provider], ['gen-1', 'acme/large-2', 'Acme']);
  assert.equal(event.occurred_at, '2026-03-04T05:06:09.000Z');
  assert.deepEqual(event.usage, {
    ...{ input_tokens: 6, output_tokens: 20, cache_read_input_tokens: 4, cache_write_input_tokens: 0 },
    ...{ reasoning_output_tokens: 5, meters: [] },
  });
  assert.deepEqual([event.reported_cost.amount, event.reported_cost.currency], ['0.25', 'USD']);
  assert.deepEqual([event.attribution.user_id, event.attribution.tags.team], ['user-1', 'blue']);
  const cheap = await requestsOf('ramp', { apiKey: 'rmp' }, [{ ...RECORD, cost: 0.0000004 }]);
  assert.equal(JSON.parse(String(cheap[0]!.body)).events[0].reported_cost.amount, '0.0000004');
  const kind = kindOf('ramp')!;
  const own = fullConfig(storedConfig(kind, { apiKey: 'rmp', baseUrl: 'https://r.example/usage' }));
  const probe = await kind.probe(own, SCENE);
  assert.equal(probe.url, 'https://r.example/usage');
  const [test] = JSON.parse(String(probe.body)).events;
  assert.deepEqual([test.usage.input_tokens, test.reported_cost.amount], [0, '0']);
});

test('posthog gets a batch of $ai_generation events', async () => {
  const { request, body } = await requestOf('posthog', { apiKey: 'phc_1' });
  assert.equal(request.url, 'https://us.i.posthog.com/batch/');
  const { api_key: key, batch } = JSON.parse(body);
  assert.equal(key, 'phc_1');
  const [{ event, properties }] = batch;
  assert.equal(event, '$ai_generation');
  assert.equal(properties.distinct_id, 'user-1');
  assert.equal(properties.$ai_trace_id, RECORD.traceId);
  assert.deepEqual(properties.$ai_input, [{ role: 'user', content: 'hi' }]);
  assert.deepEqual(properties.$ai_output_choices, [{ role: 'assistant', content: 'hello' }]);
  assert.deepEqual([properties.$ai_input_tokens, properties.$ai_output_tokens, properties.$ai_latency], [10, 20, 2]);
  assert.deepEqual([properties.$ai_cache_read_input_tokens, properties.$ai_temperature], [4, 0.5]);
});

test('clickhouse gets an insert of JSON lines, the same token for the same records', async () => {
  const config = { host: 'https://c.example:8443', database: 'db', username: 'u', password: 'p' };
  const { request, body } = await requestOf('clickhouse', config);
  const url = new URL(request.url);
  assert.equal(url.origin, 'https://c.example:8443');
  assert.equal(url.searchParams.get('query'), 'insert into `db`.`SVC_TRACES` format JSONEachRow');
  assert.equal(request.headers['x-clickhouse-user'], 'u');
  assert.equal(request.headers['x-clickhouse-key'], 'p');
  assert.equal(JSON.parse(body).prompt_tokens, 10);
  assert.deepEqual((await requestOf('clickhouse', config)).request, request);
  assert.throws(() => storedConfig(kindOf('clickhouse')!, { ...config, table: 't`; drop' }), /config\.table/);
});

test('snowflake gets one statement with a bound text, and one request id for the same records', async () => {
  const { request, body } = await requestOf('snowflake', { account: 'eac52885.us-east-1', token: 't' });
  assert.match(
    request.url,
    /^https:\/\/eac52885\.us-east-1\.snowflakecomputing\.com\/api\/v2\/statements\?requestId=[0-9a-f-]{36}&retry=true$/,
  );
  assert.equal(request.headers['authorization'], 'Bearer t');
  assert.equal(request.headers['x-snowflake-authorization-token-type'], 'PROGRAMMATIC_ACCESS_TOKEN');
  const { statement, bindings, warehouse } = JSON.parse(body);
  assert.match(statement, /^insert into "SNOWFLAKE_LEARNING_DB"\."PUBLIC"\."SVC_TRACES"/);
  assert.equal(warehouse, 'COMPUTE_WH');
  assert.equal(JSON.parse(bindings[1].value)[0].generation_id, 'gen-1');
  assert.throws(() => storedConfig(kindOf('snowflake')!, { account: 'evil.example/', token: 't' }), /config\.account/);
});

test('s3 puts one signed object for each record, under the path of its template', async () => {
  const config = {
    ...{ bucketName: 'traces', accessKeyId: 'AKID', secretAccessKey: 'secret', region: 'eu-west-1' },
    pathTemplate: '{prefix}/{year}/{month}/{day}/{apiKeyName}',
  };
  const other = { ...RECORD, id: 'gen-2', spanId: 'aaaaaaaaaaaaaaaa' };
  const [first, second] = await requestsOf('s3', config, [RECORD, other]);
  const folder = 'https://traces.s3.eu-west-1.amazonaws.com/svc-traces/2026/03/04/team%20key_1'.replace('%20', '_');
  assert.equal(first!.url, `${folder}/${RECORD.traceId}-${RECORD.startedAt}-${RECORD.spanId}.json`);
  assert.notEqual(second!.url, first!.url);
  assert.equal(first!.method, 'PUT');
  assert.match(
    first!.headers['authorization']!,
    /^AWS4-HMAC-SHA256 Credential=AKID\/20260304\/eu-west-1\/s3\/aws4_request, SignedHeaders=.*, Signature=[0-9a-f]{64}$/,
  );
  assert.match(first!.headers['x-amz-content-sha256']!, /^[0-9a-f]{64}$/);
  assert.equal(JSON.parse(String(first!.body)).generation_id, 'gen-1');
  const [own] = await requestsOf('s3', { ...config, endpoint: 'https://minio.example:9000', sessionToken: 'token' });
  assert.ok(own!.url.startsWith('https://minio.example:9000/traces/svc-traces/'));
  assert.equal(own!.headers['x-amz-security-token'], 'token');
});

const CONFIGS: Record<string, object> = {
  ...Object.fromEntries(Object.entries({ ...OTLP, ...PROTOBUF }).map(([type, { config }]) => [type, config])),
  datadog: { apiKey: 'dd', mlApp: 'app' },
  posthog: { apiKey: 'phc_1' },
  ramp: { apiKey: 'rmp' },
  clickhouse: { host: 'https://c.example', database: 'db', username: 'u', password: 'p' },
  snowflake: { account: 'a', token: 't' },
  s3: { bucketName: 'traces', accessKeyId: 'AKID', secretAccessKey: 'secret' },
};

test('no type sends contents, or details that are not wanted, of a record that hides them', async () => {
  assert.deepEqual(Object.keys(CONFIGS).toSorted(), TYPES);
  const settings = { privacyMode: true, sendsCost: false, sendsIdentity: false, sendsRequestContext: false };
  const failed = { ...RECORD, error: { type: 'server', message: 'hello from the model' } };
  for (const [type, config] of Object.entries(CONFIGS)) {
    for (const { body } of await requestsOf(type, config, [shownTo(settings, failed)])) {
      for (const hidden of ['hello', '"hi"', 'org_1', 'user_1', 'curl'])
        assert.ok(!body.includes(hidden), `${type}: ${hidden}`);
    }
  }
});

test('every type of the interface has a kind', () => {
  assert.equal(TYPES.length, 17);
});

test('a member that would make a wrong request is refused with its path', () => {
  const s3 = { bucketName: 'bucket', accessKeyId: 'a', secretAccessKey: 's' };
  const sentry = { dsn: 'https://abc123@o1.ingest.sentry.io/45', otlpEndpoint: 'https://o1.ingest.sentry.io/traces' };
  const wrong: [string, object, RegExp][] = [
    ...['https://abc@a b/1', 'https://abc@/1', 'https://@host/1', 'https://abc@host/'].map(
      (dsn): [string, object, RegExp] => ['sentry', { ...sentry, dsn }, /^config\.dsn must be a DSN/],
    ),
    ['langfuse', { publicKey: 'a:b', secretKey: 's' }, /^config\.publicKey must .*without a colon/],
    ['grafana', { instanceId: '1\n2', apiKey: 'a' }, /^config\.instanceId/],
    ['s3', { ...s3, accessKeyId: 'a\nb' }, /^config\.accessKeyId must consist of ASCII/],
    [
      's3',
      { ...s3, pathTemplate: '{prefix}/{apikeyname}' },
      /^config\.pathTemplate must have no braces but .*\{apiKeyName\}/,
    ],
    ['s3', { ...s3, pathTemplate: '{prefix' }, /^config\.pathTemplate/],
    ...['?tenant=1', '#part', '/path?'].flatMap((end): [string, object, RegExp][] => [
      ['s3', { ...s3, endpoint: `https://s3.test/${end}` }, /^config\.endpoint must not have a query/],
      ['posthog', { apiKey: 'a', endpoint: `https://p.test${end}` }, /^config\.endpoint must not have a query/],
      ['datadog', { apiKey: 'a', mlApp: 'm', url: `https://d.test${end}` }, /^config\.url must not have a query/],
      [
        'clickhouse',
        { host: `https://c.test${end}`, database: 'd', username: 'u', password: 'p' },
        /^config\.host must/,
      ],
      ['grafana', { instanceId: '1', apiKey: 'a', baseUrl: `https://g.test${end}` }, /^config\.baseUrl must not have/],
    ]),
  ];
  for (const [type, config, message] of wrong) {
    assert.throws(() => storedConfig(kindOf(type)!, config as never), { status: 400, message }, JSON.stringify(config));
  }
});

test('a DSN with an unusable host makes requests all the same, because they go to the endpoint', async () => {
  const otlpEndpoint = 'https://o1.ingest.sentry.io/traces';
  for (const host of ['[', 'host:99999', '0x100000000']) {
    const [{ headers }] = (await requestsOf('sentry', { dsn: `https://abc123@${host}/45`, otlpEndpoint })) as [
      Outgoing,
    ];
    assert.equal(headers['x-sentry-auth'], 'sentry sentry_key=abc123');
  }
});

test('a header that the type sets itself is sent once, however the customer writes it', async () => {
  const kind = kindOf('langfuse')!;
  const headers = { Authorization: 'Bearer other', 'Content-Type': 'text/plain', 'X-Custom': 'one' };
  const stored = storedConfig(kind, { publicKey: 'p', secretKey: 's', headers });
  assert.deepEqual(Object.keys(stored.shown['headers']!), Object.keys(headers));
  const { headers: sent } = await kind.probe(fullConfig(stored), SCENE);
  const names = Object.keys(sent).map((name) => name.toLowerCase());
  assert.equal(new Set(names).size, names.length);
  assert.equal(sent['authorization'], `Basic ${Buffer.from('p:s').toString('base64')}`);
  assert.equal(sent['x-custom'], 'one');
});

test('null removes an optional member, and no other', () => {
  const kind = kindOf('s3')!;
  const config = {
    bucketName: 'bucket',
    accessKeyId: 'a',
    secretAccessKey: 's',
    sessionToken: 't',
    region: 'eu-west-1',
  };
  const before = storedConfig(kind, config);
  const { shown, secrets } = storedConfig(kind, { sessionToken: null, region: null }, before);
  assert.deepEqual(
    Object.keys(before.shown).filter((name) => !(name in shown)),
    ['sessionToken', 'region'],
  );
  assert.deepEqual(secrets, { secretAccessKey: 's' });
  for (const name of ['secretAccessKey', 'bucketName', 'prefix']) {
    assert.throws(() => storedConfig(kind, { [name]: null }, before), { status: 400, message: /must be a text/ }, name);
  }
});

test('secrets do not move to another host with an address that is added, removed or replaced, nor with an account', () => {
  const moves: [string, Record<string, string>, Record<string, string>][] = [
    [
      's3',
      { bucketName: 'bucket', accessKeyId: 'a', secretAccessKey: 's', sessionToken: 't' },
      { endpoint: 'https://else.test' },
    ],
    ['snowflake', { account: 'one', token: 't' }, { account: 'two' }],
    ['posthog', { apiKey: 'a' }, { endpoint: 'https://else.test' }],
  ];
  for (const [type, config, change] of moves) {
    const kind = kindOf(type)!;
    const before = storedConfig(kind, config);
    assert.throws(() => storedConfig(kind, change, before), { status: 400, message: /must be given again/ }, type);
    const masked = { ...before.shown, ...change };
    assert.throws(() => storedConfig(kind, masked, before), { status: 400, message: /must be given again/ }, type);
    const moved = storedConfig(kind, { ...config, ...change }, before);
    assert.deepEqual(moved.secrets, before.secrets);
    assert.deepEqual(storedConfig(kind, moved.shown, moved), moved, 'the same config moves nothing');
  }
});
