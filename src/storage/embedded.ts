/**
 * The PostgreSQL that comes with the gateway: started as a child process on a Unix socket in the data folder, watched,
 * restarted when it dies, stopped with us whatever way we end. With DATABASE_URL none of this runs.
 *
 * Linux has all of it. On macOS there is no /proc: PostgreSQL's own lock file decides what is left of a crash, and root
 * needs a data folder that the account `nobody` can enter. Windows has no Unix sockets in Node, so it needs DATABASE_URL.
 */
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import pg from 'pg';
import { type Clock, sleep } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { clientConfig, releaseFolder } from './connection.ts';
import { type Account, serverAccount } from './embedded/account.ts';
import { type Binaries, prepareBinaries } from './embedded/binaries.ts';
import { ensureCluster, isCluster } from './embedded/cluster.ts';
import { processesIn, signal } from './embedded/processes.ts';
import { launch, type Server } from './embedded/server.ts';
import { keepAlive } from './keep-alive.ts';

interface EmbeddedOptions {
  /** Made when missing, mode 0700. The cluster is its subfolder `postgres`. */
  dataFolder: string;
  clock: Clock;
  log: Log;
  /** Called when the server has been started and only its answer is waited for. */
  onLaunched?: () => void;
  /** PostgreSQL settings on top of ours. */
  settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedServer {
  /** For `openDatabase` and `openChanges`, in this process and in workers. */
  readonly socketFolder: string;
  /** Process id of the present server; it changes when the server had to be restarted. */
  readonly pid: number;
  /** Fast shutdown; resolves when the server is gone. */
  stop(): Promise<void>;
}

/**
 * Starts the server of a data folder, after putting in order what a crash has left. Rejects with a message for the
 * operator, also when another live process already serves the folder.
 */
export function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  return keepAlive(async () => {
    const supervisor = new Supervisor(options);
    await supervisor.start();
    return supervisor;
  });
}

/** Where the socket of a data folder's server is, whether it runs or not. */
export function socketFolderOf(dataFolder: string): string {
  return join(resolve(dataFolder), 'postgres');
}

/** Whether a data folder holds a database already. */
export function hasCluster(dataFolder: string): boolean {
  return isCluster(socketFolderOf(dataFolder));
}

/** A server that is starting, recovering or writing its last checkpoint is given this long. */
const SETTLE_MS = 120_000;
/** How long a killed owner may still seem to be there. */
const OWNER_GRACE_MS = 2_000;
/** How long a server may be without an owner before it is an orphan; one that has just started may not have its yet. */
const UNOWNED_MS = 500;
/**
 * Until SIGQUIT and SIGKILL. Children without a parent may, in the first moments, be a server that just starts; and a
 * server that closes may never finish (see `server.ts`).
 */
const ORPHAN_TIMEOUTS_MS = [300, 2_000] as const;
const CLOSING_TIMEOUTS_MS = [3_000, 8_000] as const;
const START_ATTEMPTS = 3;
const RESTART_DELAY_MS = 100;
const RESTART_DELAY_LIMIT_MS = 5_000;
/** Session lock of the process that owns the server: the kernel closes its connection when that process dies. */
const OWNER_LOCK = 0x67617465;

class Supervisor implements EmbeddedServer {
  readonly socketFolder: string;
  readonly #options: EmbeddedOptions;
  #server: Server | undefined;
  #owner: pg.Client | undefined;
  #stopping = false;
  #restarting: Promise<void> | undefined;

  constructor(options: EmbeddedOptions) {
    this.#options = options;
    this.socketFolder = socketFolderOf(options.dataFolder);
  }

  get pid(): number {
    return this.#server?.pid ?? 0;
  }

