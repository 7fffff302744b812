/**
 * The gateway's side of the proxy: starts its process when the first sandbox needs it, restarts it when it dies, and ends it. The
 * gateway keeps no value: it asks the vault again for each start of the process.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { type Clock, sleep, type Timer, waitAtMost } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { keyHash } from './door-key.ts';
import { launch } from './launch.ts';
import type {
  DoorNews,
  DoorSettings,
  ModelCall,
  News,
  Order,
  ProxySettings,
  ProxyUser,
  RefusalReport,
  SandboxSettings,
} from './settings.ts';
import { SOCKET_NAME, SocketFolders } from './socket-folder.ts';

/** A user of its own, without an account, for a gateway that runs as root. */
export const DEFAULT_PROXY_USER: ProxyUser = { uid: 26_990, gid: 26_990 };

export interface EgressProxyOptions {
  /** For sockets. The proxy's user must be able to enter it, and its path must be short. */
  folder: string;
  /** Read at each start of the process. */
  settings(): Omit<ProxySettings, 'user'>;
  /** Used if the gateway runs as root; default `DEFAULT_PROXY_USER`. */
  user?: ProxyUser;
  /** For sandboxes on other machines. */
  door?: Pick<DoorSettings, 'host' | 'ports'>;
  clock: Clock;
  log: Log;
  /** Replaces the file that the process runs, in tests. */
  entry?: string;
}

export interface ProxiedSandbox {
  /** Its secrets and rules; called again when the process is restarted. @param way to follow changes with */
  load(way: EgressWay): Promise<SandboxSettings>;
  /** For the audit log. */
  onRefused(refusal: RefusalReport): void;
  /** Its model calls. */
  onCalled?(call: ModelCall): void;
  /** The group of the sandbox's processes, if they run as a user of their own. */
  gid: number | null;
}

/** Where sandboxes on other machines find the proxy. */
export interface OpenDoor {
  host: string;
  port: number;
  /** The port that no sandbox may reach; it never answers. */
  forbiddenPort: number;
  /** Of the authority that signs the door's certificate, in PEM. */
  certificate: string;
}

/** The way out of one sandbox. */
export interface EgressWay {
  /** False for good once the sandbox is closed. */
  readonly isOpen: boolean;
  /** Loads secrets and rules again, after they changed. Rejects if they cannot be loaded. */
  reload(): Promise<void>;
  /** Closes the way out until the secrets can be loaded, which is retried at intervals. */
  suspend(): void;
  /**
   * Resolves once all model calls of the sandbox up to now were reported.
   * @returns the pid of the proxy: if it changes, reports may be lost. Rejects if no proxy runs
   */
  reported(): Promise<number>;
}

const ID = /^[a-z0-9-]{1,40}$/;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
/** A process that lived this long did not fail at its start. */
const STABLE_MS = 10_000;
const RELOAD_DELAY_MS = 5_000;
const CLOSE_TIMEOUT_MS = 5_000;

interface Entry extends ProxiedSandbox {
  /** Of a sandbox on another machine. */
  keyHash: string | null;
  folder: string;
  mode: number;
  /** Ends when the proxy has what was loaded last. States are sent one at a time, so none overtakes a newer one. */
  telling: Promise<void>;
  /** For the next attempt to load its secrets. */
  retry: Timer | undefined;
  way: EgressWay;
}

/** A running process. */
interface Child {
  process: ChildProcess;
  ready: Promise<void>;
  exited: Promise<void>;
  door: PromiseWithResolvers<DoorNews>;
  /** What waits for the answer to an order to open, by sandbox. */
  waiting: Map<string, PromiseWithResolvers<void>>;
  /** What waits for the answer to an order to synchronize, oldest first. */
  syncs: PromiseWithResolvers<void>[];
}

export class EgressProxy {
  readonly #options: EgressProxyOptions;
  readonly #folders: SocketFolders;
  readonly #user: ProxyUser | null;
  readonly #sandboxes = new Map<string, Entry>();
  #child: Child | undefined;
  #door: Promise<DoorSettings> | undefined;
  /** The result of `#door`; undefined until the door is open. */
  #doorSettings: DoorSettings | undefined;
  #delayMs = FIRST_DELAY_MS;
  #isPrepared = false;
  #isClosed = false;

  constructor(options: EgressProxyOptions) {
    this.#options = options;
    this.#user = process.getuid?.() === 0 ? (options.user ?? DEFAULT_PROXY_USER) : null;
    this.#folders = new SocketFolders(options.folder, this.#user);
  }

  /** The process, while there is one. */
  get pid(): number | undefined {
    return this.#child?.process.pid;
  }

