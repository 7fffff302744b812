/**
 * The configuration: environment variables and one yaml file, read once, checked as a whole, frozen. Nothing else in the
 * project reads either. Parts of the program get the few values that they need, never the environment.
 *
 * `loadConfig` is a function of its inputs only: a reload calls it again and either gets a complete new configuration or
 * an error that names every mistake, and keeps the old one.
 */
import fs from 'node:fs';
import { BlockList, isIP } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Environment, errorCode, type Inputs } from './config/environment.ts';
import type { Field, Reader } from './config/field.ts';
import { ConfigError, type Problem } from './config/problems.ts';
import { DEFAULT_MAX_CONCURRENCY, DEFAULT_TIMEOUTS, type KindFacts, readProviders } from './config/provider-readers.ts';
import { distinct, duration, flag, integer, mapping, text, textLike } from './config/readers.ts';
import type {
  AccountSettings,
  Config,
  HostSettings,
  Limits,
  ProviderSettings,
  TlsSettings,
} from './config/settings.ts';
import { parseYaml } from './config/yaml.ts';
import { type Nano, nanoFromUsd } from './money.ts';
import { Secret } from './secret.ts';

export { type Inputs, VARIABLES, type Variable, variableTable } from './config/environment.ts';
export { ConfigError, type Problem } from './config/problems.ts';
export { type KindFacts, UNKNOWN_DATA_POLICY } from './config/provider-readers.ts';
export * from './config/settings.ts';

export const DEFAULT_ACCOUNT: AccountSettings = Object.freeze({
  zdr: false,
  allowTraining: true,
  allowPublication: true,
  allowSafetyRetention: true,
  balanceNano: null,
});

export const DEFAULT_LIMITS: Limits = Object.freeze({
  inferenceBodyBytes: 32 * 1024 * 1024,
  controlBodyBytes: 1024 * 1024,
  nestingDepth: 128,
  headerBytes: 32 * 1024,
  headerCount: 200,
  headersArrivalMs: 10_000,
  requestArrivalMs: 60_000,
  idleConnectionMs: 75_000,
  drainMs: 10_000,
  keepAliveCommentMs: 10_000,
  upstreamReplyBytes: 64 * 1024 * 1024,
  upstreamEventBytes: 32 * 1024 * 1024,
  candidates: 16,
  connections: 10_000,
});

/** The real inputs of this process. */
export function machineInputs(): Inputs {
  return {
    env: process.env,
    readFile: (file) => fs.readFileSync(file, 'utf8'),
    cwd: process.cwd(),
    cores: os.availableParallelism(),
  };
}

/**
 * Reads the whole configuration (issue 2, point 2).
 *
 * @param kinds the kinds of providers that exist; base knows none by itself
 * @throws ConfigError with every problem; no value of a variable or of the file stands in it
 */
export function loadConfig({ kinds, ...inputs }: Inputs & { kinds: readonly KindFacts[] }): Config {
  const problems: Problem[] = [];
  const environment = new Environment(inputs, problems);
  const yaml = readYaml(inputs, environment, problems);
  const config: Config = {
    file: yaml.file,
    host: environment.text('GATEHOUSE_HOST'),
    port: environment.port(),
    tls: tls(environment),
    dataDir: path.resolve(inputs.cwd, environment.text('GATEHOUSE_DATA_DIR')),
    workers: environment.workers(),
    namespace: environment.namespace(),
    logLevel: environment.logLevel(),
    databaseUrl: environment.databaseUrl(),
    firstKeys: {
      management: environment.firstKey('GATEHOUSE_MANAGEMENT_KEY'),
      inference: environment.firstKey('GATEHOUSE_INFERENCE_KEY'),
    },
    ...readBody(yaml.field, kinds, environment),
  };
  if (problems.length > 0) throw new ConfigError(problems.toSorted(inOrder));
  return freeze(config);
}

