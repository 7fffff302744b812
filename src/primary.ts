/**
 * The process that an operator starts: it owns the embedded database, migrates, and serves by itself or through workers
 * (GATEHOUSE_WORKERS). Signals come to it: SIGINT and SIGTERM drain and end, SIGHUP reads the configuration again.
 */
import cluster, { type Worker } from 'node:cluster';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { FirstKey } from './access/index.ts';
import { type App, createApp } from './app.ts';
import { systemClock as clock } from './base/clock.ts';
import type { Config } from './base/config.ts';
import type { Log } from './base/log.ts';
import { migrations } from './migrations.ts';
import { openLog, readSettings, rereadSettings } from './settings.ts';
import type { Target } from './storage/connection.ts';
import { type EmbeddedServer, startEmbedded } from './storage/embedded.ts';
import { migrate } from './storage/migrate.ts';

/** A worker that dies at once is not started again at once. */
const RESPAWN_DELAY_MS = 500;

export async function serveAsPrimary(): Promise<void> {
  const config = readSettings();
  const log = openLog(config);
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const embedded = config.databaseUrl === null ? await startEmbedded({ dataFolder: config.dataDir, clock, log }) : null;
  const target: Target =
    embedded === null ? { connectionString: config.databaseUrl!.reveal() } : { socketFolder: embedded.socketFolder };
  try {
    await migrate({ target, migrations, log });
    const serving = config.workers > 1 ? new Workers(config, target, log) : await Single.start(config, target, log);
    obeySignals(serving, embedded, log);
    await serving.started;
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

interface Serving {
  started: Promise<void>;
  reload(): void;
  close(): Promise<void>;
}

class Single implements Serving {
  readonly started: Promise<void> = Promise.resolve();
  readonly #app: App;
  readonly #log: Log;

  private constructor(app: App, log: Log) {
    this.#app = app;
    this.#log = log;
  }

  static async start(config: Config, target: Target, log: Log): Promise<Single> {
    const app = await createApp({ config, target, clock, log });
    showFirstKeys(await app.bootstrap(), config, log);
    log.info('listening', { address: await app.listen() });
    return new Single(app, log);
  }

  reload(): void {
    const config = rereadSettings(this.#log);
    if (config) this.#app.reload(config);
  }

  close(): Promise<void> {
    return this.#app.close();
  }
}

/** What primary and workers tell each other. */
export type WorkerMessage = { type: 'start'; target: Target } | { type: 'reload' } | { type: 'close' };
export type PrimaryMessage = { type: 'listening'; address: string };

class Workers implements Serving {
  readonly started: Promise<void>;
  readonly #target: Target;
  readonly #log: Log;
  #closing = false;

  constructor(config: Config, target: Target, log: Log) {
    this.#target = target;
    this.#log = log;
    this.started = Promise.all(Array.from({ length: config.workers }, () => this.#fork())).then(() => {});
  }

  /** Resolves when the worker serves. */
  #fork(): Promise<void> {
    const worker = cluster.fork();
    tell(worker, { type: 'start', target: this.#target });
    return new Promise((resolve) => {
      worker.on('message', ({ type, address }: PrimaryMessage) => {
        if (type !== 'listening') return;
        this.#log.info('listening', { address, worker: worker.id });
        resolve();
      });
      worker.on('exit', (code, signal) => {
        if (this.#closing) return;
        this.#log.error('a worker ended; another one takes its place', { worker: worker.id, code, signal });
        clock.timer(RESPAWN_DELAY_MS, () => {
          if (!this.#closing) this.#fork().then(resolve);
        });
      });
    });
  }

  reload(): void {
    for (const worker of all()) tell(worker, { type: 'reload' });
  }

  async close(): Promise<void> {
    this.#closing = true;
    const workers = all();
    const ends = workers.map((worker) => new Promise((resolve) => worker.on('exit', resolve)));
    for (const worker of workers) tell(worker, { type: 'close' });
    await Promise.all(ends);
  }
}

function all(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

function tell(worker: Worker, message: WorkerMessage): void {
  worker.send(message);
}

function obeySignals(serving: Serving, embedded: EmbeddedServer | null, log: Log): void {
  let ending = false;
  const end = async (reason: string) => {
    if (ending) return;
    ending = true;
    let code = 0;
    try {
      log.info('stopping', { reason });
      await serving.close();
      await embedded?.stop();
      log.info('stopped');
    } catch (error) {
      log.error('the shutdown failed', { cause: error });
      code = 1;
    }
    process.exit(code);
  };
  process.on('SIGINT', () => end('SIGINT'));
  process.on('SIGTERM', () => end('SIGTERM'));
  process.on('SIGHUP', () => serving.reload());
  // The launcher of the installed package holds the other end of this channel.
  process.on('disconnect', () => end('the launcher is gone'));
}

/** Once, on a terminal; otherwise into a file that only the owner can read (promise 9). */
export function showFirstKeys(keys: FirstKey[] | null, config: Config, log: Log): void {
  const fresh = (keys ?? []).filter(({ generated }) => generated);
  if (fresh.length === 0) return;
  const lines = fresh.map(({ kind, token }) => `${kind} key: ${token}`).join('\n');
  if (process.stdout.isTTY) {
    console.log(`\nThese keys are shown once. Keep them.\n\n${lines}\n`);
    return;
  }
  const file = path.join(config.dataDir, 'first-keys.txt');
  writeFileSync(file, `${lines}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  log.info('first keys written', { file });
}
