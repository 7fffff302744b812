/**
 * A whole gateway in the test's process: real HTTP on a free port, a fresh database, upstreams scripted by the test, time
 * that can jump. Everything is closed when the test ends.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { type App, createApp } from '../../app.ts';
import { type Config, loadConfig } from '../../base/config.ts';
import { type Log, silentLog } from '../../base/log.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import type { StartOfJobs } from '../../jobs/index.ts';
import { migrations } from '../../migrations.ts';
import { KINDS, type LocalServer } from '../../providers/index.ts';
import type { AppOptions } from '../../server/parts.ts';
import type { Target } from '../../storage/connection.ts';
import { emptyDatabase } from '../database/database.ts';
import { startUpstream, type Upstream } from '../upstream/upstream.ts';
import { watchStatuses } from './declared-statuses.ts';
import { JumpClock } from './jump-clock.ts';

export const MANAGEMENT_KEY = `sk-svc-mgmt-test-${'m'.repeat(40)}`;
export const INFERENCE_KEY = `sk-svc-inf-test-${'i'.repeat(40)}`;
export const UPSTREAM_KEY = 'upstream-secret-key-of-the-tests';

/** USD per token, easy to reckon with. */
export const PRICING = {
  prompt: '0.000003',
  completion: '0.000015',
  input_cache_read: '0.0000003',
  input_cache_write: '0.00000375',
} as const;

export interface GatewayOptions {
  /** One provider a name, each with one model `test/<name>`; the value is merged over the defaults. */
  providers?: Record<string, ProviderOptions>;
  /** Further members of the yaml. */
  yaml?: Record<string, unknown>;
  env?: Record<string, string>;
  /** Further files that the loader sees, by their names. */
  files?: Record<string, string>;
  log?: Log;
  /** Default: always the same, so that endpoints of one price are asked as they are configured. */
  random?: () => number;
  /** Of its clock; default that of real time. */
  pace?: number;
  /** An existing database, e.g. another gateway's; a fresh one otherwise. */
  target?: Target;
  dataDir?: string;
  /** The formats that conversations can be held in; all unless given. */
  formats?: readonly ServedFormat[];
  /** Default `sent`: most tests need no job, and starting to run them takes longer than the rest of the start. */
  jobs?: StartOfJobs;
  /** Default: those of the product. */
  sandboxDrivers?: AppOptions['sandboxDrivers'];
  agent?: AppOptions['agent'];
  consoleFolder?: AppOptions['consoleFolder'];
  /** Where model servers are looked for; none unless given, so that a test sees nothing of the machine that runs it. */
  localServers?: readonly LocalServer[];
}

export interface ProviderOptions {
  kind?: string;
  model?: Record<string, unknown>;
  [member: string]: unknown;
}

export interface Gateway {
  /** `http://127.0.0.1:port` */
  url: string;
  /** With `/api/v1`. */
  api: string;
  app: App;
  config: Config;
  clock: JumpClock;
  upstream: Upstream;
  target: Target;
  dataDir: string;
  /** Of the one-time link to the console; undefined if the keys were chosen, as they are by default. */
  consoleCode: string | undefined;
  /** A POST with the inference key. */
  post(route: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** A GET with the inference key, or another. */
  get(route: string, key?: string): Promise<Response>;
  close(): Promise<void>;
}

export async function startGateway(test: Pick<TestContext, 'after'>, options: GatewayOptions = {}): Promise<Gateway> {
  const target = options.target ?? (await emptyDatabase(test, migrations, true));
  const upstream = await startUpstream();
  const dataDir = options.dataDir ?? mkdtempSync(path.join(tmpdir(), 'gatehouse-gateway-'));
  const clock = new JumpClock(options.pace);
  const config = configOf(options, upstream, dataDir);
  const app = await createApp({
    config,
    target,
    clock,
    localServers: options.localServers ?? [],
    jobs: options.jobs ?? 'sent',
    ...(options.formats && { formats: options.formats }),
    ...(options.sandboxDrivers && { sandboxDrivers: options.sandboxDrivers }),
    ...(options.agent && { agent: options.agent }),
    ...(options.consoleFolder && { consoleFolder: options.consoleFolder }),
    log: options.log ?? silentLog,
    random: options.random ?? (() => 0.5),
  }).catch(async (error: unknown) => {
    await upstream.close();
    throw error;
  });
  const consoleCode = await app.bootstrap();
  const { address: url } = await app.listen();
  const checkStatuses = watchStatuses();
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await app.close();
    await upstream.close();
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    checkStatuses();
  };
  test.after(close);
  const api = `${url}/api/v1`;
  return {
    url,
    api,
    app,
    config,
    clock,
    upstream,
    target,
    dataDir,
    consoleCode,
    post: (route, body, headers = {}) =>
      fetch(api + route, {
        method: 'POST',
        headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    get: (route, key = INFERENCE_KEY) => fetch(api + route, { headers: { authorization: `Bearer ${key}` } }),
    close,
  };
}

/** The yaml of the options as a file that only the loader sees. */
function configOf(
  { providers = {}, yaml = {}, env = {}, files = {} }: GatewayOptions,
  upstream: Upstream,
  dataDir: string,
): Config {
  const file = JSON.stringify({
    ...yaml,
    ...(Object.keys(providers).length > 0 && {
      providers: Object.entries(providers).map(([name, provider]) => providerYaml(name, provider, upstream)),
    }),
  });
  return loadConfig({
    kinds: KINDS,
    env: {
      GATEHOUSE_HOST: '127.0.0.1',
      GATEHOUSE_PORT: '0',
      GATEHOUSE_DATA_DIR: dataDir,
      GATEHOUSE_CONFIG: 'test.yaml',
      GATEHOUSE_MANAGEMENT_KEY: MANAGEMENT_KEY,
      GATEHOUSE_INFERENCE_KEY: INFERENCE_KEY,
      ...env,
    },
    cwd: dataDir,
    cores: 1,
    readFile: (name) => files[path.basename(name)] ?? file,
  });
}

function providerYaml(name: string, { kind = 'chat', model = {}, ...members }: ProviderOptions, upstream: Upstream) {
  return {
    id: name,
    name: `Provider ${name}`,
    kind,
    base_url: `${upstream.url}/${name}`,
    api_key: UPSTREAM_KEY,
    models: [
      {
        id: `test/${name}`,
        upstream_id: `upstream-${name}`,
        context_length: 200_000,
        max_completion_tokens: 8_000,
        pricing: PRICING,
        input_modalities: ['text', 'image', 'file', 'audio'],
        supported_parameters: [
          'tools',
          'tool_choice',
          'temperature',
          'reasoning',
          'structured_outputs',
          'response_format',
        ],
        ...model,
      },
    ],
    ...members,
  };
}
