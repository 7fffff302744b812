/**
 * One serving process: the only place that wires the parts. With several workers each runs one of these on the same database
 * and port, after the primary (`primary.ts`) has started and migrated the database.
 */
import path from 'node:path';
import { type Caller, createAccess, type FirstKey } from './access/index.ts';
import { type Clock, sleep } from './base/clock.ts';
import type { Config, Limits } from './base/config.ts';
import { endOfTurn } from './base/end-of-turn.ts';
import type { Log } from './base/log.ts';
import { createNamespace, fromWireName, type Namespace } from './base/namespace.ts';
import type { Use } from './base/release-memory.ts';
import { cleanBlobsJob, createBlobs, diskBackend } from './blobs/index.ts';
import { endOwnKeys, followOwnKeys } from './byok/index.ts';
import { cleanCacheJob, createResponseCache } from './cache/index.ts';
import { createStatistics } from './catalog/index.ts';
import { recordReload } from './configuration-change.ts';
import { Current } from './current.ts';
import { createEgress } from './egress/index.ts';
import { endFiles, FILE_LIMITS } from './files/index.ts';
import { endGuardrails, guardrailsReader } from './guardrails/index.ts';
import type { Readiness } from './health.ts';
import type { HttpLimits } from './http/limits.ts';
import { createHttpServer, type HttpServer } from './http/server.ts';
import {
  Concurrency,
  Credentials,
  Health,
  Identities,
  type InferenceParts,
  RememberedThinking,
  Running,
  regionOf,
  Sessions,
  Threads,
  TokenCounter,
  userHashSecret,
} from './inference/index.ts';
import { createJobs } from './jobs/index.ts';
import { createObservability, type Exposed, type Observability } from './observability/index.ts';
import { type OperationParts, operations, UNBUILT } from './operations.ts';
import { pageParts, type Serving, servingOf } from './page-parts.ts';
import { createTransport, Discovery, type LocalServer, outgoingOf } from './providers/index.ts';
import { Limiter } from './rate-limits/index.ts';
import { endMappings, oneWriter, syncJob } from './scim/index.ts';
import { sealedRows } from './sealed-rows.ts';
import { followNewKeys, Sealing, SealingError, sweepJob } from './sealing/index.ts';
import { createFederation } from './sign-in/index.ts';
import { createSpend, ENTERED_WITHIN_MS, followBalance, tidyLedgerJob } from './spend/index.ts';
import { inWords, refusedAt } from './start-checks.ts';
import { StartError } from './start-error.ts';
import { openChanges } from './storage/changes.ts';
import type { Target } from './storage/connection.ts';
import { openDatabase, type Queryable } from './storage/database.ts';
import { refresher } from './storage/followed.ts';
import { UnheardError } from './storage/listener.ts';
import { cleanTranscriptsJob, createTranscripts } from './transcripts/index.ts';
import { createTerms } from './workspaces/index.ts';

/** How long a client may take to read the error that ends its response. */
const LAST_WORDS_MS = 1_000;

export interface AppOptions {
  /** Addresses where local model servers are looked for; default: their standard ports. */
  localServers?: readonly LocalServer[];
  config: Config;
  /** The migrated database. */
  target: Target;
  clock: Clock;
  log: Log;
  /** Random source to choose between equally good endpoints; default Math.random. */
  random?: () => number;
  /** Metrics of the other serving processes of this gateway; absent: there are none. */
  colleagues?: () => Promise<Exposed[][]>;
}

export interface App {
  /** Creates the first keys on the first start; `show` gets them before they are committed. */
  bootstrap(show?: (keys: readonly FirstKey[]) => void): Promise<void>;
  /** Starts to serve. */
  listen(): Promise<Serving>;
  /** Providers, models and account settings of a new configuration, from the next request on. */
  reload(config: Config): void;
  readonly use: Use;
  /** Metrics of this process, for another process that reports the sum of all. */
  report(): Promise<Exposed[]>;
  /** `/ready` returns 503 from now on; everything else continues. */
  retire(): void;
  /** Waits for open responses, at most `limits.drainMs`, ends the remaining ones with an error, then closes everything. */
  close(): Promise<void>;
}

