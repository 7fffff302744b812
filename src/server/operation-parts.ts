/** What the operations need, from the parts of the process and the live configuration. */
import manifest from '../../package.json' with { type: 'json' };
import { type Clock, sleep } from '../base/clock.ts';
import { ocrOf } from '../base/config/ocr.ts';
import { fallbacksOf } from '../base/config/routing.ts';
import { createNamespace, fromWireName, type Namespace } from '../base/namespace.ts';
import { BatchRunner, endBatches } from '../batches/index.ts';
import { endByokCredentials } from '../byok/index.ts';
import { type CallbackOutcome, endCallbackSecrets } from '../callbacks/index.ts';
import { ConsoleFiles, type ConsoleParts, OidcSignIn } from '../console/index.ts';
import { endContainers } from '../containers/index.ts';
import { endDestinations } from '../destinations/index.ts';
import {
  type CopyRemovalParts,
  createFileContents,
  createVendorCopies,
  endFiles,
  FILE_LIMITS,
  type FileStoreParts,
  type VendorParts,
  WorkspaceFiles,
} from '../files/index.ts';
import { endGuardrails } from '../guardrails/index.ts';
import {
  Concurrency,
  Credentials,
  createModerator,
  createOcr,
  createWebSearch,
  embed,
  Health,
  type InferenceParts,
  isRouterModel,
  RememberedThinking,
  ROUTERS,
  requestedPlugins,
  routerModels,
  Sessions,
  Threads,
} from '../inference/index.ts';
import { agentProfiles, endInterns, InternRuntime, vaultsOfIntern } from '../interns/index.ts';
import { endMemories, Memories } from '../memories/index.ts';
import type { Observability } from '../observability/index.ts';
import type { OperationParts } from '../operations.ts';
import type { PageParts } from '../pages/index.ts';
import { peerHost } from '../peers/index.ts';
import { endPresets } from '../presets/index.ts';
import { providersFrom } from '../providers/index.ts';
import { createResponses, endResponses } from '../responses/index.ts';
import { endMappings } from '../scim/index.ts';
import { sealedRows } from '../sealed-rows.ts';
import { serviceDocument } from '../service-document.ts';
import { ENTERED_WITHIN_MS } from '../spend/index.ts';
import { refresher } from '../storage/followed.ts';
import { endVaults } from '../vault/index.ts';
import { addFileJob, endVectorStores, VectorSearch, type VectorStoreParts } from '../vector-stores/index.ts';
import { createVideos, endVideos } from '../videos/index.ts';
import type { Readiness } from './health.ts';
import type { LiveConfig } from './live-config.ts';
import type { AppOptions, Parts } from './parts.ts';
import { isOnlySimulated } from './start-summary.ts';
import type { SystemParts } from './system.ts';

