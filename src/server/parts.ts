/** The parts of a serving process that must be closed: connections, timers, buffered writes. */
import manifest from '../../package.json' with { type: 'json' };
import { type Access, type AccessChecks, createAccess, followInternProgramme } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import type { Config, EgressSettings } from '../base/config.ts';
import { endOfTurn } from '../base/end-of-turn.ts';
import type { Log } from '../base/log.ts';
import { type Blobs, cleanBlobsJob, configuredBackends, createBlobs } from '../blobs/index.ts';
import { startByokCache } from '../byok/index.ts';
import { cleanCacheJob, createResponseCache } from '../cache/index.ts';
import { createStatistics } from '../catalog/index.ts';
import { ConsoleSessions } from '../console/index.ts';
import { Containers, expireContainersJob, isOwnedByContainer } from '../containers/index.ts';
import { startExporter } from '../destinations/index.ts';
import { createEgress, type Egress } from '../egress/index.ts';
import { EgressProxy, socketFolderFor } from '../egress-proxy/index.ts';
import type { ServedFormat } from '../formats/conversation/format.ts';
import { guardrailsReader } from '../guardrails/index.ts';
import {
  DocxReader,
  Identities,
  PageReader,
  PdfReader,
  RequestContainers,
  RequestsInFlight,
  regionOf,
  TokenCounter,
  userHashSecret,
} from '../inference/index.ts';
import type { AgentProfile } from '../interns/index.ts';
import { createJobs, type StartOfJobs } from '../jobs/index.ts';
import type { Exposed } from '../observability/index.ts';
import { presetsReader } from '../presets/index.ts';
import { createTransport, type LocalServer, outgoingOf } from '../providers/index.ts';
import { Limiter } from '../rate-limits/index.ts';
import { remoteDoor, Sandboxes } from '../sandboxes/index.ts';
import { oneWriter, syncJob } from '../scim/index.ts';
import { sealedRows } from '../sealed-rows.ts';
import { followNewKeys, Sealing, SealingError, sweepJob } from '../sealing/index.ts';
import { createFederation } from '../sign-in/index.ts';
import { countTotalsJob, createSpend, followBalance, tidyLedgerJob } from '../spend/index.ts';
import { openChanges } from '../storage/changes.ts';
import type { Target } from '../storage/connection.ts';
import { type Changes, openDatabase, type PooledDatabase, type Queryable } from '../storage/database.ts';
import { NotificationsError } from '../storage/listener.ts';
import type { Tracer } from '../tracing/index.ts';
import { cleanTranscriptsJob, createTranscripts } from '../transcripts/index.ts';
import { SecretReleases } from '../vault/index.ts';
import { createTerms } from '../workspaces/index.ts';
import type { LiveConfig } from './live-config.ts';
import { forOperator } from './start-checks.ts';
import { StartError } from './start-error.ts';

export interface AppOptions {
  /** Addresses where local model servers are looked for; default: their standard ports. */
  localServers?: readonly LocalServer[];
  /** The drivers for sandboxes; default: those of the product. */
  sandboxDrivers?: ConstructorParameters<typeof Sandboxes>[1];
  /** The program that interns are; default: as configured. */
  agent?: AgentProfile;
  /** Where the built console is; default: next to the bundle that runs. */
  consoleFolder?: string;
  /** The formats that conversations can be held in; default: all. */
  formats?: readonly ServedFormat[];
  config: Config;
  /** The migrated database. */
  target: Target;
  clock: Clock;
  log: Log;
  /** Random source to choose between equally good endpoints; default Math.random. */
  random?: () => number;
  /** When background jobs begin; default `now`. */
  jobs?: StartOfJobs;
  /** Collects the metrics of the other workers; absent with a single process. */
  peerMetrics?: () => Promise<Exposed[][]>;
}

const { version } = manifest;

/** The key of an intern is confined to that intern. */
const SCOPES: AccessChecks['scopes'] = {
  intern: ({ internId }, params) => internId === null || internId === params['internId']?.toLowerCase(),
  interns: ({ internId }) => internId === null,
};

export type Parts = Awaited<ReturnType<typeof openParts>>;

