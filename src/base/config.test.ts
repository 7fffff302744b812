// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the configuration's own notation
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import {
  type Config,
  ConfigError,
  type KindFacts,
  loadConfig,
  needsRestart,
  VARIABLES,
  variableTable,
} from './config.ts';

/** The same three sorts of kinds that exist in `providers/`, written by hand: base must not know that folder. */
const kinds: KindFacts[] = [
  {
    id: 'openai',
    name: 'OpenAI',
    environment: 'OPENAI_API_KEY',
    baseUrl: 'https://api.openai.com/v1',
    author: 'openai',
    speaks: 'chat',
    alsoSpeaks: ['responses'],
  },
  { id: 'chat', name: 'Chat Completions API', speaks: 'chat' },
  { id: 'messages', name: 'Messages API', speaks: 'messages' },
  {
    ...{ id: 'simulated', name: 'Simulated', speaks: 'chat', transport: {}, models: [] },
    standIn: true,
    standInSwitch: 'GATEHOUSE_SIMULATED',
  },
];

interface Given {
  env?: Record<string, string>;
  /** Content of gatehouse.yaml; absent: there is no such file. */
  yaml?: string;
  files?: Record<string, string>;
}

function load({ env = {}, yaml, files = {} }: Given = {}): Config {
  const all: Record<string, string> = { ...files, ...(yaml !== undefined && { '/srv/gatehouse.yaml': yaml }) };
  return loadConfig({
    env,
    cwd: '/srv',
    cores: 4,
    kinds,
    readFile(path) {
      const content = all[path];
      if (content === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
      return content;
    },
  });
}

function failure(given: Given): ConfigError {
  try {
    load(given);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: 'the configuration was accepted' });
}

/** The sample of the documentation, with every member. */
const SAMPLE = `\
account: { zdr: false, allow_training: true, allow_publication: true, allow_safety_retention: true, balance_usd: null }
hosts: { global: [], europe: [eu.example.com], us: [] }
trusted_proxies: [10.0.0.0/8, "::1"]
providers:
  - id: acme
    name: Acme
    kind: chat
    base_url: http://127.0.0.1:9000/v1
    api_key: \${ACME_API_KEY}
    timeouts: { connect: 5s, first_byte: 60s, idle: 500ms, total: 10m }
    max_concurrency: 500
    models:
      - id: acme/large
        upstream_id: large
        context_length: 200000
        max_completion_tokens: 32000
        pricing: { prompt: "0.000003", completion: "0.000015", input_cache_read: "0.0000003" }
        input_modalities: [text, image]
        supported_parameters: [tools, tool_choice, temperature, reasoning]
        data_policy: { zdr: true, trains: false, publishes: false, retains_for_safety: false }
        region: us
        quantization: fp8
`;

test('every member of the documented sample is read', () => {
  const config = load({ yaml: SAMPLE, env: { ACME_API_KEY: 'acme-secret' } });
  assert.equal(config.account.balanceNano, null);
  assert.deepEqual(config.hosts, { global: [], europe: ['eu.example.com'], us: [] });
  assert.deepEqual(config.trustedProxies, ['10.0.0.0/8', '::1']);
  const { credentials, ...provider } = config.providers[0]!;
  assert.deepEqual(
    credentials.map((credential) => credential.reveal()),
    ['acme-secret'],
  );
  assert.deepEqual(provider, {
    id: 'acme',
    name: 'Acme',
    kind: 'chat',
    baseUrl: 'http://127.0.0.1:9000/v1',
    timeouts: { connect: 5000, firstByte: 60_000, idle: 500, stall: 300_000, total: 600_000 },
    maxConcurrency: 500,
    options: {},
    strictTemplate: false,
    speaks: null,
    openEnded: false,
    models: [
      {
        id: 'acme/large',
        upstreamId: 'large',
        name: null,
        contextLength: 200_000,
        maxCompletionTokens: 32_000,
        pricing: { prompt: 3_000_000_000_000n, completion: 15_000_000_000_000n, inputCacheRead: 300_000_000_000n },
        inputModalities: ['text', 'image'],
        outputModalities: null,
        supportedParameters: ['tools', 'tool_choice', 'temperature', 'reasoning'],
        dataPolicy: { zdr: true, trains: false, publishes: false, retainsForSafety: false },
        region: 'us',
        quantization: 'fp8',
      },
    ],
  });
});

