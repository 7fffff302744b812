/**
 * The configuration: environment variables and one yaml file, read once, validated as a whole, frozen. Nothing else in the
 * project reads either. Parts of the program get only the values that they need, never the environment.
 *
 * `loadConfig` depends only on its inputs. A reload calls it again and gets either a complete new configuration or an error
 * that lists every mistake, in which case the old configuration stays.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { blobSettings, blobs } from './config/blobs.ts';
import { bootstrapConfigOf } from './config/bootstrap-config.ts';
import { consoleSection, DEFAULT_CONSOLE } from './config/console.ts';
import { DEFAULT_EGRESS_PROXY, egressProxy } from './config/egress-proxy.ts';
import { Environment, errorCode, type Inputs } from './config/environment.ts';
import { federation } from './config/federation.ts';
import type { Field } from './config/field.ts';
import { DEFAULT_INTERNS, interns } from './config/interns.ts';
import { DEFAULT_IO_LOGGING, ioLogging } from './config/io-logging.ts';
import { type MemberType, memberTypes } from './config/member-types.ts';
import { moderation } from './config/moderation.ts';
import { ocr } from './config/ocr.ts';
import { readOutgoing } from './config/outgoing.ts';
import { ConfigError, type Problem } from './config/problems.ts';
import { type KindFacts, readProviders } from './config/provider-readers.ts';
import { NO_RATE_LIMITS, rateLimits } from './config/rate-limits.ts';
import { distinct, mapping, text } from './config/readers.ts';
import { DEFAULT_ROUTING, routing } from './config/routing.ts';
import { DEFAULT_SANDBOXES, sandboxes } from './config/sandboxes.ts';
import { DEFAULT_SCIM, scim } from './config/scim.ts';
import {
  account,
  DEFAULT_ACCOUNT,
  DEFAULT_EGRESS,
  DEFAULT_LIMITS,
  DEFAULT_RETENTION,
  egress,
  hosts,
  limits,
  network,
  retention,
} from './config/section-readers.ts';
import type { Config, KeySource, TlsSettings } from './config/settings.ts';
import { readTracing } from './config/tracing.ts';
import { unknownVariables, variableFor } from './config/unknown-variables.ts';
import { DEFAULT_VAULT, internProgramme, vault } from './config/vault.ts';
import { NO_WEB_SEARCH, webSearch } from './config/web-search.ts';
import { standInsOf, withEnvironment } from './config/with-environment.ts';
import { parseYaml } from './config/yaml.ts';
import { Secret } from './secret.ts';

export type { BlobSettings, S3Keys, S3Settings } from './config/blobs.ts';
export type { ConsoleSettings, MemberMatch, OidcSettings } from './config/console.ts';
export { type Inputs, VARIABLES, type Variable, variableTable } from './config/environment.ts';
export { type ClaimRule, type FederationPolicy, isIssuerAddress, MAX_LIFETIME_MS } from './config/federation.ts';
export { type AgentInstallation, DEFAULT_AGENT } from './config/interns.ts';
export type { IoLoggingSettings } from './config/io-logging.ts';
export { type IssuerKey, readIssuerKey, SIGNATURE_ALGORITHMS } from './config/issuer-key.ts';
export type { OptionFacts } from './config/kind-options.ts';
export type { MemberType } from './config/member-types.ts';
export type { ModerationSettings } from './config/moderation.ts';
export type { OcrSettings } from './config/ocr.ts';
export type { OutgoingSettings } from './config/outgoing.ts';
export { ConfigError, type Problem } from './config/problems.ts';
export { type KindFacts, UNKNOWN_DATA_POLICY } from './config/provider-readers.ts';
export type { RoutingSettings } from './config/routing.ts';
export {
  DEFAULT_SANDBOXES,
  EGRESS_PORTS,
  type KubernetesSandboxSettings,
  type SandboxesSettings,
} from './config/sandboxes.ts';
export type { ScimSettings, ScimSource } from './config/scim.ts';
export { DEFAULT_ACCOUNT, DEFAULT_EGRESS, DEFAULT_LIMITS } from './config/section-readers.ts';
export * from './config/settings.ts';
export type { TracingSettings } from './config/tracing.ts';
export type { InternProgrammeSettings, VaultSettings } from './config/vault.ts';
export type { SearchEngineSettings, SearchKind, WebSearchSettings } from './config/web-search.ts';

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
 * Reads the whole configuration: the environment, the yaml file and the files that they name.
 *
 * @param kinds the known kinds of providers; base defines none
 * @throws ConfigError with every problem; it contains no value of a variable or of the file
 */