export async function createApp(options: AppOptions): Promise<App> {
  const { config, clock, log, localServers } = options;
  const current = new Current(config, log);
  const parts = await openParts(options, current);
  const { server, observability, readiness } = serverOf(options, current, parts);
  let ownPort = config.port;
  const discovery = new Discovery({
    transport: parts.transport,
    clock,
    log,
    ...(localServers && { servers: localServers }),
    configured: () => current.settings.providers,
    ownPort: () => ownPort,
    changed: (found) => current.found(found),
  });
  return {
    async bootstrap(show) {
      const { management, inference } = config.firstKeys;
      await parts.access.bootstrap({ management: management?.reveal(), inference: inference?.reveal() }, show);
    },
    use: {
      get quiet() {
        return server.exchanges === 0;
      },
      get begun() {
        return parts.running.begun;
      },
    },
    async listen() {
      const { port } = await server.listen(config.port, config.host).catch(refusedAt(config));
      readiness.ready = true;
      ownPort = port;
      if (config.outgoing.discovery) void discovery.start();
      parts.jobs.start();
      const host = config.host.includes(':') ? `[${config.host}]` : config.host;
      return servingOf(`${config.tls ? 'https' : 'http'}://${host}:${port}`, current.catalog);
    },
    reload(next) {
      const before = current.settings;
      current.reload(next);
      recordReload(parts.database, before, next, clock.now()).catch((error: unknown) => {
        log.warn('cannot write the audit log entry of this reload', { error });
      });
    },
    report: () => observability.report(),
    retire() {
      readiness.ready = false;
    },
    async close() {
      readiness.ready = false;
      discovery.close();
      const late = clock.timer(config.limits.drainMs, () => parts.running.interrupt());
      await server.drain(config.limits.drainMs + LAST_WORDS_MS);
      late.cancel();
      await closeParts(parts);
      log.flush();
    },
  };
}

type Parts = Awaited<ReturnType<typeof openParts>>;

/** Parts that must be closed: connections, timers, buffered writes. */
async function openParts({ config, target, clock, log, random = Math.random }: AppOptions, current: Current) {
  const database = await openDatabase({ target, clock, log }).catch(inWords);
  const changes = await openChanges({ target, database, clock, log }).catch(async (error: unknown) => {
    await database.close();
    throw error instanceof UnheardError ? new StartError(error.message, { cause: error }) : error;
  });
  const shared = { database, changes, clock, log };
  const sealing = new Sealing({ database, clock, settings: config.sealing, freshness: changes.freshness });
  const ownKeys = await followOwnKeys({
    ...shared,
    sealing,
    providers: () => current.settings.providers,
    otherNames: (modelId) => current.lastingNames(modelId),
  }).catch(async (error: unknown) => {
    await changes.close();
    await database.close();
    throw error instanceof SealingError ? new StartError(error.message, { cause: error }) : error;
  });
  const atEndOfTurn = endOfTurn();
  const retentionDays = () => current.settings.retention.generationsDays;
  const egress = createEgress({ clock, settings: () => current.settings.egress });
  const federation = createFederation({
    ...shared,
    ...{ sealing, egress },
    policies: () => current.settings.federation,
    callerOfKey: (hash) => access.callerOfKey(hash),
  });
  const access = createAccess({
    ...{ database, changes, clock },
    termsOf: createTerms(database),
    guardrailsOf: guardrailsReader(database),
    accessTokens: federation.tokens,
  });
  const jobs = createJobs(shared);
  const writer = oneWriter(database);
  const sync = syncJob({ ...shared, egress, writer, source: () => current.settings.scim.source });
  const scim = { database: writer, changes, clock, runSyncJobs: (tx: Queryable) => jobs.send(sync, {}, { tx }) };
  const configured = () => current.settings.account.balanceNano;
  const { responseCacheBytes: mostBytes, responseCacheAnswerBytes: answerBytes } = config.limits;
  const cache = createResponseCache({ database, clock, log, mostBytes, answerBytes });
  const transcripts = createTranscripts({
    ...{ database, clock, log, random },
    settings: () => current.settings.ioLogging,
    feedbackDays: retentionDays,
  });
  const blobs = createBlobs({ database, clock, log, backend: diskBackend(path.join(config.dataDir, 'blobs')) });
  const sweepKeys = sweepJob({ ...shared, sealing, rows: sealedRows });
  // While the database is down nothing can be sent. The job repeats.
  followNewKeys(changes, sealing, () => void jobs.send(sweepKeys, {}).catch(() => {}));
  jobs.register(sync);
  jobs.register(sweepKeys);
  jobs.register(tidyLedgerJob({ ...shared, retentionDays }));
  jobs.register(cleanCacheJob(cache));
  jobs.register(cleanBlobsJob(blobs));
  jobs.register(cleanTranscriptsJob(transcripts));
  return {
    ...{ database, changes, sealing, ownKeys, egress, federation, access, scim, random, endOfTurn: atEndOfTurn },
    ...{ jobs, cache, transcripts, blobs },
    spend: await createSpend({ ...shared, dataDir: config.dataDir, endOfTurn: atEndOfTurn }),
    balance: await followBalance({ ...shared, configured }),
    limiter: new Limiter(shared),
    transport: createTransport({ clock, log, ...outgoingOf(config) }),
    identities: new Identities(await userHashSecret(database)),
    statistics: createStatistics({ database, clock, log }),
    running: new Running(log),
    tokens: new TokenCounter(clock),
  };
}

