/**
 * One serving process, put together: the only place that wires the parts. With several workers each runs one of these
 * on the same database and port; the primary (`primary.ts`) has started the database and migrated it before.
 */
import { type Caller, createAccess, type FirstKey } from './access/index.ts';
import { type Clock, sleep } from './base/clock.ts';
import type { Config, Limits } from './base/config.ts';
import { type Log, redact } from './base/log.ts';
import { createNamespace, fromWireName } from './base/namespace.ts';
import { endOwnKeys, followOwnKeys } from './byok/index.ts';
import { createResponseCache } from './cache/index.ts';
import { buildCatalog, type Catalog, createStatistics, type Facts, loadFacts } from './catalog/index.ts';
import { recordReload } from './configuration-change.ts';
import { createEgress } from './egress/index.ts';
import { endGuardrails, guardrailsReader } from './guardrails/index.ts';
import { TrustedProxies } from './http/forwarded.ts';
import type { HttpLimits } from './http/limits.ts';
import { createHttpServer, type HttpServer } from './http/server.ts';
import {
  Concurrency,
  Credentials,
  Health,
  Identities,
  type InferenceParts,
  Running,
  Sessions,
  TokenCounter,
  userHashSecret,
} from './inference/index.ts';
import { createObservability, type Exposed } from './observability/index.ts';
import { operations } from './operations.ts';
import { createTransport, Discovery, KINDS, type LocalServer, outgoingOf, providersFrom } from './providers/index.ts';
import { Limiter } from './rate-limits/index.ts';
import { endMappings, oneWriter, SyncRunner } from './scim/index.ts';
import { sealedRows } from './sealed-rows.ts';
import { Sealing, SealingError, Sweeper } from './sealing/index.ts';
import { createFederation } from './sign-in/index.ts';
import { createSpend, followBalance } from './spend/index.ts';
import { StartError } from './start-error.ts';
import { openChanges } from './storage/changes.ts';
import type { Target } from './storage/connection.ts';
import { openDatabase } from './storage/database.ts';
import { createTranscripts } from './transcripts/index.ts';
import { createTerms } from './workspaces/index.ts';

/** How long a client is given to read that its answer ends here. */
const LAST_WORDS_MS = 1_000;
/** Within this other processes have entered what they had settled; they wait a tenth of a second for more. */
const OTHERS_ENTER_MS = 200;

export interface AppOptions {
  /** Where model servers of this machine are looked for; default their usual ports. */
  localServers?: readonly LocalServer[];
  config: Config;
  /** Where the migrated database is. */
  target: Target;
  clock: Clock;
  log: Log;
  /** What endpoints are chosen with that are equally good; default Math.random. */
  random?: () => number;
  /** What the other serving processes of this gateway report of themselves; absent: there are none. */
  colleagues?: () => Promise<Exposed[][]>;
}

export interface App {
  /** On the very first start makes the first keys; `show` is called with them before they are committed. */
  bootstrap(show?: (keys: readonly FirstKey[]) => void): Promise<void>;
  /** Starts to serve; resolves with the address, `http://127.0.0.1:8484`. */
  listen(): Promise<string>;
  /** Providers, models and account settings of a new configuration, from the next request on. */
  reload(config: Config): void;
  /** Nobody is being served. */
  readonly quiet: boolean;
  /** What this process counts, for a colleague that is asked for the figures of all. */
  report(): Promise<Exposed[]>;
  /** Lets open answers end, `limits.drainMs` at most, tells those that have not that they end here, then closes everything. */
  close(): Promise<void>;
}