test('without a file and variables the defaults apply and the simulated provider answers', () => {
  const config = load();
  assert.equal(config.file, null);
  assert.equal(config.host, '127.0.0.1');
  assert.equal(config.port, 8484);
  assert.equal(config.dataDir, '/srv/data');
  assert.equal(config.workers, 1);
  assert.equal(config.namespace, 'svc');
  assert.equal(config.databaseUrl, null);
  assert.equal(config.limits.inferenceBodyBytes, 33_554_432);
  assert.equal(config.limits.drainMs, 10_000);
  assert.deepEqual(
    config.providers.map(({ id }) => id),
    ['simulated'],
  );
});

test('an unknown data policy counts as the worst', () => {
  const yaml =
    'providers: [{ id: a, kind: chat, base_url: "http://x/v1", models: [{ id: a/b }, { id: a/c, data_policy: { zdr: true } }] }]';
  const [first, second] = load({ yaml }).providers[0]!.models;
  assert.deepEqual(first!.dataPolicy, { zdr: false, trains: true, publishes: true, retainsForSafety: true });
  assert.deepEqual(second!.dataPolicy, { zdr: true, trains: true, publishes: true, retainsForSafety: true });
});

test('all problems are reported together, in the order of the file, with line, column and path', () => {
  const yaml = `\
providers:
  - id: acme
    kind: chatt
    base_url: http://127.0.0.1:9000/v1
    timeouts: { connect: 5 }
    models:
      - id: acme/large
        pricing: { prompt: 0.000003, completion: "much" }
        regoin: us
      - { id: large }
  - { id: acme, kind: chat, base_url: ftp://x, models: [] }
acount: {}
`;
  assert.deepEqual(failure({ yaml, env: { GATEHOUSE_PORT: '99999' } }).message.split('\n'), [
    'GATEHOUSE_PORT must be an integer from 0 to 65535',
    'gatehouse.yaml:3:11 providers[0].kind is not known; did you mean chat?',
    'gatehouse.yaml:5:26 providers[0].timeouts.connect must be a duration such as 500ms, 5s or 2m',
    'gatehouse.yaml:8:28 providers[0].models[0].pricing.prompt must be a decimal text (put it in quotes), in USD',
    'gatehouse.yaml:8:50 providers[0].models[0].pricing.completion must be a decimal text such as "0.000003", ' +
      'not negative and with at most 18 decimals',
    'gatehouse.yaml:9:9 providers[0].models[0] has no member regoin; did you mean region?',
    'gatehouse.yaml:10:15 providers[0].models[1].id must be of the form author/slug',
    'gatehouse.yaml:11:39 providers[1].base_url must be an http or https URL',
    'gatehouse.yaml:12:1 has no member acount; did you mean account?',
  ]);
});

test('JSON is read like YAML, with the same positions', () => {
  const yaml = JSON.stringify(
    { providers: [{ id: 'a', kind: 'chat', base_url: 'http://x', models: [{ id: 1 }] }] },
    null,
    1,
  );
  assert.equal(
    failure({ yaml }).message,
    'gatehouse.yaml:9:12 providers[0].models[0].id must be a text (put it in quotes)',
  );
});