/** Writers close before the parts that they write through. */
async function closeParts(parts: Parts): Promise<void> {
  await parts.jobs.close();
  await parts.transport.close();
  await parts.egress.close();
  await parts.tokens.close();
  await parts.spend.close();
  await parts.limiter.close();
  await parts.statistics.close();
  await parts.cache.close();
  await parts.transcripts.close();
  parts.ownKeys.close();
  await parts.blobs.close();
  await parts.changes.close();
  await parts.database.close();
}

/** Logs which stored credentials this machine cannot decrypt. */
function sealedProblem({ ownKeys, federation }: Parts): string | undefined {
  return ownKeys.problem ?? federation.keys.problem;
}

/** Whether revoked keys can be recognised, or the grace period still applies. */
function trusts({ database, changes: { freshness } }: Parts): boolean {
  return database.up || freshness.current || freshness.inGrace(freshness.provenAt);
}

function serverOf(options: AppOptions, current: Current, parts: Parts) {
  const { config, clock, log, colleagues } = options;
  const { access, changes, database, spend, transcripts, cache } = parts;
  const readiness: Readiness = {
    ready: false,
    problems: () => [
      ...(changes.freshness.current ? [] : ['change notifications do not arrive: each request reads the database']),
      ...(sealedProblem(parts) === undefined
        ? []
        : ['stored credentials cannot be decrypted on this machine; requests that need them are refused']),
    ],
    refuses: () => (trusts(parts) ? undefined : 'the database has been unreachable for longer than the grace period'),
  };
  const observability = createObservability({
    config,
    log,
    catalog: () => current.catalog,
    gauges: () => ({
      databaseUp: database.up,
      changesArrive: changes.freshness.current,
      credentialsOpen: sealedProblem(parts) === undefined,
      openRequests: server.exchanges,
      openGenerations: spend.backlog.open,
      waitingRows: spend.backlog.rows,
      journalBytes: spend.backlog.journalBytes,
      droppedContents: transcripts.dropped,
      droppedAnswers: cache.dropped,
    }),
    colleagues,
  });
  const server: HttpServer = createHttpServer<Caller>({
    operations: operations(operationParts(options, current, parts, observability, readiness)),
    authenticate: (headers) => access.authenticate(headers),
    admit: (caller, required) => access.permit(caller, required),
    userId: (caller) => caller.organizationId,
    unbuilt: UNBUILT,
    observe: (exchange) => observability.finished(exchange),
    clock,
    log,
    limits: httpLimits(config.limits),
    proxies: () => current.proxies,
    ...(config.tls && { tls: { cert: config.tls.certificate, key: config.tls.key.reveal() } }),
  });
  return { server, observability, readiness };
}