  async start(): Promise<void> {
    if (process.platform === 'win32') {
      throw new Error('the embedded PostgreSQL needs Unix sockets, which Windows lacks here; set DATABASE_URL');
    }
    const cluster = this.socketFolder;
    const { clock, settings } = this.#options;
    const account = serverAccount(cluster);
    const binaries = prepareBinaries(account, dirname(cluster));
    await ensureCluster(cluster, { binaries, account, clock, durable: settings?.['fsync'] !== 'off' });
    for (let attempt = 1; ; attempt++) {
      await this.#waitUntilFree();
      const reason = await this.#launch(binaries, account);
      if (reason === undefined) return;
      if (attempt === START_ATTEMPTS) throw new Error(`the embedded PostgreSQL did not start: ${reason}`);
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await keepAlive(async () => {
      await this.#stopServer();
      await this.#restarting;
    });
    releaseFolder(this.socketFolder);
  }

  async #stopServer(): Promise<void> {
    // One that does not answer recovers from a crash, and has nothing that a checkpoint could keep.
    const answer = await this.#owner?.query('select 1').catch(() => undefined);
    await this.#owner?.end().catch(() => {});
    await this.#server?.stop(answer !== undefined);
  }

  /** Undefined once the server answers and is ours; otherwise why it ended. */
  async #launch(binaries: Binaries, account: Account | undefined): Promise<string | undefined> {
    const { clock, onLaunched, settings = {} } = this.#options;
    const server = launch(this.socketFolder, binaries, account, settings, clock);
    onLaunched?.();
    let reason: string | undefined;
    void server.ended.then((tail) => {
      reason = tail || 'it ended without a word';
    });
    const began = clock.monotonic();
    while (reason === undefined) {
      const probed = await probe(this.socketFolder);
      // Of two starts at once it may be the other's server that answers; ours is about to end then.
      const isOurs = lockHolder(this.socketFolder) === server.pid;
      if (typeof probed === 'object' && probed.owned && isOurs) {
        this.#server = server;
        this.#keepOwner(probed.client, server);
        void server.ended.then((tail) => this.#ended(server, tail));
        return undefined;
      }
      if (typeof probed === 'object') await probed.client.end();
      const waitedMs = clock.monotonic() - began;
      if (waitedMs > SETTLE_MS) {
        await server.stop(false);
        return 'it did not answer in time';
      }
      await sleep(clock, pollDelay(waitedMs));
    }
    return reason;
  }

  /** Stays the owner across a crash recovery, in which the server drops all sessions and lives on. */
  #keepOwner(client: pg.Client, server: Server): void {
    this.#owner = client;
    client.on('end', () => {
      this.#owner = undefined;
      void this.#reacquireOwner(server);
    });
  }

  async #reacquireOwner(server: Server): Promise<void> {
    while (!this.#stopping && server.running) {
      // Whatever is wrong with the socket, statements and the next restart tell of it.
      const probed = await probe(this.socketFolder).catch(() => 'silent' as const);
      if (typeof probed === 'object' && probed.owned) return this.#keepOwner(probed.client, server);
      if (typeof probed === 'object') await probed.client.end();
      await sleep(this.#options.clock, RESTART_DELAY_MS);
    }
  }

  #ended(server: Server, tail: string): void {
    if (this.#stopping || server !== this.#server) return;
    this.#options.log.error('the embedded PostgreSQL has ended; starting it again', { pid: server.pid, log: tail });
    this.#restarting = this.#restart();
  }

  async #restart(): Promise<void> {
    const { clock, log } = this.#options;
    for (let delayMs = RESTART_DELAY_MS; !this.#stopping; delayMs = Math.min(delayMs * 2, RESTART_DELAY_LIMIT_MS)) {
      try {
        await this.start();
        log.info('the embedded PostgreSQL runs again', { pid: this.pid });
        // A stop that came meanwhile has not seen this server.
        if (this.#stopping) await this.#stopServer();
        return;
      } catch (error) {
        log.error('the embedded PostgreSQL could not be started again', { reason: (error as Error).message });
        await sleep(clock, delayMs);
      }
    }
  }

  /**
   * Returns when no process works on the cluster and no stale lock is in the way. A live server without an owner is shut
   * down rather than adopted: it may be of an older version or have other settings, and it has no guard.
   */
  async #waitUntilFree(): Promise<void> {
    const { clock } = this.#options;
    const began = clock.monotonic();
    let closingSince: number | undefined;
    let unownedSince: number | undefined;
    for (;;) {
      const now = clock.monotonic();
      const waitedMs = now - began;
      if (waitedMs > SETTLE_MS) {
        throw new Error(`a PostgreSQL works on ${this.socketFolder} and neither serves nor ends; look at postgres.log`);
      }
      const probed = await probe(this.socketFolder);
      unownedSince = typeof probed === 'object' && probed.owned ? (unownedSince ?? now) : undefined;
      if (typeof probed === 'object')
        await this.#checkLive(probed, waitedMs, now - (unownedSince ?? now)).finally(() => probed.client.end());
      else if (probed === 'silent' && processesIn(this.socketFolder).length === 0)
        return removeLocks(this.socketFolder);
      else if (probed !== 'busy') {
        closingSince ??= now;
        endLeftovers(this.socketFolder, now - closingSince);
      }
      await sleep(clock, pollDelay(waitedMs));
    }
  }

  /** A live server: owned by a process, or an orphan if none claims it for a while. The lock is held until that is known. */
  async #checkLive({ owned }: { owned: boolean }, waitedMs: number, unownedMs: number): Promise<void> {
    const folder = dirname(this.socketFolder);
    if (!owned) {
      if (waitedMs < OWNER_GRACE_MS) return;
      throw new Error(`another Gatehouse process serves ${folder}; stop it, or use another folder`);
    }
    if (unownedMs < UNOWNED_MS) return;
    const pid = livePostmaster(this.socketFolder, processesIn(this.socketFolder));
    if (pid === undefined) {
      throw new Error(`a PostgreSQL that is not on this machine's process list serves ${folder}; stop it first`);
    }
    this.#options.log.warn('stopping a PostgreSQL that a killed process has left', { pid });
    signal(pid, 'SIGINT');
  }
}