/** Variables first, then the file from top to bottom. */
function inOrder(a: Problem, b: Problem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

/** The parts of two configurations that differ and that only a restart applies, by their names in `Config`. */
export function needsRestart(running: Config, loaded: Config): string[] {
  const fixed = ['host', 'port', 'dataDir', 'workers', 'namespace'] as const;
  const changed: string[] = fixed.filter((name) => running[name] !== loaded[name]);
  if (running.databaseUrl?.reveal() !== loaded.databaseUrl?.reveal()) changed.push('databaseUrl');
  if ((running.tls === null) !== (loaded.tls === null)) changed.push('tls');
  return changed;
}

function readYaml(inputs: Inputs, environment: Environment, problems: Problem[]) {
  const named = environment.get('GATEHOUSE_CONFIG');
  const file = named ?? environment.text('GATEHOUSE_CONFIG');
  try {
    const content = inputs.readFile(path.resolve(inputs.cwd, file));
    return { file, field: parseYaml(file, content, inputs.env, problems) };
  } catch (error) {
    const code = errorCode(error);
    if (named !== undefined) environment.fail('GATEHOUSE_CONFIG', `names ${file}, which cannot be read (${code})`);
    else if (code !== 'ENOENT') environment.fail(file, `cannot be read (${code})`);
    return { file: null, field: undefined };
  }
}

/** Everything that the yaml file may hold, with the defaults for what it does not. */
function readBody(field: Field | undefined, kinds: readonly KindFacts[], environment: Environment) {
  const read =
    field &&
    mapping(field, {
      account,
      hosts,
      trusted_proxies: distinct(network),
      limits,
      providers: (list: Field) => readProviders(list, kinds),
    });
  return {
    account: read?.account ?? DEFAULT_ACCOUNT,
    hosts: read?.hosts ?? { global: [], europe: [], us: [] },
    trustedProxies: read?.trusted_proxies ?? [],
    limits: read?.limits ?? DEFAULT_LIMITS,
    providers: withEnvironment(read?.providers ?? [], kinds, environment),
  };
}

/**
 * Adds the providers that the environment switches on, and its credentials to listed ones that have none. A credential
 * never follows a `base_url`: that would send it to a host that the environment did not name.
 */
function withEnvironment(listed: readonly ProviderSettings[], kinds: readonly KindFacts[], environment: Environment) {
  const providers = [...listed];
  for (const kind of kinds) {
    const credential = kind.environment === undefined ? null : environment.credential(kind.environment);
    if (credential === null) continue;
    providers.forEach((provider, index) => {
      const wanting = provider.kind === kind.id && provider.credentials.length === 0 && provider.baseUrl === undefined;
      if (wanting) providers[index] = { ...provider, credentials: [credential] };
    });
    if (!providers.some(({ id }) => id === kind.id)) providers.push(bare(kind, [credential]));
  }
  for (const { id, kind, credentials, baseUrl } of providers) {
    const variable = kinds.find((other) => other.id === kind)?.environment;
    if (credentials.length > 0 || baseUrl !== undefined || variable === undefined) continue;
    environment.fail(variable, `is not set, and the provider ${id} has no api_key`);
  }
  const standIn = kinds.find((kind) => kind.standIn === true);
  return providers.length === 0 && standIn ? [bare(standIn, [])] : providers;
}

function bare(kind: KindFacts, credentials: readonly Secret[]): ProviderSettings {
  return {
    id: kind.id,
    name: kind.name,
    kind: kind.id,
    baseUrl: undefined,
    credentials,
    timeouts: DEFAULT_TIMEOUTS,
    maxConcurrency: DEFAULT_MAX_CONCURRENCY,
    models: kind.models ?? [],
    openEnded: kind.models === undefined,
  };
}

function tls(environment: Environment): TlsSettings | null {
  const [certificateFile, keyFile] = [
    environment.get('GATEHOUSE_TLS_CERT_FILE'),
    environment.get('GATEHOUSE_TLS_KEY_FILE'),
  ];
  if (certificateFile === undefined && keyFile === undefined) return null;
  if (certificateFile === undefined || keyFile === undefined) {
    return environment.fail('GATEHOUSE_TLS_CERT_FILE', 'and GATEHOUSE_TLS_KEY_FILE must be set together') ?? null;
  }
  const certificate = environment.file('GATEHOUSE_TLS_CERT_FILE', certificateFile);
  const key = environment.file('GATEHOUSE_TLS_KEY_FILE', keyFile);
  return certificate === undefined || key === undefined ? null : { certificate, key: new Secret(key) };
}

function account(field: Field): AccountSettings | undefined {
  const read = mapping(field, {
    zdr: flag,
    allow_training: flag,
    allow_publication: flag,
    allow_safety_retention: flag,
    balance_usd: usd,
  });
  if (!read) return undefined;
  return {
    zdr: read.zdr ?? DEFAULT_ACCOUNT.zdr,
    allowTraining: read.allow_training ?? DEFAULT_ACCOUNT.allowTraining,
    allowPublication: read.allow_publication ?? DEFAULT_ACCOUNT.allowPublication,
    allowSafetyRetention: read.allow_safety_retention ?? DEFAULT_ACCOUNT.allowSafetyRetention,
    balanceNano: read.balance_usd ?? null,
  };
}

function usd(field: Field): Nano | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  const problem = 'must be an amount of USD, not negative and with at most 9 decimals, or null';
  if (typeof scalar.value !== 'number' && typeof scalar.value !== 'string') return field.fail(problem);
  try {
    return nanoFromUsd(scalar.value);
  } catch {
    return field.fail(problem);
  }
}

