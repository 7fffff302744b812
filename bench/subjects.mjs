/** The measured servers: nginx as the reference, the gateway, and optionally another gateway. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PAIR_FORMS, pairProviders } from './pairs.mjs';
import { measurable } from './stretches.mjs';
import { BenchError, family, freePort, HERE, isDatabase, listening, need, SUBJECT_CORE, start } from './tools.mjs';

const INFERENCE_KEY = `sk-svc-inf-bench-${'b'.repeat(40)}`;
const MANAGEMENT_KEY = `sk-svc-mgmt-bench-${'b'.repeat(40)}`;

/**
 * A subject: `port`, `headers` for every request, `path` and `model` for chat and, where it translates, messages; `pids()`
 * are its processes without the database, `databasePids()` those of the database.
 */
export async function startNginx(folder, upstreamPort, program = 'nginx') {
  need(program, 'install it (Debian: apt-get install nginx) or name it with --nginx PATH');
  const port = await freePort();
  const home = path.join(folder, 'nginx');
  mkdirSync(path.join(home, 'logs'), { recursive: true });
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${home}/${name};`,
  );
  const config = `
    worker_processes 1; daemon off; pid ${home}/pid; error_log ${home}/logs/error.log;
    events { worker_connections 20000; }
    http {
      access_log off; keepalive_requests 1000000000; client_max_body_size 100m; client_body_buffer_size 1m; ${paths.join(' ')}
      upstream model { server 127.0.0.1:${upstreamPort}; keepalive 1000; keepalive_requests 1000000000; }
      server { listen 127.0.0.1:${port}; location / { proxy_pass http://model; proxy_http_version 1.1;
        proxy_set_header Connection ""; proxy_buffering off; } }
    }`;
  writeFileSync(path.join(home, 'nginx.conf'), config);
  const started = start(SUBJECT_CORE, program, [
    '-p',
    home,
    '-c',
    path.join(home, 'nginx.conf'),
    '-e',
    path.join(home, 'logs/error.log'),
  ]);
  await listening(port, started, 'nginx');
  return subject('nginx', port, started, {
    chat: { path: '/v1/chat/completions', model: 'm' },
    embeddings: { path: '/v1/embeddings', model: 'm' },
    text: { path: '/text/v1/chat/completions', model: 'm' },
  });
}

/** node:http and undici, and nothing else. */
export async function startBare(folder, upstreamPort) {
  const port = await freePort();
  const stretches = path.join(folder, 'bare');
  const started = start(
    SUBJECT_CORE,
    process.execPath,
    [path.join(HERE, 'bare.mjs'), String(port), String(upstreamPort)],
    { env: { ...process.env, ...measurable(stretches) } },
  );
  await listening(port, started, 'the bare proxy');
  const found = subject('bare', port, started, {
    chat: { path: '/v1/chat/completions', model: 'bare' },
    embeddings: { path: '/v1/embeddings', model: 'bare' },
    text: { path: '/text/v1/chat/completions', model: 'bare' },
  });
  return { ...found, stretches };
}

/** The upstream without anything in front of it: how long its own first byte takes. */
export function upstreamItself(port) {
  return {
    ...{ name: 'upstream', port, headers: [], pids: () => [], databasePids: () => [] },
    forms: {
      chat: { path: '/v1/chat/completions', model: 'm' },
      text: { path: '/text/v1/chat/completions', model: 'm' },
    },
  };
}

/** How many models each further provider of a large catalog has. */
const MODELS_OF_A_PROVIDER = 10;

/**
 * A subject that also has a `managementKey`.
 * @param endpoints of the whole catalog; all but one are of providers that nobody listens for, so that what they cost is
 * what their being there costs
 * @param yaml further members of the configuration
 * @param env further variables
 * @param core or several, as `0,1`
 */
export async function startGateway(
  folder,
  upstreamPort,
  { name = 'gateway', endpoints = 1, yaml = {}, env: more = {}, core = SUBJECT_CORE } = {},
) {
  const port = await freePort();
  const home = path.join(folder, name);
  mkdirSync(home, { recursive: true });
  const provider = {
    id: 'mock',
    kind: 'chat',
    base_url: `http://127.0.0.1:${upstreamPort}/v1`,
    api_key: 'upstream-key',
    max_concurrency: 100_000,
    models: [
      {
        id: 'mock/m',
        upstream_id: 'm',
        context_length: 200_000,
        pricing: { prompt: '0.000001', completion: '0.000002' },
      },
    ],
  };
  // JSON is yaml.
  writeFileSync(
    path.join(home, 'gatehouse.yaml'),
    JSON.stringify({
      ...yaml,
      providers: [
        provider,
        textProvider(provider, upstreamPort),
        ...pairProviders(provider, upstreamPort),
        ...others(provider, endpoints - 1),
      ],
    }),
  );
  const stretches = path.join(home, 'turns');
  const env = {
    ...process.env,
    ...measurable(stretches),
    GATEHOUSE_HOST: '127.0.0.1',
    GATEHOUSE_PORT: String(port),
    GATEHOUSE_DATA_DIR: path.join(home, 'data'),
    GATEHOUSE_CONFIG: path.join(home, 'gatehouse.yaml'),
    GATEHOUSE_INFERENCE_KEY: INFERENCE_KEY,
    GATEHOUSE_MANAGEMENT_KEY: MANAGEMENT_KEY,
    GATEHOUSE_LOG_LEVEL: 'warn',
    ...more,
  };
  const started = start(core, process.execPath, [path.join(HERE, '../build/start.js'), 'serve'], {
    cwd: home,
    env,
  });
  await listening(port, started, 'the gateway');
  const found = subject(name, port, started, {
    chat: { path: '/api/v1/chat/completions', model: 'mock/m' },
    messages: { path: '/api/v1/messages', model: 'mock/m' },
    embeddings: { path: '/api/v1/embeddings', model: 'mock/m' },
    text: { path: '/api/v1/chat/completions', model: 'text/m' },
    ...PAIR_FORMS,
  });
  found.headers = [`Authorization: Bearer ${INFERENCE_KEY}`];
  return { ...found, stretches, managementKey: MANAGEMENT_KEY };
}