/** Every look at a server that is not ready leaves a line in its log. */
function pollDelay(waitedMs: number): number {
  return waitedMs < 1_000 ? 10 : 100;
}

/**
 * The state of the socket: no answer, a server that does not accept connections, or one that does; `owned` says
 * whether the connection got the owner's lock.
 */
type ProbeResult = 'silent' | 'busy' | 'closing' | { client: pg.Client; owned: boolean };

async function probe(socketFolder: string): Promise<ProbeResult> {
  const client = new pg.Client(clientConfig({ socketFolder }));
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ owned: boolean }>('select pg_try_advisory_lock($1) as owned', [OWNER_LOCK]);
    (client as pg.Client & { unref(): void }).unref();
    return { client, owned: rows[0]?.owned === true };
  } catch (error) {
    void client.end().catch(() => {});
    const code = (error as { code?: string }).code;
    if (code === 'EACCES') throw new Error(`the socket in ${socketFolder} belongs to another user`, { cause: error });
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return 'silent';
    // The code is the same for a server that starts; its messages are in English because its locale is C.
    return (error as Error).message.includes('shutting down') ? 'closing' : 'busy';
  }
}

/** The server's process, as its lock file and the process table agree on; undefined when they do not. */
function livePostmaster(cluster: string, processes: readonly number[]): number | undefined {
  const pid = lockHolder(cluster);
  return pid !== undefined && (process.platform !== 'linux' || processes.includes(pid)) ? pid : undefined;
}

/** The process that the lock file names, alive or not. */
function lockHolder(cluster: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(join(cluster, 'postmaster.pid'), 'utf8'), 10);
  } catch {
    return undefined;
  }
}

/**
 * Ends what is left of a server that closes or has lost its parent. Its children notice the death of their parent and
 * end; those that are busy are told. A server that writes its last checkpoint is given a while.
 */
function endLeftovers(cluster: string, waitedMs: number): void {
  const processes = processesIn(cluster);
  const postmaster = livePostmaster(cluster, processes);
  const [quitMs, killMs] = postmaster === undefined ? ORPHAN_TIMEOUTS_MS : CLOSING_TIMEOUTS_MS;
  if (waitedMs < quitMs) return;
  for (const pid of postmaster === undefined ? processes : [postmaster]) {
    signal(pid, waitedMs > killMs ? 'SIGKILL' : 'SIGQUIT');
  }
}

/**
 * Call it only when no server uses the cluster. PostgreSQL trusts these files as long as their process id is in use, even by
 * another program or a zombie.
 */
function removeLocks(cluster: string): void {
  if (process.platform !== 'linux') return;
  for (const name of ['postmaster.pid', '.s.PGSQL.5432', '.s.PGSQL.5432.lock']) {
    rmSync(join(cluster, name), { force: true });
  }
}
