/**
 * The process that an operator starts. It owns the embedded database, migrates it, and serves alone or through workers
 * (GATEHOUSE_WORKERS). It handles signals (`lifetime.ts`): SIGINT and SIGTERM drain and stop, SIGHUP reloads the configuration.
 */
import cluster, { type Worker } from 'node:cluster';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import type { FirstKey } from '../access/index.ts';
import type { App, createApp } from '../app.ts';
import { systemClock as clock } from '../base/clock.ts';
import { type BootstrapConfig, loadBootstrapConfig } from '../base/config/bootstrap-config.ts';
import { type Config, machineInputs } from '../base/config.ts';
import { createLog, type Log } from '../base/log.ts';
import { releaseMemory } from '../base/release-memory.ts';
import { writeSecretFile } from '../base/secret-file.ts';
import { describeTarget, type Target } from '../storage/connection.ts';
import { hasCluster, startEmbedded } from '../storage/embedded.ts';
import { keepAlive } from '../storage/keep-alive.ts';
import { migrate } from '../storage/migrate.ts';
import { lockDataFolder } from '../storage/owner.ts';
import { reachServer } from '../storage/server-check.ts';
import { Lifetime } from './lifetime.ts';
import { checkListening } from './start-checks.ts';
import { StartError } from './start-error.ts';
import { consoleAddress, type Serving as Served, showSummary } from './start-summary.ts';
import { type FromCollector, MetricsCollector, type MetricsWorker, type ToCollector } from './worker-metrics.ts';

/** Delay before a worker that died is restarted. */
const RESPAWN_DELAY_MS = 500;
/** Time after the drain for a worker to enter its rows and close. Then it is killed, and its journal has the rest. */
const WORKER_CLOSE_TIMEOUT_MS = 30_000;

export async function serveAsPrimary(): Promise<void> {
  const settings = loadBootstrapConfig(machineInputs()) ?? (await import('./load-config.ts')).readConfig();
  const log = createLog({ stream: process.stderr, level: settings.logLevel });
  const lifetime = new Lifetime(log, clock, machineInputs().env);
  log.info('starting', { version: manifest.version, data: settings.dataDir });
  try {
    await keepAlive(() => start(settings, log, lifetime));
  } catch (error) {
    await lifetime.unwind();
    // Ctrl-C at a terminal also reaches the child that the start is waiting for.
    if (lifetime.ending) process.exit(0);
    throw error;
  }
  lifetime.started();
}

async function start(settings: BootstrapConfig, log: Log, lifetime: Lifetime): Promise<void> {
  const exists = settings.databaseUrl === null && hasCluster(settings.dataDir);
  // Check the settings and the address before creating or contacting anything.
  const first = exists ? undefined : (await import('./load-config.ts')).readConfig();
  makeDataFolder(settings.dataDir);
  const lock = await forOperator('', () => lockDataFolder(settings.dataDir, clock));
  lifetime.onEnd(async () => lock.release());
  if (first !== undefined) await checkListening(first);
  if (settings.databaseUrl !== null) log.info('connecting to the database');
  else if (exists) log.info('starting the database');
  else log.info('creating the database', { folder: path.join(settings.dataDir, 'postgres') });
  const database = databaseOf(settings, log, lifetime);
  // Most of the start is loading code, which blocks the event loop: let an existing database server start meanwhile.
  if (exists) await Promise.race([database.launched, database.target]);
  const [{ readConfig }, app, { migrations }] = await Promise.all([
    import('./load-config.ts'),
    import('../app.ts'),
    import('../migrations.ts'),
  ]);
  const config = readConfig();
  if (first === undefined) await checkListening(config);
  const target = await database.target;
  await forOperator('', () => reachServer({ target, clock }));
  await forOperator(`${describeTarget(target)}: `, async () => {
    const ran = await migrate({ target, migrations, log });
    if (ran.length > 0) await (await import('../jobs/index.ts')).installJobs(target);
  });
  const serving =
    config.workers > 1 ? new Workers(config, target, log) : new Single(config, target, log, app.createApp);
  lifetime.onEnd(() => serving.close());
  lifetime.onReload(() => serving.reload());
  lifetime.onRetire(() => serving.retire());
  await serving.started;
}

function makeDataFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    throw new StartError(`the data folder ${folder} cannot be made (${code}): set GATEHOUSE_DATA_DIR`, { cause });
  }
}

function databaseOf({ dataDir, databaseUrl }: BootstrapConfig, log: Log, lifetime: Lifetime) {
  const { promise: launched, resolve: onLaunched } = Promise.withResolvers<void>();
  if (databaseUrl !== null) {
    const target: Target = { connectionString: databaseUrl.reveal() };
    return { launched, target: Promise.resolve(target) };
  }
  const embedded = forOperator('', () => startEmbedded({ dataFolder: dataDir, clock, log, onLaunched }));
  lifetime.onEnd(async () => {
    const started = await embedded.catch(() => undefined);
    await started?.stop();
  });
  const target = embedded.then(({ socketFolder }): Target => ({ socketFolder }));
  target.catch(() => {});
  return { launched, target };
}

/** Errors of `work` are for the operator to fix: a lock, a port, an unreachable database. */
async function forOperator<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new StartError(what + (error as Error).message, { cause: error });
  }
}

interface Serving {
  started: Promise<void>;
  reload(): void;
  /** Ends readiness only; returns for how many milliseconds everything else is still served. */
  retire(): number;
  close(): Promise<void>;
}

class Single implements Serving {
  readonly started: Promise<void>;
  readonly #log: Log;
  #config: Config;
  #app: App | undefined;

  constructor(config: Config, target: Target, log: Log, create: typeof createApp) {
    this.#config = config;
    this.#log = log;
    this.started = this.#start(target, create);
  }