export async function createApp({
  config,
  target,
  clock,
  log,
  localServers,
  random = Math.random,
  colleagues,
}: AppOptions): Promise<App> {
  const database = await openDatabase({ target, clock, log });
  const changes = await openChanges({ target, database, clock, log });
  let settings = config;
  const sealing = new Sealing({ database, clock, settings: config.sealing });
  const ownKeys = await followOwnKeys({
    ...{ database, changes, clock, log, sealing },
    providers: () => settings.providers,
    otherNames: (modelId) => lastingNames(catalog, modelId),
  }).catch(async (error: unknown) => {
    await changes.close();
    await database.close();
    throw error instanceof SealingError ? new StartError(error.message, { cause: error }) : error;
  });
  const sweeper = new Sweeper({ database, changes, clock, log, sealing, rows: sealedRows });
  const spend = await createSpend({
    database,
    changes,
    clock,
    log,
    dataDir: config.dataDir,
    retentionDays: () => settings.retention.generationsDays,
  });
  const balance = await followBalance({ database, changes, log, configured: () => settings.account.balanceNano });
  const egress = createEgress({ clock, settings: () => settings.egress });
  const federation = createFederation({
    ...{ database, changes, clock, log, sealing, egress },
    policies: () => settings.federation,
    callerOfKey: (hash) => access.callerOfKey(hash),
  });
  const access = createAccess({
    ...{ database, changes, clock },
    termsOf: createTerms(database),
    guardrailsOf: guardrailsReader(database),
    accessTokens: federation.tokens,
  });
  const limiter = new Limiter({ database, changes, clock, log });
  const transport = createTransport({ clock, log, ...outgoingOf(config) });
  const scim = { database: oneWriter(database), changes, clock };
  const syncJobs = new SyncRunner({
    ...{ database, changes, egress, clock, log },
    writer: scim.database,
    source: () => settings.scim.source,
  });
  const namespace = createNamespace(config.namespace);
  const identities = new Identities(await userHashSecret(database));
  const health = new Health(clock);
  const statistics = createStatistics({ database, clock, log });
  const cache = createResponseCache({
    ...{ database, clock, log },
    mostBytes: config.limits.responseCacheBytes,
    answerBytes: config.limits.responseCacheAnswerBytes,
  });
  const transcripts = createTranscripts({
    ...{ database, clock, log, random },
    settings: () => settings.ioLogging,
    feedbackDays: () => settings.retention.generationsDays,
  });
  const running = new Running();
  /** Providers of this machine that were found, beside the configured ones. */
  let local: Config['providers'] = [];
  let facts = loadFacts(config.dataDir, log);
  let catalog = catalogOf(config, local, facts);
  const observability = createObservability({
    config,
    log,
    catalog: () => catalog,
    gauges: () => ({
      databaseUp: database.up,
      openRequests: server.exchanges,
      openGenerations: spend.backlog.open,
      waitingRows: spend.backlog.rows,
      journalBytes: spend.backlog.journalBytes,
      droppedContents: transcripts.dropped,
      droppedAnswers: cache.dropped,
    }),
    colleagues,
  });
  const tokens = new TokenCounter(clock);
  const inference: InferenceParts = {
    catalog: () => catalog,
    spend,
    statistics,
    ownKeys,
    cached: { answers: cache, headerPrefix: namespace.headerPrefix },
    transcripts,
    pace: { limiter, defaults: () => settings.rateLimits },
    attempted: ({ id }, outcome) => observability.attempted(id, outcome),
    health,
    concurrency: new Concurrency(),
    running,
    credentials: new Credentials(health),
    sessions: new Sessions(clock),
    random,
    policy: () => settings.account,
    hedgeAfterMs: () => settings.routing.hedgeAfterMs,
    transport,
    egress,
    tokens,
    clock,
    log,
    limits: config.limits,
    hosts: () => settings.hosts,
    accountBalanceNano: () => balance.current(),
    hashUser: (caller, user) => identities.hash(caller, user),
    keepAliveComment: `: ${namespace.keepAlive}\n\n`,
    metadataKey: namespace.metadataKey,
  };
  let proxies = new TrustedProxies(config.trustedProxies);
  let ownPort = config.port;
  const discovery = new Discovery({
    transport,
    clock,
    log,
    ...(localServers && { servers: localServers }),
    configured: () => settings.providers,
    ownPort: () => ownPort,
    changed: (found) => {
      local = found;
      catalog = catalogOf(settings, local, facts);
    },
  });
  const readiness = { ready: false };
  const spendEntered = async () => {
    await sleep(clock, OTHERS_ENTER_MS);
    await spend.flush();
  };
  const server: HttpServer = createHttpServer<Caller>({
    operations: operations({
      workspaces: {
        database,
        changes,
        clock,
        knowsModel: (name) => catalog.find(name) !== undefined,
        toolName: (name) => fromWireName(name, namespace),
        spendEntered,
        ended: [endGuardrails(changes), endMappings, endOwnKeys(changes)],
      },
      access: { database, changes, clock, usageOf: (keyIds) => spend.usageOf(keyIds), spendEntered },
      guardrails: { database, changes, clock, spendEntered },
      byok: { database, changes, clock, sealing, providers: () => settings.providers },
      scim,
      signIn: { database, changes, clock, federation, authenticate: (headers) => access.authenticate(headers) },
      inference,
      transcripts: {
        ...{ transcripts, database, clock },
        hasGeneration: async (id, organizationId) => (await spend.findGeneration(id, { organizationId })) !== undefined,
      },
      limits: config.limits,
      observability: { metrics: observability.metrics, spend, database, clock, catalog: () => catalog },
      audit: { database },
      analytics: { database, clock, catalog: () => catalog, entered: () => spend.flush() },
      readiness,
    }),
    authenticate: (headers) => access.authenticate(headers),
    admit: (caller, required) => access.permit(caller, required),
    userId: (caller) => caller.organizationId,
    observe: (exchange) => observability.finished(exchange),
    clock,
    log,
    limits: httpLimits(config.limits),
    proxies: () => proxies,
    ...(config.tls && { tls: { cert: config.tls.certificate, key: config.tls.key.reveal() } }),
  });
  return {
    async bootstrap(show) {
      const { management, inference } = config.firstKeys;
      await access.bootstrap({ management: management?.reveal(), inference: inference?.reveal() }, show);
    },
    get quiet() {
      return server.exchanges === 0;
    },

    async listen() {
      const { port } = await server.listen(config.port, config.host);
      readiness.ready = true;
      ownPort = port;
      if (config.outgoing.discovery) void discovery.start();
      syncJobs.wake();
      sweeper.start();
      const host = config.host.includes(':') ? `[${config.host}]` : config.host;
      return `${config.tls ? 'https' : 'http'}://${host}:${port}`;
    },
    reload(next) {
      facts = loadFacts(config.dataDir, log);
      catalog = catalogOf(next, local, facts);
      const before = settings;
      settings = next;
      recordReload(database, before, next, clock.now()).catch((error: unknown) => {
        log.warn('the audit log has no entry of this reload', { error });
      });
      proxies = new TrustedProxies(next.trustedProxies);
    },
    report: () => observability.report(),
    async close() {
      readiness.ready = false;
      discovery.close();
      const late = clock.timer(config.limits.drainMs, () => running.interrupt());
      await server.drain(config.limits.drainMs + LAST_WORDS_MS);
      late.cancel();
      await syncJobs.close();
      await transport.close();
      await egress.close();
      await tokens.close();
      await spend.close();
      await limiter.close();
      await statistics.close();
      await cache.close();
      await transcripts.close();
      ownKeys.close();
      await sweeper.close();
      await changes.close();
      await database.close();
      log.flush();
    },
  };
}

function catalogOf(config: Config, local: Config['providers'], facts: Facts) {
  const providers = [...config.providers, ...local];
  for (const { credentials, headers = {} } of config.providers) {
    for (const credential of credentials) redact(credential.reveal());
    // Short ones are words, such as a region, and no secrets.
    for (const header of Object.values(headers)) if (header.reveal().length >= 16) redact(header.reveal());
  }
  return buildCatalog(providers, providersFrom({ providers }), KINDS, facts);
}

/** What the facts call a model whose id the configuration chose. */
function lastingNames(catalog: Catalog, modelId: string): string[] {
  const facts = catalog.find(modelId)?.facts;
  return facts === undefined ? [] : [facts.id, facts.canonical_slug];
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
