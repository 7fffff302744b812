/**
 * Sandboxes of bubblewrap on the gateway's own machine. Each command has its own namespaces; the commands of one sandbox share its
 * folders, its control group and its socket of the egress proxy. Everything but the folders ends with the gateway.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Timer } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { sandboxInitFile, trustBundle } from '../../egress-proxy/index.ts';
import { RENEW_MS } from '../../storage/owner.ts';
import type { DriverOptions, DriverParts, Examination, SandboxDriver, SandboxRecord } from '../driver.ts';
import { BubblewrapSandbox } from './bubblewrap-sandbox.ts';
import { baseFolder, blockingFolder, Folders } from './folders.ts';
import { examineMachine, type Machine, machineHere } from './machine.ts';
import { bubblewrapsOf, gone, inheritedDescriptors, kill } from './processes.ts';
import type { NetworkFiles } from './system.ts';
import { userOf } from './users.ts';

const SWEEP_WAIT_MS = 5000;

export class BubblewrapDriver implements SandboxDriver {
  readonly #parts: DriverParts;
  readonly #folders: Folders;
  readonly #isRoot = process.getuid?.() === 0;
  readonly #running = new Set<string>();
  /** Looked up at the start, when the gateway has few descriptors. */
  readonly #inherited = inheritedDescriptors();
  #machine: Machine | undefined;
  #examined: Promise<Examination> | undefined;
  #renewal: Timer | undefined;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    const folder = parts.settings.folder ?? baseFolder(parts.dataDir, this.#isRoot);
    this.#folders = new Folders(folder, parts.clock);
  }

  examine(): Promise<Examination> {
    this.#examined ??= examineMachine(this.#here(), this.#isRoot, tmpdir());
    return this.#examined;
  }

  async create(options: DriverOptions): Promise<BubblewrapSandbox> {
    const { id, owner, network } = options;
    const { egressProxy } = this.#parts;
    const { users } = this.#here();
    const uid = users === null ? null : userOf(id, users);
    if (this.#folders.isAbandoned(id)) await this.#end(id);
    if (!(await this.#folders.take(id, owner, uid))) throw busy(id);
    this.#running.add(id);
    this.#renew();
    const egressId = shortId(id);
    const release = async () => {
      if (network !== null) await egressProxy.close(egressId);
      await this.#folders.release(id);
      this.#running.delete(id);
    };
    try {
      const socketFolder = network === null ? undefined : await egressProxy.open(egressId, { ...network, gid: uid });
      const files = socketFolder === undefined ? null : this.#networkFiles(options, socketFolder);
      return await this.#start(options, uid, files, release);
    } catch (error) {
      await release();
      throw error;
    }
  }

  async list(): Promise<SandboxRecord[]> {
    return this.#folders.list();
  }

  async remove(id: string): Promise<void> {
    if (this.#folders.isAbandoned(id)) await this.#end(id);
    if (!(await this.#folders.remove(id))) throw busy(id);
  }

  async sweep(): Promise<number> {
    let ended = 0;
    for (const id of this.#folders.ids().filter((each) => this.#folders.isAbandoned(each))) {
      try {
        await this.#end(id);
        ended += 1;
      } catch (error) {
        this.#parts.log.error('a sandbox of a gateway that was killed cannot be ended', { sandbox: id, error });
      }
    }
    return ended;
  }

  #here(): Machine {
    this.#machine ??= { ...machineHere(this.#parts.clock, this.#isRoot), inherited: this.#inherited };
    return this.#machine;
  }

  /** Ends what a dead owner has left of a sandbox. */
  async #end(id: string): Promise<void> {
    const { clock } = this.#parts;
    const found = bubblewrapsOf(this.#folders.of(id).folder);
    for (const pid of found) kill(pid);
    for (const pid of found) await gone(pid, clock, SWEEP_WAIT_MS);
    await this.#here()
      .groups?.existing(this.#groupPrefix() + id)
      .remove();
    if (!this.#folders.isOwned(id)) await this.#folders.release(id);
  }

  async #start(
    options: DriverOptions,
    uid: number | null,
    network: NetworkFiles | null,
    release: () => Promise<void>,
  ): Promise<BubblewrapSandbox> {
    const { id, limits, reserveBytes, programs } = options;
    const { clock } = this.#parts;
    const { groups, filter, countsProcesses, inherited } = this.#here();
    const folder = this.#folders.of(id);
    const group = groups?.make(this.#groupPrefix() + id, limits) ?? null;
    const sandbox = new BubblewrapSandbox({
      ...{ id, folder, limits, reserveBytes, uid, group, countsProcesses, inherited, filter, programs, network, clock },
      release,
    });
    try {
      await sandbox.prove();
      return sandbox;
    } catch (error) {
      await sandbox.endAll();
      throw error;
    }
  }

  #networkFiles({ id, network }: DriverOptions, socketFolder: string): NetworkFiles {
    const { extraCa } = this.#parts;
    const forwarder = this.#folders.writeEtc(
      id,
      `forwarder.m${path.extname(sandboxInitFile()).slice(1)}`,
      readFileSync(sandboxInitFile(), 'utf8'),
    );
    const bundle = this.#folders.writeEtc(id, 'bundle.pem', trustBundle(network!.certificate, extraCa));
    return { socketFolder, bundle, forwarder, node: this.#node() };
  }

  /** Node, in a place that the sandbox's user can enter. */
  #node(): string {
    const { execPath } = process;
    if (!this.#isRoot || blockingFolder(execPath) === undefined) return execPath;
    const copy = path.join(this.#folders.base, `.node-${process.version}`, 'node');
    if (existsSync(copy)) return copy;
    mkdirSync(path.dirname(copy), { recursive: true, mode: 0o755 });
    copyFileSync(execPath, `${copy}.${process.pid}`);
    renameSync(`${copy}.${process.pid}`, copy);
    return copy;
  }

  #groupPrefix(): string {
    return `${shortId(this.#folders.base)}-`;
  }

  #renew(): void {
    this.#renewal ??= this.#parts.clock.timer(RENEW_MS, () => {
      this.#renewal = undefined;
      for (const id of this.#running) this.#folders.renew(id);
      if (this.#running.size > 0) this.#renew();
    });
  }
}

/** Short enough for the path of a socket. */
function shortId(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** 409. */
function busy(id: string): GatewayError {
  return new GatewayError('invalid_request', `The sandbox ${id} is running in another process.`, { status: 409 });
}