  async #start(target: Target, create: typeof createApp): Promise<void> {
    const app = await create({ config: this.#config, target, clock, log: this.#log });
    this.#app = app;
    let firstKeys: readonly FirstKey[] = [];
    const consoleCode = await app.bootstrap((keys) => {
      firstKeys = keys;
      showFirstKeys(keys, this.#config, this.#log);
    });
    const serving = await app.listen();
    this.#log.info('listening', { address: serving.address });
    summarize({ ...serving, ...shownKey(firstKeys), ...(consoleCode && { consoleCode }) }, this.#config, this.#log);
    releaseMemory(clock, app.use);
  }

  reload(): void {
    void import('./load-config.ts').then(({ rereadConfig }) => {
      const config = rereadConfig(this.#config, this.#log);
      if (config === undefined) return;
      this.#config = config;
      this.#app?.reload(config);
    });
  }

  retire(): number {
    this.#app?.retire();
    return this.#config.limits.drainDelayMs;
  }

  async close(): Promise<void> {
    await this.#app?.close();
  }
}

/** Messages between primary and workers. */
export type WorkerMessage =
  | { type: 'start'; target: Target }
  | { type: 'reload' }
  | { type: 'retire' }
  | { type: 'close' }
  | FromCollector;
export type PrimaryMessage = { type: 'listening'; serving: Served } | ToCollector;

class Workers implements Serving {
  readonly started: Promise<void>;
  readonly #config: Config;
  readonly #target: Target;
  readonly #log: Log;
  readonly #metrics = new MetricsCollector(clock);
  #closing = false;
  /** The started worker that created the first keys, or the first one. */
  #serving: Served | undefined;

  constructor(config: Config, target: Target, log: Log) {
    this.#config = config;
    this.#target = target;
    this.#log = log;
    this.started = Promise.all(Array.from({ length: config.workers }, () => this.#fork())).then(() => {
      if (this.#serving !== undefined) summarize(this.#serving, config, log);
    });
  }

  /** Resolves when the worker listens; rejects if it exits before. */
  #fork(): Promise<void> {
    const worker = cluster.fork();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let listening = false;
    worker.on('message', (message: PrimaryMessage) => {
      if (message.type !== 'listening') {
        const others = all().filter((other) => other !== worker);
        this.#metrics.receive(message, metricsWorker(worker), others.map(metricsWorker));
        return;
      }
      listening = true;
      const { serving } = message;
      const hasCreated = serving.inferenceKey !== undefined || serving.consoleCode !== undefined;
      if (this.#serving === undefined || hasCreated) this.#serving = serving;
      this.#log.info('listening', { address: serving.address, worker: worker.id, pid: worker.process.pid });
      resolve();
    });
    worker.on('exit', (code, signal) => {
      if (this.#closing) return;
      if (!listening) return reject(new StartError('a worker exited before it was listening; see its log'));
      this.#log.error('a worker exited and is being replaced', { worker: worker.id, code, signal });
      this.#replace();
    });
    // The worker has just died; its exit event follows.
    worker.on('error', (error) => this.#log.warn('cannot send a message to a worker', { worker: worker.id, error }));
    send(worker, { type: 'start', target: this.#target });
    return promise;
  }

  #replace(): void {
    clock.timer(RESPAWN_DELAY_MS, () => {
      if (!this.#closing) this.#fork().catch(() => this.#closing || this.#replace());
    });
  }

  reload(): void {
    for (const worker of all()) send(worker, { type: 'reload' });
  }

  retire(): number {
    for (const worker of all()) send(worker, { type: 'retire' });
    return this.#config.limits.drainDelayMs;
  }

  async close(): Promise<void> {
    this.#closing = true;
    const workers = all();
    const ends = workers.map((worker) => new Promise((resolve) => worker.on('exit', resolve)));
    for (const worker of workers) send(worker, { type: 'close' });
    const timeout = clock.timer(this.#config.limits.drainMs + WORKER_CLOSE_TIMEOUT_MS, () => {
      for (const worker of all()) worker.process.kill('SIGKILL');
    });
    await Promise.all(ends);
    timeout.cancel();
  }
}

function all(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

function metricsWorker(worker: Worker): MetricsWorker {
  return { id: worker.id, send: (message) => send(worker, message) };
}

function send(worker: Worker, message: WorkerMessage): void {
  if (worker.isConnected()) worker.send(message);
}

function summarize(serving: Served, config: Config, log: Log): void {
  for (const { name, suggested } of config.unknownVariables) {
    log.warn('unknown environment variable', { name, ...(suggested !== null && { did_you_mean: suggested }) });
  }
  showSummary(serving, { config, version: manifest.version, log, out: process.stdout });
  if (!process.stdout.isTTY) writeConsoleLink(serving, config, log);
}

/** The inference key that this start created, if it may be shown: only on a terminal, like `showFirstKeys`. */
export function shownKey(keys: readonly FirstKey[]): { inferenceKey?: string } {
  const key = keys.find(({ kind, generated }) => kind === 'inference' && generated);
  return key === undefined || !process.stdout.isTTY ? {} : { inferenceKey: key.token };
}

/** Without a terminal, the one-time link goes into a file that only the owner can read. */
function writeConsoleLink(serving: Served, config: Config, log: Log): void {
  if (serving.consoleCode === undefined) return;
  const file = path.join(config.dataDir, 'console-link.txt');
  rmSync(file, { force: true });
  writeSecretFile(file, consoleAddress(serving));
  log.info('one-time link to the console written', { file });
}

/** Once, on a terminal; otherwise into a file that only the owner can read. */
export function showFirstKeys(keys: readonly FirstKey[], config: Config, log: Log): void {
  const fresh = keys.filter(({ generated }) => generated);
  if (fresh.length === 0) return;
  const lines = fresh.map(({ kind, token }) => `${kind} key: ${token}`).join('\n');
  if (process.stdout.isTTY) {
    console.log(`\nThese keys are shown once. Keep them.\n\n${lines}`);
    return;
  }
  const file = path.join(config.dataDir, 'first-keys.txt');
  // A leftover of a start that was killed before its keys were committed: those keys do not exist.
  rmSync(file, { force: true });
  writeSecretFile(file, lines);
  log.info('first keys written', { file });
}