export function operationParts(
  options: AppOptions,
  live: LiveConfig,
  parts: Parts,
  observability: Observability,
  readiness: Readiness,
): OperationParts {
  const { config, clock } = options;
  const { database, changes, sealing, access, federation, spend, transcripts, scim, blobs } = parts;
  const namespace = createNamespace(config.namespace);
  const catalog = () => live.catalog;
  const spendEntered = async () => {
    await sleep(clock, ENTERED_WITHIN_MS);
    await spend.flush();
  };
  const inference = inferenceParts(options, live, parts, observability, namespace);
  const callbacks = {
    ...{ database, changes, clock, sealing, log: options.log, egress: parts.egress },
    attempted: (outcome: CallbackOutcome) => observability.callbackAttempted(outcome),
  };
  const consoleFiles = new ConsoleFiles(options.consoleFolder);
  const batches = {
    ...{ database, changes, clock, blobs, inference, callbacks, namespace: namespace.name },
    itemBytes: config.limits.inferenceBodyBytes,
    callerOfKey: (hash: string) => access.callerOfKey(hash),
  };
  const storing = storingOf(parts, clock, namespace);
  const interns = internRuntime(options, live, parts, namespace);
  return {
    workspaces: {
      ...{ database, changes, clock, spendEntered },
      knowsModel: (name) => live.catalog.find(name) !== undefined || isRouterModel(name),
      toolName: (name) => fromWireName(name, namespace),
      ended: endings(parts),
    },
    access: { database, changes, clock, spendEntered, usageOf: (keyIds) => spend.usageOf(keyIds) },
    guardrails: { database, changes, clock, spendEntered },
    presets: { database, changes, clock, checkPlugins: requestedPlugins },
    memories: { database, changes, clock, sealing },
    byok: { database, changes, clock, sealing, providers: () => live.settings.providers },
    files: {
      ...{ ...storing, vendors: vendorParts(options, live, parts) },
      callerOfKey: (hash) => access.callerOfKey(hash),
    },
    containers: { ...storing, containers: parts.containers },
    vectorStores: vectorStoreParts(options, live, parts, inference),
    vault: {
      ...{ database, changes, clock, sealing },
      confirmProgramme: (caller) => parts.programme.confirm(caller),
      settings: () => live.settings.vault,
      vaultsOfIntern,
    },
    interns: {
      ...{ database, changes, clock, sealing, runtime: interns },
      confirmProgramme: (caller) => parts.programme.confirm(caller),
      wake: (tx, intern) => interns.wake(tx, intern),
    },
    scim,
    signIn: { database, changes, clock, federation, authenticate: (headers) => access.authenticate(headers) },
    inference,
    responses: createResponses({
      ...{ database, changes, clock, log: options.log, sealing, inference, jobs: parts.jobs },
      callerOfKey: (hash) => access.callerOfKey(hash),
      retention: () => live.settings.retention,
      limits: config.limits,
    }),
    videos: createVideos({
      ...{ database, changes, clock, log: options.log, inference, blobs: parts.blobs },
      ...{ callbacks, namespace, jobs: parts.jobs },
    }),
    routers: () => ROUTERS.map(({ slug, name }) => ({ id: fromWireName(slug, namespace), name })),
    batches: { ...batches, runner: new BatchRunner(batches, parts.jobs) },
    transcripts: {
      ...{ transcripts, database, clock },
      hasGeneration: async (id, organizationId) => (await spend.findGeneration(id, { organizationId })) !== undefined,
    },
    limits: config.limits,
    observability: { metrics: observability.metrics, spend, database, clock, catalog },
    destinations: { database, changes, clock, sealing, egress: parts.destinationEgress, version: manifest.version },
    analytics: { database, clock, catalog, entered: () => spend.flush() },
    ...{ audit: { database }, pages: pageParts(live, consoleFiles), readiness },
    console: consoleParts(options, live, parts, consoleFiles),
    system: systemParts(options, live, parts),
  };
}

/** Things that are deleted with a workspace. */
function endings({ changes, blobs }: Parts): OperationParts['workspaces']['ended'] {
  return [
    endGuardrails(changes),
    endMappings,
    endByokCredentials(changes),
    endFiles(blobs),
    endContainers(blobs),
    endMemories,
    endVectorStores,
    endBatches(),
    endCallbackSecrets,
    endInterns(changes, blobs),
    endVaults(changes),
    endDestinations(changes),
    endResponses,
    endVideos(blobs),
    endPresets,
  ];
}

function consoleParts(
  { clock, log }: AppOptions,
  live: LiveConfig,
  { consoleSessions: sessions, database, egress }: Parts,
  files: ConsoleFiles,
): ConsoleParts {
  const settings = () => live.settings.console.oidc;
  const oidc = new OidcSignIn({ database, egress, clock, log, sessions, settings });
  return { sessions, oidc, files, version: manifest.version };
}

function systemParts({ target, clock, log }: AppOptions, live: LiveConfig, { database, spend }: Parts): SystemParts {
  return {
    ...{ database, clock, processId: () => spend.processId },
    // Loaded on demand: few processes are ever examined.
    examine: async (online) => {
      const { examineRunning } = await import('../operator/index.ts');
      return examineRunning({ config: live.settings, database, target, clock, log, sealedRows }, online);
    },
  };
}

function internRuntime(
  { config, clock, log, agent }: AppOptions,
  live: LiveConfig,
  parts: Parts,
  namespace: Namespace,
): InternRuntime {
  /** As configured when an intern starts. */
  const configured = () => {
    const { agent: name, installed } = live.settings.interns;
    return agentProfiles(clock, installed).get(name)!;
  };
  return new InternRuntime({
    ...{ ...parts, clock, log, namespace, certificate: config.tls?.certificate ?? null },
    agent: () => agent ?? configured(),
    peerHost: peerHost(config),
  });
}

/** What removes the copies of files at vendors. */
export function copyRemovalParts({ clock, log }: AppOptions, live: LiveConfig, parts: Parts): CopyRemovalParts {
  const { database, transport, byokCredentials } = parts;
  return {
    ...{ database, clock, log, transport },
    providers: () => providersFrom(live.settings),
    byokValue: (id) => byokCredentials.withId(id)?.value,
  };
}