function operationParts(
  options: AppOptions,
  current: Current,
  parts: Parts,
  observability: Observability,
  readiness: Readiness,
): OperationParts {
  const { config, clock } = options;
  const { database, changes, sealing, access, federation, spend, transcripts, scim, blobs } = parts;
  const namespace = createNamespace(config.namespace);
  const catalog = () => current.catalog;
  const spendEntered = async () => {
    await sleep(clock, ENTERED_WITHIN_MS);
    await spend.flush();
  };
  return {
    workspaces: {
      ...{ database, changes, clock, spendEntered },
      knowsModel: (name) => current.catalog.find(name) !== undefined,
      toolName: (name) => fromWireName(name, namespace),
      ended: [endGuardrails(changes), endMappings, endOwnKeys(changes), endFiles(blobs)],
    },
    access: { database, changes, clock, spendEntered, usageOf: (keyIds) => spend.usageOf(keyIds) },
    guardrails: { database, changes, clock, spendEntered },
    byok: { database, changes, clock, sealing, providers: () => current.settings.providers },
    files: {
      ...{ database, blobs, clock, namespace: namespace.name, limits: FILE_LIMITS },
      isRegional: (host) => regionOf(host, current.settings.hosts) !== 'global',
    },
    scim,
    signIn: { database, changes, clock, federation, authenticate: (headers) => access.authenticate(headers) },
    inference: inferenceParts(options, current, parts, observability, namespace),
    transcripts: {
      ...{ transcripts, database, clock },
      hasGeneration: async (id, organizationId) => (await spend.findGeneration(id, { organizationId })) !== undefined,
    },
    limits: config.limits,
    observability: { metrics: observability.metrics, spend, database, clock, catalog },
    analytics: { database, clock, catalog, entered: () => spend.flush() },
    ...{ audit: { database }, pages: pageParts(current), readiness },
  };
}

function inferenceParts(
  { config, clock, log }: AppOptions,
  current: Current,
  parts: Parts,
  observability: Observability,
  namespace: Namespace,
): InferenceParts {
  const { spend, statistics, ownKeys, cache, transcripts, limiter, running, transport, egress, tokens } = parts;
  const { random, endOfTurn } = parts;
  const health = new Health(clock);
  return {
    ...{
      spend,
      statistics,
      ownKeys,
      transcripts,
      running,
      transport,
      egress,
      tokens,
      health,
      random,
      endOfTurn,
      clock,
      log,
    },
    catalog: () => current.catalog,
    refresh: refresher(parts.changes.freshness, [ownKeys, parts.balance]),
    cached: { answers: cache, headerPrefix: namespace.headerPrefix },
    pace: { limiter, defaults: () => current.settings.rateLimits },
    attempted: ({ id }, outcome) => observability.attempted(id, outcome),
    concurrency: new Concurrency(),
    credentials: new Credentials(health),
    sessions: new Sessions(clock),
    threads: new Threads(spend),
    thinking: new RememberedThinking(clock),
    policy: () => current.settings.account,
    promptCaching: () => current.settings.account.promptCaching,
    hedgeAfterMs: () => current.settings.routing.hedgeAfterMs,
    limits: config.limits,
    hosts: () => current.settings.hosts,
    accountBalanceNano: () => parts.balance.current(),
    hashUser: (caller, user) => parts.identities.hash(caller, user),
    keepAliveComment: `: ${namespace.keepAlive}\n\n`,
    metadataKey: namespace.metadataKey,
  };
}

function httpLimits(limits: Limits): Partial<HttpLimits> {
  return {
    headerBytes: limits.headerBytes,
    headerMs: limits.headersArrivalMs,
    bodyBytes: limits.controlBodyBytes,
    bodyMs: limits.requestArrivalMs,
    connections: limits.connections,
    keepAliveMs: limits.idleConnectionMs,
    depth: limits.nestingDepth,
  };
}