const REFUSED: [what: string, yaml: string, problem: RegExp][] = [
  ['a list in place of the document', '[]', /:1:1 must be a mapping$/],
  ['a provider without an id', 'providers: [{ kind: chat }]', /providers\[0\] needs the member id/],
  ['a provider without a kind', 'providers: [{ id: a }]', /providers\[0\] needs the member kind/],
  ['an id in capitals', 'providers: [{ id: A, kind: openai }]', /providers\[0\]\.id must be lower-case/],
  ['a kind without an address', 'providers: [{ id: a, kind: chat, models: [] }]', /needs the member base_url/],
  ['a kind without models', 'providers: [{ id: a, kind: chat, base_url: "http://x" }]', /needs the member models/],
  [
    'a credential in the address',
    'providers: [{ id: a, kind: chat, base_url: "http://u:p@x", models: [] }]',
    /must not contain a credential; use api_key/,
  ],
  [
    'a header break in a credential',
    'providers: [{ id: a, kind: openai, api_key: "a\\r\\nb: c" }]',
    /api_key must be a text without/,
  ],
  [
    'a credential that stands twice',
    'providers: [{ id: a, kind: openai, api_key: [k, k] }]',
    /api_key\[1\] occurs twice in this list/,
  ],
  [
    'two providers of one id',
    'providers: [{ id: a, kind: openai, api_key: k }, { id: a, kind: openai, api_key: k }]',
    /providers\[1\] has the id of providers\[0\]/,
  ],
  [
    'a model that stands twice',
    'providers: [{ id: a, kind: chat, base_url: "http://x", models: [{ id: a/b }, { id: a/b }] }]',
    /models\[1\] has the id of providers\[0\]\.models\[0\]/,
  ],
  [
    'no concurrency',
    'providers: [{ id: a, kind: openai, max_concurrency: 0 }]',
    /must be an integer from 1 to 1000000/,
  ],
  [
    'a negative price',
    'providers: [{ id: a, kind: chat, base_url: "http://x", models: [{ id: a/b, pricing: { prompt: "-1", completion: "0" } }] }]',
    /pricing\.prompt must be a decimal/,
  ],
  [
    'a price that is not charged',
    'providers: [{ id: a, kind: chat, base_url: "http://x", models: [{ id: a/b, pricing: { prompt: "1", completion: "0", discount: "1" } }] }]',
    /has no member discount/,
  ],
  [
    'half a price',
    'providers: [{ id: a, kind: chat, base_url: "http://x", models: [{ id: a/b, pricing: { prompt: "1" } }] }]',
    /needs the member completion/,
  ],
  ['a negative balance', 'account: { balance_usd: -1 }', /account\.balance_usd must be an amount/],
  ['a flag in words', 'account: { zdr: "yes" }', /account\.zdr must be true or false/],
  [
    'a host in two regions',
    'hosts: { europe: [a.example], us: [a.example] }',
    /hosts\.us\[0\] is the same host as hosts\.europe\[0\]/,
  ],
  ['a network that is none', 'trusted_proxies: [10.0.0.0/33]', /trusted_proxies\[0\] must have from 0 to 32 bits/],
  [
    'a price of pictures without a price',
    'providers: [{ id: a, kind: chat, base_url: "http://a", models: [{ id: a/b, pricing: { prompt: "0", completion: "0", output_images: [{ per: image }] } }] }]',
    /output_images\[0\] needs the member price/,
  ],
  ['an egress port that is none', 'egress: { ports: [80, 0] }', /egress\.ports\[1\] must be a port from 1 to 65535/],
  ['egress ports backwards', 'egress: { ports: ["90-80"] }', /egress\.ports\[0\] must be a port/],
  ['an egress network that is none', 'egress: { networks: [internal] }', /egress\.networks\[0\] must be an IP/],
  ['a proxy by its name', 'trusted_proxies: [proxy.internal]', /must be an IP address/],
  ['a limit of nothing', 'limits: { drain: 0s }', /limits\.drain must be from 1ms/],
  ['tabs', 'account:\n\tzdr: true', /spaces, not with tabs/],
  ['a member that stands twice', 'account: {}\naccount: {}', /:2:1 is not valid YAML: this member occurs twice/],
  ['two documents', 'account: {}\n---\naccount: {}', /one YAML document/],
  ['a bracket that is never closed', 'account: {', /not valid YAML/],
  [
    'a variable without quotes in a flow',
    'providers: [{ id: a, kind: openai, api_key: ${K} }]',
    /needs quotes around it/,
  ],
  [
    'a variable that is not set',
    'providers:\n  - id: a\n    api_key: ${MISSING_KEY}\n    kind: openai',
    /:3:14 providers\[0\]\.api_key needs the environment variable MISSING_KEY/,
  ],
  ['an unclosed variable', 'account: { balance_usd: "${X" }', /without the name of an environment variable/],
];

for (const [what, yaml, problem] of REFUSED) {
  test(`${what} is refused`, () => assert.match(failure({ yaml }).message, problem));
}