/** The mock upstream answers in ordinary text below this path. */
function textProvider(provider, upstreamPort) {
  const models = [{ ...provider.models[0], id: 'text/m' }];
  return { ...provider, id: 'text', base_url: `http://127.0.0.1:${upstreamPort}/text/v1`, models };
}

function others(provider, count) {
  const [model] = provider.models;
  const models = Array.from({ length: count }, (_, index) => ({ ...model, id: `mock/other-${index}` }));
  return Array.from({ length: Math.ceil(count / MODELS_OF_A_PROVIDER) }, (_, index) => ({
    ...provider,
    id: `other-${index}`,
    base_url: 'http://127.0.0.1:9/v1',
    models: models.slice(index * MODELS_OF_A_PROVIDER, (index + 1) * MODELS_OF_A_PROVIDER),
  }));
}

/** `folder` is where `npm install @portkey-ai/gateway` was run; streams need the versions that `bench/README.md` names. */
export async function startPortkey(folder, upstreamPort) {
  const port = await freePort();
  const program = path.join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  need(program, 'run npm install @portkey-ai/gateway in the folder that --portkey names');
  const started = start(SUBJECT_CORE, process.execPath, [program, `--port=${port}`, '--headless'], { cwd: folder });
  await listening(port, started, 'portkey');
  const found = subject('portkey', port, started, { chat: { path: '/v1/chat/completions', model: 'm' } });
  found.headers = [
    'Authorization: Bearer k',
    'x-portkey-provider: openai',
    `x-portkey-custom-host: http://127.0.0.1:${upstreamPort}/v1`,
  ];
  return found;
}

/** @param forms what it serves: path and model of each format */
export function subject(name, port, started, forms) {
  const split = () => Object.groupBy(family(started.child.pid), (pid) => (isDatabase(pid) ? 'database' : 'own'));
  return {
    name,
    port,
    started,
    forms,
    headers: [],
    pids: () => split().own ?? [],
    databasePids: () => split().database ?? [],
  };
}

/** One request by hand, so that a subject that refuses is noticed before it is measured. */
export async function proveIt(subject, form, body) {
  const { path: route } = subject.forms[form];
  const headers = Object.fromEntries(subject.headers.map((line) => line.split(': ')));
  const response = await fetch(`http://127.0.0.1:${subject.port}${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const text = await response.text();
  if (response.status !== 200 || /"error":\s*[{"]/.test(text))
    throw new BenchError(`${subject.name} answers ${response.status} to ${route}: ${text.slice(0, 500)}`);
}