function hosts(field: Field): HostSettings | undefined {
  const hostname = textLike(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'a host name in lower case, without a port');
  const seen = new Map<string, string>();
  const once: Reader<string> = (item) => {
    const name = hostname(item);
    if (name === undefined) return undefined;
    const other = seen.get(name);
    if (other !== undefined) return item.fail(`is the same host as ${other}`);
    seen.set(name, item.path);
    return name;
  };
  const read = mapping(field, { global: distinct(once), europe: distinct(once), us: distinct(once) });
  return read && { global: read.global ?? [], europe: read.europe ?? [], us: read.us ?? [] };
}

/** An IP address, or a network as address/bits. */
function network(field: Field): string | undefined {
  const value = text(field);
  if (value === undefined) return undefined;
  const [address = '', bits, ...rest] = value.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return field.fail('must be an IP address, or a network such as 10.0.0.0/8');
  try {
    if (bits !== undefined)
      new BlockList().addSubnet(address, /^\d{1,3}$/.test(bits) ? Number(bits) : -1, `ipv${version as 4 | 6}`);
  } catch {
    return field.fail(`must have from 0 to ${version === 4 ? 32 : 128} bits behind the slash`);
  }
  return value;
}

function limits(field: Field): Limits | undefined {
  const bytes = integer(1024, 2 ** 31 - 1);
  const count = integer(1, 1_000_000);
  const read = mapping(field, {
    inference_body_bytes: bytes,
    control_body_bytes: bytes,
    nesting_depth: integer(8, 10_000),
    header_bytes: bytes,
    header_count: count,
    headers_arrival: duration,
    request_arrival: duration,
    idle_connection: duration,
    drain: duration,
    keep_alive_comment: duration,
    upstream_reply_bytes: bytes,
    upstream_event_bytes: bytes,
    candidates: count,
    connections: count,
  });
  if (!read) return undefined;
  return {
    inferenceBodyBytes: read.inference_body_bytes ?? DEFAULT_LIMITS.inferenceBodyBytes,
    controlBodyBytes: read.control_body_bytes ?? DEFAULT_LIMITS.controlBodyBytes,
    nestingDepth: read.nesting_depth ?? DEFAULT_LIMITS.nestingDepth,
    headerBytes: read.header_bytes ?? DEFAULT_LIMITS.headerBytes,
    headerCount: read.header_count ?? DEFAULT_LIMITS.headerCount,
    headersArrivalMs: read.headers_arrival ?? DEFAULT_LIMITS.headersArrivalMs,
    requestArrivalMs: read.request_arrival ?? DEFAULT_LIMITS.requestArrivalMs,
    idleConnectionMs: read.idle_connection ?? DEFAULT_LIMITS.idleConnectionMs,
    drainMs: read.drain ?? DEFAULT_LIMITS.drainMs,
    keepAliveCommentMs: read.keep_alive_comment ?? DEFAULT_LIMITS.keepAliveCommentMs,
    upstreamReplyBytes: read.upstream_reply_bytes ?? DEFAULT_LIMITS.upstreamReplyBytes,
    upstreamEventBytes: read.upstream_event_bytes ?? DEFAULT_LIMITS.upstreamEventBytes,
    candidates: read.candidates ?? DEFAULT_LIMITS.candidates,
    connections: read.connections ?? DEFAULT_LIMITS.connections,
  };
}

/** Freezes plain objects and lists all the way down; secrets freeze as they are. */
function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) freeze(member);
  }
  return value;
}