export async function openParts(options: AppOptions, live: LiveConfig) {
  const { config, clock, log, random = Math.random } = options;
  const { database, changes } = await connect(options);
  const shared = { database, changes, clock, log };
  const sealing = new Sealing({ database, clock, settings: config.sealing, freshness: changes.freshness });
  const byokCredentials = await startByokCache({
    ...shared,
    sealing,
    providers: () => live.settings.providers,
    otherNames: (modelId) => live.lastingNames(modelId),
  }).catch(async (error: unknown) => {
    await changes.close();
    await database.close();
    throw error instanceof SealingError ? new StartError(error.message, { cause: error }) : error;
  });
  const atEndOfTurn = endOfTurn();
  const retentionDays = () => live.settings.retention.generationsDays;
  const { egress, operatorEgress, destinationEgress } = egressesOf(live, clock);
  const { federation, programme, access } = await openAccess(live, shared, { sealing, egress });
  const jobs = createJobs(shared);
  const writer = oneWriter(database);
  const sync = syncJob({ ...shared, egress, writer, source: () => live.settings.scim.source });
  const scim = { database: writer, changes, clock, runSyncJobs: (tx: Queryable) => jobs.send(sync, {}, { tx }) };
  const configured = () => live.settings.account.balanceNano;
  const { responseCacheBytes: mostBytes, responseCacheAnswerBytes: answerBytes } = config.limits;
  const cache = createResponseCache({ database, clock, log, mostBytes, answerBytes });
  const transcripts = createTranscripts({
    ...{ database, clock, log, random },
    settings: () => live.settings.ioLogging,
    feedbackDays: retentionDays,
  });
  const blobs = createBlobs({ database, clock, log, ...configuredBackends(config) });
  const isolated = await startSandboxes(options, live, { ...shared, sealing, blobs });
  const sweepKeys = sweepJob({ ...shared, sealing, rows: sealedRows });
  // While the database is down nothing can be sent. The job repeats.
  followNewKeys(changes, sealing, () => void jobs.send(sweepKeys, {}).catch(() => {}));
  const exporter = await startExporter({ ...shared, sealing, jobs, egress: destinationEgress, version });
  const expiring = expireContainersJob({ ...shared, blobs });
  const cleaning = [cleanCacheJob(cache), cleanBlobsJob(blobs), cleanTranscriptsJob(transcripts), expiring];
  const ledger = [tidyLedgerJob({ ...shared, retentionDays }), countTotalsJob(shared)];
  const kinds = [sync, sweepKeys, ...ledger, ...cleaning, ...exporter.jobKinds];
  for (const kind of kinds) jobs.register(kind);
  const tracer = await tracerOf(options, operatorEgress);
  return {
    ...{ database, changes, sealing, byokCredentials, egress, operatorEgress, federation },
    ...{ access, programme, scim, random, endOfTurn: atEndOfTurn },
    consoleSessions: new ConsoleSessions({ ...shared, access }),
    ...{ jobs, cache, transcripts, blobs, ...isolated, exporter, destinationEgress, tracer },
    spend: await createSpend({ ...shared, version, dataDir: config.dataDir, endOfTurn: atEndOfTurn }),
    balance: await followBalance({ ...shared, configured }),
    limiter: new Limiter(shared),
    transport: createTransport({ clock, log, endOfTurn: atEndOfTurn, ...outgoingOf(config) }),
    identities: new Identities(await userHashSecret(database)),
    statistics: createStatistics({ database, clock, log }),
    inFlight: new RequestsInFlight(log),
    ...readersOf({ clock, log }),
  };
}

interface Shared {
  database: PooledDatabase;
  changes: Changes;
  clock: Clock;
  log: Log;
}

async function connect({ target, clock, log }: AppOptions): Promise<Pick<Shared, 'database' | 'changes'>> {
  const database = await openDatabase({ target, clock, log }).catch(forOperator);
  const changes = await openChanges({ target, database, clock, log }).catch(async (error: unknown) => {
    await database.close();
    throw error instanceof NotificationsError ? new StartError(error.message, { cause: error }) : error;
  });
  return { database, changes };
}