export function loadConfig({ kinds, ...inputs }: Inputs & { kinds: readonly KindFacts[] }): Config {
  const problems: Problem[] = [];
  const environment = new Environment(inputs, problems);
  const yaml = readYaml(inputs, environment, problems);
  const bootstrap = bootstrapConfigOf(environment, inputs.cwd);
  const config: Config = {
    file: yaml.file,
    host: environment.text('GATEHOUSE_HOST'),
    port: environment.port(),
    peerHost: environment.get('GATEHOUSE_PEER_HOST') ?? null,
    tls: tls(environment),
    ...bootstrap,
    workers: environment.workers(),
    namespace: environment.namespace(),
    requestLogShare: environment.requestLogShare(),
    metrics: environment.metrics(),
    tracing: readTracing(environment),
    catalogUrl: environment.catalogUrl(),
    client: { url: environment.get('GATEHOUSE_URL') ?? null, key: environment.secret('GATEHOUSE_API_KEY') },
    firstKeys: {
      management: environment.firstKey('GATEHOUSE_MANAGEMENT_KEY'),
      inference: environment.firstKey('GATEHOUSE_INFERENCE_KEY'),
    },
    unknownVariables: unknownVariables(Object.keys(inputs.env), kinds),
    outgoing: readOutgoing(environment),
    sealing: environment.sealing(bootstrap.dataDir),
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
  const fixed = ['host', 'port', 'peerHost', 'dataDir', 'workers', 'namespace'] as const;
  const changed: string[] = fixed.filter((name) => running[name] !== loaded[name]);
  if (running.databaseUrl?.reveal() !== loaded.databaseUrl?.reveal()) changed.push('databaseUrl');
  if ((running.tls === null) !== (loaded.tls === null)) changed.push('tls');
  const keks = ({ sealing }: Config) =>
    [sealing.current, sealing.previous].map((source) => source && { ...source, key: revealed(source) });
  if (!isDeepStrictEqual(keks(running), keks(loaded))) changed.push('sealing');
  if (!isDeepStrictEqual(s3Of(running), s3Of(loaded))) changed.push('blobs');
  if (!isDeepStrictEqual(running.sandboxes, loaded.sandboxes)) changed.push('sandboxes');
  if (running.egressProxy.user !== loaded.egressProxy.user) changed.push('egressProxy.user');
  if (!isDeepStrictEqual(tracingOf(running), tracingOf(loaded))) changed.push('tracing');
  return changed;
}

function s3Of({ blobs: { s3 } }: Config) {
  return s3 && { ...s3, keys: s3.keys && { ...s3.keys, secretAccessKey: s3.keys.secretAccessKey.reveal() } };
}

function tracingOf({ tracing }: Config) {
  const headers = Object.entries(tracing?.headers ?? {}).map(([name, value]) => [name, value.reveal()]);
  return tracing && { ...tracing, headers };
}

function revealed(source: KeySource): string | undefined {
  return source.kind === 'value' ? source.key.reveal() : undefined;
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

/** All members of the yaml file, with their defaults. */
function readBody(field: Field | undefined, kinds: readonly KindFacts[], environment: Environment) {
  const read = field && readSections(field, kinds);
  const providers = withEnvironment(read?.providers ?? [], kinds, environment);
  const standIns = standInsOf(kinds, environment);
  return {
    account: read?.account ?? DEFAULT_ACCOUNT,
    hosts: read?.hosts ?? { global: [], europe: [], us: [] },
    trustedProxies: read?.trusted_proxies ?? [],
    egress: read?.egress ?? DEFAULT_EGRESS,
    egressProxy: read?.egress_proxy ?? DEFAULT_EGRESS_PROXY,
    limits: read?.limits ?? DEFAULT_LIMITS,
    routing: read?.routing ?? DEFAULT_ROUTING,
    ioLogging: read?.io_logging ?? DEFAULT_IO_LOGGING,
    blobs: blobSettings(read?.blobs, environment),
    scim: read?.scim ?? DEFAULT_SCIM,
    vault: read?.vault ?? DEFAULT_VAULT,
    sandboxes: read?.sandboxes ?? DEFAULT_SANDBOXES,
    webSearch: read?.web_search ?? NO_WEB_SEARCH,
    moderation: read?.moderation ?? null,
    ocr: read?.ocr ?? null,
    alignmentModel: read?.alignment?.model ?? null,
    embeddingModel: read?.vector_stores?.embedding_model ?? null,
    interns: read?.interns ?? DEFAULT_INTERNS,
    internProgramme: read?.intern_programme ?? null,
    console: read?.console ?? DEFAULT_CONSOLE,
    federation: read?.federation ?? [],
    rateLimits: read?.rate_limits ?? NO_RATE_LIMITS,
    retention: read?.retention ?? DEFAULT_RETENTION,
    providers: providers.length > 0 ? providers : standIns,
    standIns: providers.length > 0 ? standIns.filter(({ id }) => providers.every((one) => one.id !== id)) : [],
  };
}

function readSections(field: Field, kinds: readonly KindFacts[]) {
  const sections = {
    account,
    hosts,
    trusted_proxies: distinct(network),
    egress,
    egress_proxy: egressProxy,
    limits,
    routing,
    retention,
    io_logging: ioLogging,
    blobs,
    scim,
    vault,
    sandboxes,
    web_search: webSearch,
    moderation,
    ocr,
    alignment: (at: Field) => mapping(at, { model: text }),
    vector_stores: (at: Field) => mapping(at, { embedding_model: text }),
    interns,
    intern_programme: internProgramme,
    console: consoleSection,
    federation,
    rate_limits: rateLimits,
    providers: (list: Field) => readProviders(list, kinds),
  };
  return mapping(field, sections, [], variableFor);
}

/** Every member of the yaml file, with the members of one kind of provider. */
export function yamlMembers(kinds: readonly KindFacts[], kind: string): MemberType[] {
  return memberTypes((field) => readSections(field, kinds), kind);
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

/** Freezes plain objects and lists all the way down; secrets freeze as they are. */
function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) freeze(member);
  }
  return value;
}