function storingOf({ database, changes, blobs }: Parts, clock: Clock, { name }: Namespace): FileStoreParts {
  return { database, changes, blobs, clock, namespace: name, limits: FILE_LIMITS };
}

function vectorStoreParts(
  { clock, log }: AppOptions,
  live: LiveConfig,
  { database, changes, sealing, jobs, pdf, docx, access }: Parts,
  inference: InferenceParts,
): VectorStoreParts {
  const files = inference.files!;
  const shared = {
    ...{ database, sealing, clock, files },
    embed: (...[caller, model, texts, signal]: Parameters<VectorStoreParts['embed']>) =>
      embed(inference, caller, { model, texts }, signal),
  };
  return {
    ...{ ...shared, changes, jobs },
    addFile: addFileJob({ ...shared, log, pdf, docx, callerOfKey: (hash) => access.callerOfKey(hash) }),
    search: inference.vectorStores!,
    embeddingModel: () => live.settings.embeddingModel,
  };
}

function vendorParts({ clock, log }: AppOptions, live: LiveConfig, parts: Parts): VendorParts {
  const { byokCredentials: credentials, transport, changes } = parts;
  return {
    access: {
      providersOf: (kind) => providersFrom({ providers: live.settings.providers.filter((each) => each.kind === kind) }),
      catalog: () => live.catalog,
      credentials,
      refresh: refresher(changes.freshness, [credentials]),
      zdr: () => live.settings.account.zdr,
    },
    delivery: { transport, clock, log },
  };
}

function inferenceParts(
  { config, clock, log }: AppOptions,
  live: LiveConfig,
  parts: Parts,
  observability: Observability,
  namespace: Namespace,
): InferenceParts {
  const { spend, statistics, byokCredentials, cache, transcripts, limiter, inFlight, transport, egress, tokens } =
    parts;
  const { random, endOfTurn } = parts;
  const health = new Health(clock);
  return {
    ...{
      spend,
      statistics,
      byokCredentials,
      transcripts,
      exporter: parts.exporter,
      tracer: parts.tracer,
      inFlight,
      transport,
      egress,
      tokens,
      pdf: parts.pdf,
      docx: parts.docx,
      health,
      random,
      endOfTurn,
      clock,
      log,
    },
    catalog: () => live.catalog,
    refresh: refresher(parts.changes.freshness, [byokCredentials, parts.balance]),
    cached: { answers: cache, headerPrefix: namespace.headerPrefix },
    rateLimits: { limiter, defaults: () => live.settings.rateLimits },
    attempted: ({ id }, outcome) => observability.attempted(id, outcome),
    concurrency: new Concurrency(),
    credentials: new Credentials(health),
    sessions: new Sessions(clock),
    routers: routerModels((id, kind) => live.settings.routing.scores[id]?.[kind]),
    fallbacksOf: (id) => fallbacksOf(live.settings.routing, id),
    threads: new Threads(spend),
    thinking: new RememberedThinking(clock),
    files: createFileContents({ ...parts, clock }),
    workspaceFiles: new WorkspaceFiles(storingOf(parts, clock, namespace)),
    vectorStores: new VectorSearch({ database: parts.database, sealing: parts.sealing, clock }),
    vendorCopies: createVendorCopies({ ...parts, clock, log }),
    pages: parts.pages,
    requestContainers: parts.requestContainers,
    memories: new Memories({ database: parts.database, clock, sealing: parts.sealing }),
    moderator: createModerator(parts.operatorEgress, () => live.settings.moderation),
    ocr: createOcr(parts.operatorEgress, () => ocrOf(live.settings)),
    alignmentModel: () => live.settings.alignmentModel ?? undefined,
    webSearch: createWebSearch(parts.operatorEgress, () => live.settings.webSearch),
    accountPolicy: () => live.settings.account,
    promptCaching: () => live.settings.account.promptCaching,
    hedgeAfterMs: () => live.settings.routing.hedgeAfterMs,
    limits: config.limits,
    hosts: () => live.settings.hosts,
    accountBalanceNano: () => parts.balance.current(),
    hashUser: (caller, user) => parts.identities.hash(caller, user),
    keepAliveComment: `: ${namespace.keepAlive}\n\n`,
    metadataKey: namespace.metadataKey,
  };
}

function pageParts(live: LiveConfig, console: ConsoleFiles): PageParts {
  return {
    version: manifest.version,
    document: () => JSON.stringify(serviceDocument()),
    state: () => ({ onlySimulated: isOnlySimulated(live.catalog) }),
    hasConsole: () => console.built,
  };
}