/** Who may call, and what for. */
async function openAccess(live: LiveConfig, shared: Shared, parts: { sealing: Sealing; egress: Egress }) {
  const { database } = shared;
  const federation = createFederation({
    ...shared,
    ...parts,
    policies: () => live.settings.federation,
    callerOfKey: (hash) => access.callerOfKey(hash),
  });
  const programme = await followInternProgramme({ ...shared, settings: () => live.settings.internProgramme });
  const access: Access = createAccess({
    ...shared,
    termsOf: createTerms(database, presetsReader(database)),
    guardrailsOf: guardrailsReader(database),
    accessTokens: federation.tokens,
    checks: {
      programmes: { interns: (caller) => programme.includes(caller) },
      scopes: SCOPES,
      regionOf: (host) => regionOf(host, live.settings.hosts),
    },
  });
  return { federation, programme, access };
}

/** Loads nothing unless the operator wants traces. */
async function tracerOf({ config, clock, log }: AppOptions, egress: Egress): Promise<Tracer | undefined> {
  if (config.tracing === null) return undefined;
  const { startTracer } = await import('../tracing/index.ts');
  return startTracer({ settings: config.tracing, clock, log, egress, version });
}

interface Isolated extends Shared {
  sealing: Sealing;
  blobs: Blobs;
}

/** Everything that untrusted code needs. Removes what killed gateways have left. */
async function startSandboxes({ config, sandboxDrivers }: AppOptions, live: LiveConfig, parts: Isolated) {
  const { sandboxes: settings, dataDir, outgoing } = config;
  const egressProxy = egressProxyOf(config, live, parts);
  const facts = { settings, dataDir, extraCa: outgoing.extraCa };
  const sandboxes = new Sandboxes({ ...facts, ...parts, egressProxy }, sandboxDrivers);
  await sandboxes.sweep(isOwnedByContainer);
  const egressRules = () => live.settings.egressProxy;
  const containers = new Containers({ ...parts, sandboxes, settings, egress: egressRules });
  return {
    ...{ egressProxy, sandboxes, containers, requestContainers: new RequestContainers(containers) },
    releases: new SecretReleases({ ...parts, settings: egressRules }),
  };
}

/** What works in threads of its own, which start when they are needed. */
function readersOf(parts: { clock: Clock; log: Log }) {
  const documents = { pdf: new PdfReader(parts), docx: new DocxReader(parts), pages: new PageReader(parts) };
  return { tokens: new TokenCounter(parts.clock), ...documents };
}

/** Fetches for requests never wait for destinations, so these have a pool of their own. */
function egressesOf(live: LiveConfig, clock: Clock) {
  return {
    egress: createEgress({ clock, settings: () => live.settings.egress }),
    destinationEgress: createEgress({ clock, settings: () => live.settings.egress }),
    /** For addresses of the configuration. */
    operatorEgress: createEgress({ clock, settings: () => ANYWHERE }),
  };
}

/** For addresses that the operator has configured: they may be private, and use any port. */
const ANYWHERE: EgressSettings = { networks: ['0.0.0.0/0', '::/0'], ports: [{ from: 1, to: 65_535 }] };

/** Starts no process before a sandbox needs it. */
function egressProxyOf(config: Config, live: LiveConfig, { clock, log }: { clock: Clock; log: Log }): EgressProxy {
  const { extraCa } = config.outgoing;
  const settings = () => ({ networks: live.settings.egress.networks, extraCa });
  const { user } = config.egressProxy;
  const door = remoteDoor(config.sandboxes);
  return new EgressProxy({
    ...{ folder: socketFolderFor(config.dataDir), settings, clock, log },
    ...(door !== undefined && { door }),
    ...(user !== null && { user: { uid: user, gid: user } }),
  });
}

/** Writers close before the parts that they write through. */
export async function closeParts(parts: Parts): Promise<void> {
  await parts.exporter.close();
  await parts.tracer?.close();
  await parts.jobs.close();
  await parts.transport.close();
  await parts.egress.close();
  await parts.destinationEgress.close();
  await parts.operatorEgress.close();
  await parts.containers.close();
  await parts.sandboxes.close();
  parts.releases.end();
  await parts.egressProxy.end();
  await Promise.all([parts.tokens, parts.pdf, parts.docx, parts.pages].map((each) => each.close()));
  await parts.spend.close();
  await parts.limiter.close();
  await parts.statistics.close();
  await parts.cache.close();
  await parts.transcripts.close();
  parts.byokCredentials.close();
  parts.programme.close();
  await parts.blobs.close();
  await parts.changes.close();
  await parts.database.close();
}