  /**
   * Gives a sandbox its way out.
   * @param id lower-case letters, digits and dashes
   * @returns the folder to mount in the sandbox; the socket in it is `egress.sock`
   */
  async open(id: string, sandbox: ProxiedSandbox): Promise<string> {
    return (await this.#open(id, sandbox, null)).folder;
  }

  /** Gives a sandbox on another machine its way out. @returns the key that it shows at the door */
  async openRemote(id: string, sandbox: Omit<ProxiedSandbox, 'gid'>): Promise<string> {
    await this.door();
    const key = randomBytes(32).toString('hex');
    await this.#open(id, { ...sandbox, gid: null }, keyHash(key));
    return key;
  }

  /** Opens the door, if it is not open yet. */
  async door(): Promise<OpenDoor> {
    this.#door ??= this.#makeDoor();
    const settings = await this.#door;
    const child = this.#started();
    await child.ready;
    const door = await child.door.promise;
    if ('problem' in door) throw new Error(`the egress proxy cannot listen on ${door.problem}`);
    const { port, forbiddenPort } = door;
    // Sandboxes know these ports: they stay when the process is restarted.
    Object.assign(settings, { forbiddenPort, ports: { from: port, to: port } });
    return { host: settings.host, port, forbiddenPort, certificate: settings.authority.certificate };
  }

  async #makeDoor(): Promise<DoorSettings> {
    const { door, clock } = this.#options;
    if (door === undefined) throw new Error('the egress proxy has no door');
    const { makeAuthority } = await import('./trust/authority.ts');
    this.#doorSettings = { ...door, forbiddenPort: 0, authority: await makeAuthority(clock) };
    if (this.#child !== undefined) send(this.#child, { type: 'door', settings: this.#doorSettings });
    return this.#doorSettings;
  }

  /** The process, whose folders exist. */
  #started(): Child {
    if (!this.#isPrepared) this.#folders.prepare();
    this.#isPrepared = true;
    return this.#start();
  }

  async #open(id: string, sandbox: ProxiedSandbox, hash: string | null): Promise<Entry> {
    if (!ID.test(id)) throw new Error(`${JSON.stringify(id)} cannot be the id of a sandbox`);
    if (this.#isClosed) throw new Error('the egress proxy is closed');
    if (this.#sandboxes.has(id)) throw new Error(`the sandbox ${id} is open`);
    if (!this.#isPrepared) this.#folders.prepare();
    this.#isPrepared = true;
    const entry: Entry = {
      ...{ ...sandbox, keyHash: hash },
      ...this.#folders.make(id, sandbox.gid),
      telling: Promise.resolve(),
      retry: undefined,
      way: this.#way(id),
    };
    this.#sandboxes.set(id, entry);
    try {
      await this.#tell(id, entry);
    } catch (error) {
      await this.close(id);
      throw error;
    }
    return entry;
  }

  /** Starts the process, to see whether it can. @returns the user that it runs as; null: that of the gateway */
  async probe(): Promise<ProxyUser | null> {
    await this.#started().ready;
    return this.#user;
  }

  /** Ends the connections of a sandbox and removes its socket. */
  async close(id: string): Promise<void> {
    if (!this.#sandboxes.delete(id)) return;
    this.#child?.waiting.get(id)?.reject(new Error(`the sandbox ${id} was closed`));
    if (this.#child !== undefined) send(this.#child, { type: 'close', id });
    this.#folders.remove(id);
  }

  /** Ends the process. */
  async end(): Promise<void> {
    this.#isClosed = true;
    if (this.#child !== undefined) {
      const { process: child, exited } = this.#child;
      if (child.connected) child.disconnect();
      await waitAtMost(this.#options.clock, CLOSE_TIMEOUT_MS, exited);
      child.kill('SIGKILL');
    }
    this.#sandboxes.clear();
    if (this.#isPrepared) this.#folders.removeAll();
  }

  #way(id: string): EgressWay {
    const isOpen = () => this.#sandboxes.get(id)?.way === way;
    const way: EgressWay = {
      get isOpen() {
        return isOpen();
      },
      reload: async () => {
        if (isOpen()) await this.#tell(id, this.#sandboxes.get(id)!);
      },
      suspend: () => {
        const child = this.#child;
        if (!isOpen() || child === undefined) return;
        send(child, { type: 'close', id });
        this.#restoreLater(id);
      },
      reported: () => this.#reported(),
    };
    return way;
  }

  async #reported(): Promise<number> {
    const child = this.#child;
    const pid = child?.process.pid;
    if (child === undefined || pid === undefined) throw new Error('the egress proxy does not run');
    const answer = Promise.withResolvers<void>();
    child.syncs.push(answer);
    send(child, { type: 'sync' });
    await answer.promise;
    return pid;
  }

  #tell(id: string, entry: Entry): Promise<void> {
    const telling = entry.telling.then(() => this.#tellNow(id, entry));
    entry.telling = telling.catch(() => {});
    return telling;
  }

  async #tellNow(id: string, { folder, mode, keyHash, load, way }: Entry): Promise<void> {
    const child = this.#start();
    await child.ready;
    const sandbox = await load(way);
    if (this.#child !== child) throw new Error('the egress proxy ended');
    if (!way.isOpen) throw new Error(`the sandbox ${id} was closed`);
    const answer = Promise.withResolvers<void>();
    child.waiting.set(id, answer);
    send(child, { type: 'open', id, path: path.join(folder, SOCKET_NAME), mode, keyHash, sandbox });
    await answer.promise;
  }

  #start(): Child {
    if (this.#child !== undefined) return this.#child;
    const { clock, settings, log } = this.#options;
    const ready = Promise.withResolvers<void>();
    ready.promise.catch(() => {});
    const startedAt = clock.monotonic();
    const exited = Promise.withResolvers<void>();
    const child: Child = {
      process: launch(this.#options.entry),
      ready: ready.promise,
      exited: exited.promise,
      door: Promise.withResolvers<DoorNews>(),
      waiting: new Map(),
      syncs: [],
    };
    this.#child = child;
    child.process.on('message', (news: News) => {
      if (news.type === 'ready') ready.resolve();
      else this.#receive(child, news);
    });
    child.process.on('error', (error) => {
      log.error('the egress proxy cannot be started', { error });
      if (child.process.pid === undefined) child.process.emit('exit', null, null);
    });
    child.process.once('exit', (code, signal) => {
      exited.resolve();
      child.door.resolve({ problem: 'no port: the process ended' });
      const problem = new Error('the egress proxy ended');
      ready.reject(problem);
      for (const { promise, reject } of [...child.waiting.values(), ...child.syncs]) {
        promise.catch(() => {});
        reject(problem);
      }
      this.#child = undefined;
      if (clock.monotonic() - startedAt > STABLE_MS) this.#delayMs = FIRST_DELAY_MS;
      if (this.#isClosed || this.#sandboxes.size === 0) return;
      log.error('the egress proxy ended and is being restarted', { code, signal });
      void this.#restart();
    });
    send(child, { type: 'start', settings: { ...settings(), user: this.#user } });
    if (this.#doorSettings !== undefined) send(child, { type: 'door', settings: this.#doorSettings });
    return child;
  }

  async #restart(): Promise<void> {
    await sleep(this.#options.clock, this.#delayMs);
    this.#delayMs = Math.min(2 * this.#delayMs, LONGEST_DELAY_MS);
    if (this.#isClosed) return;
    this.#start();
    for (const id of this.#sandboxes.keys()) void this.#restore(id);
  }

  /** Opens a sandbox in a new process. If its secrets cannot be had, it has no way out until they can. */
  async #restore(id: string): Promise<void> {
    const child = this.#child;
    const entry = this.#sandboxes.get(id);
    if (entry === undefined || child === undefined) return;
    try {
      await this.#tell(id, entry);
    } catch (error) {
      if (this.#child !== child || this.#isClosed) return;
      this.#options.log.error('a sandbox has no egress, because its secrets cannot be loaded', { sandbox: id, error });
      this.#restoreLater(id);
    }
  }

  /** Not needed after a restart of the proxy, which restores every sandbox. */
  #restoreLater(id: string): void {
    const entry = this.#sandboxes.get(id);
    if (entry === undefined) return;
    entry.retry ??= this.#options.clock.timer(RELOAD_DELAY_MS, () => {
      entry.retry = undefined;
      if (entry.way.isOpen) void this.#restore(id);
    });
  }

  #receive(child: Child, news: Exclude<News, { type: 'ready' }>): void {
    const { log } = this.#options;
    switch (news.type) {
      case 'opened':
        child.waiting.get(news.id)?.resolve();
        return;
      case 'failed':
        child.waiting.get(news.id)?.reject(new Error(`the egress proxy cannot open a sandbox: ${news.problem}`));
        return;
      case 'refused':
        this.#sandboxes.get(news.id)?.onRefused(news.refusal);
        return;
      case 'called':
        this.#sandboxes.get(news.id)?.onCalled?.(news.call);
        return;
      case 'synced':
        child.syncs.shift()?.resolve();
        return;
      case 'door':
        if ('problem' in news.door) log.error('sandboxes on other machines have no egress', news.door);
        child.door.resolve(news.door);
        return;
      case 'fault':
        log.error('the egress proxy failed', { stack: news.stack });
    }
  }
}

function send(child: Child, order: Order): void {
  if (child.process.connected) child.process.send(order, () => {});
}