test('nesting without end is refused and does not end the process', () => {
  assert.match(failure({ yaml: '['.repeat(10_000) }).message, /gatehouse\.yaml/);
});

test('variables are expanded anywhere in a text and may give numbers, flags and durations; $${ stays a plain ${', () => {
  const yaml = `\
account: { zdr: "\${ZDR}" }
limits: { drain: "\${DRAIN}", connections: "\${COUNT}" }
providers:
  - { id: a, name: "\${NAME} at $\${NAME}", kind: chat, base_url: "http://\${HOST}:1/v1", models: [] }
`;
  const config = load({ yaml, env: { ZDR: 'true', DRAIN: '3s', COUNT: '7', NAME: 'Acme', HOST: 'acme.local' } });
  assert.equal(config.account.zdr, true);
  assert.equal(config.limits.drainMs, 3000);
  assert.equal(config.limits.connections, 7);
  assert.equal(config.providers[0]!.name, 'Acme at ${NAME}');
  assert.equal(config.providers[0]!.baseUrl, 'http://acme.local:1/v1');
});

test('what a variable expands to is not expanded again', () => {
  const yaml = 'providers: [{ id: a, name: "${A}", kind: openai, api_key: k }]';
  assert.equal(load({ yaml, env: { A: '${B}', B: 'no' } }).providers[0]!.name, '${B}');
});

test('a provider switches on by its variable or by the file that the variable names', () => {
  const direct = load({ env: { OPENAI_API_KEY: 'sk-1' } }).providers;
  const byFile = load({
    env: { OPENAI_API_KEY_FILE: 'secrets/openai' },
    files: { '/srv/secrets/openai': 'sk-1\n' },
  }).providers;
  for (const providers of [direct, byFile]) {
    assert.deepEqual(
      providers.map(({ id, openEnded, credentials }) => [id, openEnded, credentials[0]!.reveal()]),
      [['openai', true, 'sk-1']],
    );
  }
});

test('an empty variable is one that is not set', () => {
  assert.deepEqual(
    load({ env: { OPENAI_API_KEY: '', GATEHOUSE_PORT: ' ' } }).providers.map(({ id }) => id),
    ['simulated'],
  );
});

test('a variable and its file together are refused', () => {
  const env = { OPENAI_API_KEY: 'sk-1', OPENAI_API_KEY_FILE: 'f' };
  assert.equal(failure({ env }).message, 'OPENAI_API_KEY and OPENAI_API_KEY_FILE are both set; set only one');
});

test('a listed provider without a credential uses that of its variable', () => {
  const yaml = 'providers: [{ id: openai, kind: openai }, { id: second, kind: openai }]';
  const { providers } = load({ yaml, env: { OPENAI_API_KEY: 'sk-1' } });
  assert.deepEqual(
    providers.map(({ id, credentials }) => [id, credentials[0]?.reveal()]),
    [
      ['openai', 'sk-1'],
      ['second', 'sk-1'],
    ],
  );
  assert.match(failure({ yaml }).message, /^OPENAI_API_KEY is not set, and the provider openai has no api_key$/m);
});

test('a credential from the environment is never sent to a base_url of the file', () => {
  const yaml = 'providers: [{ id: openai, kind: openai, base_url: "http://elsewhere.example/v1" }]';
  assert.deepEqual(load({ yaml, env: { OPENAI_API_KEY: 'sk-1' } }).providers[0]!.credentials, []);
});

test('only the default file may be missing', () => {
  assert.equal(
    failure({ env: { GATEHOUSE_CONFIG: 'other.yaml' } }).message,
    'GATEHOUSE_CONFIG names other.yaml, which cannot be read (ENOENT)',
  );
  const config = load({ env: { GATEHOUSE_CONFIG: '/etc/g.yaml' }, files: { '/etc/g.yaml': 'account: { zdr: true }' } });
  assert.equal(config.file, '/etc/g.yaml');
  assert.equal(config.account.zdr, true);
});

