/**
 * One serving process, wired from its parts (`server/parts.ts`) and what operations need of them
 * (`server/operation-parts.ts`). With several workers each runs one of these on the same database and port, after the
 * primary (`server/primary.ts`) has started and migrated the database.
 */
import { type Caller, type FirstKey, hashToken } from './access/index.ts';
import type { Config, Limits } from './base/config.ts';
import type { Use } from './base/release-memory.ts';
import { ConsoleSessions } from './console/index.ts';
import { expireFilesJob, removeCopiesJob } from './files/index.ts';
import { unservedForGoogle } from './formats/index.ts';
import type { HttpLimits } from './http/limits.ts';
import { createHttpServer, type HttpServer } from './http/server.ts';
import { createObservability, type Exposed } from './observability/index.ts';
import { operations, UNSUPPORTED } from './operations.ts';
import { Discovery } from './providers/index.ts';
import { recordReload } from './server/audit-reload.ts';
import type { Readiness } from './server/health.ts';
import { LiveConfig } from './server/live-config.ts';
import { copyRemovalParts, operationParts } from './server/operation-parts.ts';
import { type AppOptions, closeParts, openParts, type Parts } from './server/parts.ts';
import { refusedAt } from './server/start-checks.ts';
import { type Serving, servingOf } from './server/start-summary.ts';
import { tidyVectorStoresJob } from './vector-stores/index.ts';

/** How long a client may take to read the error that ends its response. */
const LAST_WORDS_MS = 1_000;

export interface App {
  /**
   * Creates the first keys on the first start; `show` gets them before they are committed. Returns the code of a one-time
   * link to the console if it generated the management key.
   */
  bootstrap(show?: (keys: readonly FirstKey[]) => void): Promise<string | undefined>;
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
  const live = new LiveConfig(config, log);
  const parts = await openParts(options, live);
  const { server, observability, readiness, batches, interns, responses, videos } = serverOf(options, live, parts);
  let ownPort = config.port;
  const discovery = new Discovery({
    transport: parts.transport,
    clock,
    log,
    ...(localServers && { servers: localServers }),
    configured: () => live.settings.providers,
    ownPort: () => ownPort,
    changed: (found) => live.found(found),
  });
  return {
    async bootstrap(show) {
      const { management, inference } = config.firstKeys;
      const chosen = { management: management?.reveal(), inference: inference?.reveal() };
      return consoleCode(parts, await parts.access.bootstrap(chosen, show));
    },
    use: {
      get quiet() {
        return server.exchanges === 0;
      },
      get begun() {
        return parts.inFlight.begun;
      },
    },
    async listen() {
      const { port } = await server.listen(config.port, config.host).catch(refusedAt(config));
      readiness.ready = true;
      ownPort = port;
      interns.listens(config.host, port);
      if (config.outgoing.discovery) void discovery.start();
      parts.jobs.start(options.jobs);
      batches.start();
      const host = config.host.includes(':') ? `[${config.host}]` : config.host;
      return servingOf(`${config.tls ? 'https' : 'http'}://${host}:${port}`, live.catalog);
    },
    reload(next) {
      const before = live.settings;
      live.reload(next);
      Promise.all([parts.releases.reload(), parts.containers.reload()]).catch((error: unknown) =>
        log.warn('sandboxes keep their earlier egress rules', { error }),
      );
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
      const drained = clock.timer(config.limits.drainMs, () => parts.inFlight.interrupt());
      const batchesClosed = batches.close();
      videos.leave();
      await server.drain(config.limits.drainMs + LAST_WORDS_MS);
      drained.cancel();
      await batchesClosed;
      await interns.close();
      await responses.close(config.limits.drainMs + LAST_WORDS_MS);
      await videos.close(LAST_WORDS_MS);
      await closeParts(parts);
      log.flush();
    },
  };
}

/** Undefined if the operator chose the management key: no link is needed then. */
async function consoleCode({ consoleSessions }: Parts, keys: readonly FirstKey[] | null): Promise<string | undefined> {
  const hashOf = (kind: FirstKey['kind']) =>
    keys?.filter((key) => key.kind === kind).map(({ token }) => hashToken(token))[0];
  const keyHash = hashOf('management');
  if (keyHash === undefined || !keys?.find(({ kind }) => kind === 'management')?.generated) return undefined;
  return consoleSessions.createLink({ keyHash, inferenceKeyHash: hashOf('inference') ?? null });
}

/** Logs which stored credentials this machine cannot decrypt. */
function sealedProblem({ byokCredentials, federation }: Parts): string | undefined {
  return byokCredentials.problem ?? federation.keys.problem;
}

/** Whether revoked keys can be recognized, or the grace period still applies. */
function trusts({ database, changes: { freshness } }: Parts): boolean {
  return database.up || freshness.current || freshness.inGrace(freshness.provenAt);
}

function serverOf(options: AppOptions, live: LiveConfig, parts: Parts) {
  const { config, clock, log, peerMetrics } = options;
  const { access, changes, database, spend, transcripts, cache, jobs, exporter, tracer } = parts;
  const readiness: Readiness = {
    ready: false,
    problems: () => [
      ...(changes.freshness.current ? [] : ['change notifications do not arrive: each request reads the database']),
      ...(sealedProblem(parts) === undefined
        ? []
        : ['stored credentials cannot be decrypted on this machine; requests that need them are refused']),
      ...(jobs.failing ? ['background jobs do not run: their tables in the database cannot be used'] : []),
    ],
    refuses: () => (trusts(parts) ? undefined : 'the database has been unreachable for longer than the grace period'),
  };
  const observability = createObservability({
    config,
    log,
    catalog: () => live.catalog,
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
      droppedRecords: exporter.dropped,
      droppedSpans: tracer?.dropped,
    }),
    peerMetrics,
    tracer,
  });
  const wired = operationParts(options, live, parts, observability, readiness);
  for (const kind of [expireFilesJob(wired.files), tidyVectorStoresJob(wired.vectorStores)]) jobs.register(kind);
  jobs.register(wired.vectorStores.addFile);
  const [{ runner: responses }, { runner: videos }] = [wired.responses, wired.videos];
  for (const { kinds } of [wired.batches.runner, wired.interns.runtime, responses, videos]) {
    for (const kind of kinds) jobs.register(kind);
  }
  parts.jobs.register(removeCopiesJob(copyRemovalParts(options, live, parts)));
  const server: HttpServer = createHttpServer<Caller>({
    operations: operations(wired, options.formats),
    authenticate: (headers, operation) =>
      ConsoleSessions.isPresented(headers)
        ? parts.consoleSessions.callerOf({ headers, operation })
        : access.authenticate(headers),
    permit: access.permit,
    userId: (caller) => caller.organizationId,
    unsupported: UNSUPPORTED,
    unserved: { reason: unservedForGoogle, form: '/v1beta/models' },
    observe: (exchange) => observability.finished(exchange),
    clock,
    log,
    limits: httpLimits(config.limits),
    proxies: () => live.proxies,
    endOfTurn: parts.endOfTurn,
    ...(config.tls && { tls: { cert: config.tls.certificate, key: config.tls.key.reveal() } }),
  });
  return {
    server,
    observability,
    readiness,
    batches: wired.batches.runner,
    interns: wired.interns.runtime,
    responses,
    videos,
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