test('wrong variables are refused by name', () => {
  const wrong: Record<string, string> = {
    GATEHOUSE_PORT: 'tcp://10.0.0.1:8484',
    GATEHOUSE_WORKERS: '0',
    GATEHOUSE_NAMESPACE: 'Open Router',
    GATEHOUSE_LOG_LEVEL: 'loud',
    DATABASE_URL: 'mysql://x',
    GATEHOUSE_MANAGEMENT_KEY: 'short',
    GATEHOUSE_TLS_KEY_FILE: 'key.pem',
  };
  const { problems } = failure({ env: wrong });
  const expected = [...Object.keys(wrong).filter((name) => !name.includes('TLS')), 'GATEHOUSE_TLS_CERT_FILE'];
  assert.deepEqual(problems.map(({ source }) => source).sort(), expected.sort());
  assert.match(problems.find(({ source }) => source === 'GATEHOUSE_PORT')!.message, /Kubernetes/);
});

test('certificate and key are read from their files', () => {
  const { tls } = load({
    env: { GATEHOUSE_TLS_CERT_FILE: 'cert.pem', GATEHOUSE_TLS_KEY_FILE: '/keys/key.pem' },
    files: { '/srv/cert.pem': 'CERT', '/keys/key.pem': 'KEY' },
  });
  assert.equal(tls?.certificate, 'CERT');
  assert.equal(tls?.key.reveal(), 'KEY');
});

const CANARY = 'sk-canary-7f3a91c05d';

test('a printed configuration contains no credential', () => {
  const config = load({
    yaml: `providers: [{ id: a, kind: openai, api_key: ["\${KEY}", "${CANARY}-2"] }]`,
    env: {
      KEY: CANARY,
      DATABASE_URL: `postgres://u:${CANARY}@db/x`,
      GATEHOUSE_MANAGEMENT_KEY: `${CANARY}-management`,
      GATEHOUSE_INFERENCE_KEY: `${CANARY}-inference`,
    },
  });
  const printed = [
    inspect(config, { depth: 20, showHidden: true, customInspect: true }),
    inspect(config, { depth: 20, showHidden: true, customInspect: false }),
    JSON.stringify(config, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
    String(config.databaseUrl),
  ];
  for (const text of printed) assert.ok(!text.includes('canary'), text);
  assert.equal(config.providers[0]!.credentials[0]!.reveal(), CANARY);
});

test('problems contain no credential, wherever it was misplaced', () => {
  const places = [
    ...REFUSED.map(([, yaml]) => yaml.replace(/"[^"]*"/, JSON.stringify(CANARY))),
    `providers: [{ id: ${CANARY}, kind: ${CANARY}, name: 1, base_url: "${CANARY}", api_key: { ${CANARY}: 1 } }]`,
    `providers: [{ id: a, kind: openai, ${CANARY}: 1 }]`,
    `providers: [{ id: a, kind: openai, api_key: "${CANARY} and a space" }]`,
    `providers: [{ id: a, kind: openai, api_key: "\${KEY}" }]`,
    `providers: [{ id: a, kind: openai, api_key: "\${${CANARY}}" }]`,
    `providers: [{ id: a, kind: openai, api_key: *${CANARY} }]`,
    `providers: [{ id: a, kind: openai, api_key: !${CANARY} x }]`,
    `providers: [{ id: a, kind: openai, api_key: "${CANARY} ]`,
    `account: { balance_usd: ${CANARY}, zdr: ${CANARY} }`,
    `hosts: { us: ["${CANARY}:80"] }`,
    `limits: { drain: ${CANARY}, candidates: ${CANARY} }`,
    `trusted_proxies: [${CANARY}]`,
    `"${CANARY}" oops`,
    `@${CANARY}`,
  ];
  let failed = 0;
  for (const yaml of places) {
    try {
      load({ yaml, env: { KEY: `${CANARY} with a space` } });
    } catch (error) {
      failed += 1;
      assert.ok(error instanceof ConfigError);
      assert.ok(!inspect(error, { depth: 10 }).includes('canary'), `${yaml}\n${error.message}`);
    }
  }
  assert.ok(failed > 30, `only ${failed} were wrong`);
  const env = {
    OPENAI_API_KEY: `${CANARY}\n`,
    GATEHOUSE_MANAGEMENT_KEY: 'canary',
    DATABASE_URL: CANARY,
    GATEHOUSE_PORT: CANARY,
  };
  assert.ok(!failure({ env: { ...env, OPENAI_API_KEY: `${CANARY} ${CANARY}` } }).message.includes('canary'));
});

test('a reload is another call: it gives a whole new configuration or throws, and the running one stays as it was', () => {
  const running = load({ yaml: SAMPLE, env: { ACME_API_KEY: 'one' } });
  const before = inspect(running, { depth: 20 });
  failure({ yaml: SAMPLE.replace('fp8', '[8]').replace('acme/large', 'acme/larger'), env: { ACME_API_KEY: 'two' } });
  assert.equal(inspect(running, { depth: 20 }), before);
  assert.equal(running.providers[0]!.credentials[0]!.reveal(), 'one');
  const loaded = load({
    yaml: SAMPLE.replace('acme/large', 'acme/larger'),
    env: { ACME_API_KEY: 'two', GATEHOUSE_PORT: '1' },
  });
  assert.equal(loaded.providers[0]!.models[0]!.id, 'acme/larger');
  assert.equal(running.providers[0]!.models[0]!.id, 'acme/large');
  assert.deepEqual(needsRestart(running, loaded), ['port']);
});

test('nothing in a configuration can be changed', () => {
  const config = load({ yaml: SAMPLE, env: { ACME_API_KEY: 'one' } });
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    assert.ok(Object.isFrozen(value), path);
    for (const [name, member] of Object.entries(value)) walk(member, `${path}.${name}`);
  };
  walk(config, 'config');
});

test('a variable disables the simulated provider, and values other than on and off are refused', () => {
  const ids = (env: Record<string, string>) => {
    const { providers, standIns } = load({ env });
    return [providers, standIns].map((list) => list.map(({ id }) => id));
  };
  assert.deepEqual(ids({}), [['simulated'], []]);
  assert.deepEqual(ids({ OPENAI_API_KEY: 'k' }), [['openai'], ['simulated']]);
  assert.deepEqual(ids({ OPENAI_API_KEY: 'k', GATEHOUSE_SIMULATED: 'off' }), [['openai'], []]);
  assert.deepEqual(ids({ GATEHOUSE_SIMULATED: 'off' }), [[], []]);
  assert.throws(() => load({ env: { GATEHOUSE_SIMULATED: 'maybe' } }), /GATEHOUSE_SIMULATED must be on or off/);
});

test('the table of variables names every variable that is read', () => {
  const read = new Set<string>();
  const recorded = (set: Record<string, string>) =>
    new Proxy(set, {
      get(_, name) {
        // Proxies are read in lower case too, as other tools do.
        if (typeof name === 'string') read.add(/^[a-z]+_proxy$/.test(name) ? name.toUpperCase() : name);
        return typeof name === 'string' ? set[name] : undefined;
      },
    });
  load({ env: recorded({}) });
  // The others about traces are read only where traces are sent.
  load({ env: recorded({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }) });
  const documented = new Set([...VARIABLES.map(({ name }) => name), 'OPENAI_API_KEY', 'OPENAI_API_KEY_FILE']);
  assert.deepEqual([...read].sort(), [...documented].sort());
  const rows = Object.values(variableTable(kinds)).flat();
  for (const name of documented) {
    if (!name.endsWith('_API_KEY_FILE'))
      assert.equal(rows.filter((row) => row.startsWith(`| \`${name}\` |`)).length, 1, name);
  }
});

test('250 providers are read within a second', () => {
  const providers = Array.from({ length: 250 }, (_, index) => ({
    id: `c${index}`,
    name: `Replay ${index}`,
    kind: 'chat',
    base_url: `http://127.0.0.1:9000/${index}/v1`,
    api_key: 'upstream-test-key',
    models: [
      {
        id: `replay/c${index}`,
        pricing: { prompt: '0.000001', completion: '0.000004' },
        supported_parameters: ['tools', 'seed'],
      },
    ],
  }));
  const yaml = JSON.stringify({ providers }, null, 1);
  const startedAt = process.cpuUsage();
  assert.equal(load({ yaml }).providers.length, 250);
  const { user, system } = process.cpuUsage(startedAt);
  assert.ok(user + system < 1_000_000, `${(user + system) / 1000} ms of CPU`);
});
