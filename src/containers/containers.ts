/** The containers of this installation: opened for a request, and stored for the next one. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { SandboxesSettings } from '../base/config.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { Blobs } from '../blobs/index.ts';
import type { Examination, Sandbox, Sandboxes } from '../sandboxes/index.ts';
import type { Database } from '../storage/database.ts';
import { type Awake, AwakeSandboxes } from './awake.ts';
import { type Claim, Claims } from './claims.ts';
import {
  type ContainerFile,
  type ContainerOwner,
  checkDomains,
  isMadeUp,
  madeUpName,
  type StoredContainer,
  type WantedContainer,
} from './container.ts';
import { ContainerNetworks } from './network.ts';
import { dropBlobs } from './removal.ts';
import * as store from './store.ts';
import { ContainerUse } from './use.ts';

/** Beyond these, the containers that were unused for longest are removed. */
const MOST_OF_KEY = 50;
const WORKSPACE_BYTES = 10 * 1024 ** 3;

const OWNER = 'container ';

/** Whether it is the owner of a container's sandbox, which lasts no longer than the process that made it. */
export function isOwnedByContainer(owner: string): boolean {
  return owner.startsWith(OWNER);
}

interface ContainerParts {
  sandboxes: Pick<Sandboxes, 'create' | 'examine'>;
  settings: Pick<SandboxesSettings, 'commandMs' | 'outputBytes' | 'containerMs'>;
  database: Database;
  blobs: Pick<Blobs, 'keep' | 'drop'>;
  /** The current rules of the installation for the way out of sandboxes. */
  egress(): { domains: readonly string[]; ports: readonly number[] };
  clock: Clock;
  log: Log;
}

export class Containers {
  /** Of one command. */
  readonly limits: Pick<SandboxesSettings, 'commandMs' | 'outputBytes'>;
  readonly #parts: ContainerParts;
  readonly #claims: Claims;
  readonly #awake: AwakeSandboxes;
  readonly #networks: ContainerNetworks;
  /** Of this process, by container. */
  readonly #uses = new Map<string, ContainerUse>();

  constructor(parts: ContainerParts) {
    this.#parts = parts;
    this.limits = parts.settings;
    this.#claims = new Claims(parts);
    this.#awake = new AwakeSandboxes(parts);
    this.#networks = new ContainerNetworks(parts);
  }

  /** Whether code can run here. */
  examine(): Promise<Examination> {
    return this.#parts.sandboxes.examine();
  }

  /** Undefined if the key has none with this name. */
  find({ keyId }: ContainerOwner, name: string): Promise<StoredContainer | undefined> {
    const { database, clock } = this.#parts;
    return store.findContainer(database, keyId, name, new Date(clock.now()));
  }

  /**
   * Opens a container, or makes it. Its use must be ended (`ContainerUse.end`).
   * @throws GatewayError 409 if another request uses it, or its network is another one; 429 if the key uses too many, 503 if
   *   the gateway does
   */
  async open(owner: ContainerOwner, wanted: WantedContainer, signal: AbortSignal): Promise<ContainerUse> {
    for (;;) {
      const container = await this.#findOrMake(owner, wanted);
      checkDomains(container, wanted.domains, 'environment.network_policy');
      const use = await this.#use(container, signal);
      if (use !== undefined) return use;
      // It expired meanwhile.
    }
  }

  /**
   * The files that code has made in a container, by their paths: as they are if this process uses it, and otherwise as the last
   * use left them. A use in another process that is about to end is waited for.
   */
  async files(container: StoredContainer): Promise<ContainerFile[]> {
    const use = this.#uses.get(container.id);
    const files = use === undefined || use.isEnding ? await this.#stored(container, use) : await use.files();
    return files.sort((one, other) => (one.path < other.path ? -1 : 1));
  }

  async #stored({ id }: StoredContainer, ending: ContainerUse | undefined): Promise<ContainerFile[]> {
    await ending?.end();
    await this.#claims.settled(id);
    return store.listFiles(this.#parts.database, id);
  }

  /**
   * A file of a container. `work` gets the sandbox that has it.
   * @throws GatewayError as `open` does
   */
  async reading<T>(
    container: StoredContainer,
    signal: AbortSignal,
    work: (sandbox: Sandbox) => Promise<T>,
  ): Promise<T | undefined> {
    const running = this.#uses.get(container.id);
    if (running !== undefined && !running.isEnding) return work(running.sandbox);
    const use = await this.#use(container, signal);
    if (use === undefined) return undefined;
    try {
      return await work(use.sandbox);
    } finally {
      await use.end();
    }
  }

  /** After the rules of the installation for the way out have changed. */
  reload(): Promise<void> {
    return this.#networks.reload();
  }

  /** Stores what is in use, and destroys all sandboxes. */
  async close(): Promise<void> {
    await Promise.all([...this.#uses.values()].map((use) => use.end()));
    await this.#awake.close();
    this.#claims.close();
  }

  async #findOrMake(
    owner: ContainerOwner,
    { name = madeUpName(), domains }: WantedContainer,
  ): Promise<StoredContainer> {
    const found = await this.find(owner, name);
    if (found !== undefined) return found;
    const { database, blobs, clock, settings } = this.#parts;
    const { keyId, workspaceId, organizationId } = owner;
    const now = clock.now();
    const at = new Date(now);
    await database.transaction(async (tx) => {
      await dropBlobs(blobs, tx, await store.deleteExpiredNamed(tx, keyId, name, at));
      await store.insertContainer(tx, {
        ...{ id: uuidv7(now), organizationId, workspaceId, keyId, name, domains: domains ?? null, copied: {} },
        ...{ blobId: null, bytes: 0, version: 0, createdAt: at, usedAt: at, unsavedAt: null },
        expiresAt: new Date(now + settings.containerMs),
      });
    });
    // Another request may have been faster.
    return this.#findOrMake(owner, { name, domains });
  }

  async #use(container: StoredContainer, signal: AbortSignal): Promise<ContainerUse | undefined> {
    const { database, log } = this.#parts;
    let use: ContainerUse | undefined;
    const claim = await this.#claims.take(container.id, container.name, signal, () => use?.lose());
    if (claim === undefined) return undefined;
    try {
      const files = await store.listFiles(database, claim.id);
      const awake = await this.#wake(claim.container);
      use = new ContainerUse(claim.container, awake, { log, files, end: (ended) => this.#end(claim, ended) });
      this.#uses.set(container.id, use);
      return use;
    } catch (error) {
      await this.#release(claim).catch(() => {});
      throw error;
    }
  }

  async #end(claim: Claim, use: ContainerUse): Promise<void> {
    const { id, keyId } = claim.container;
    const { sandbox, sleepAfterMs } = use;
    /** Of the files that are in the sandbox and stored. */
    let version: number | undefined;
    try {
      if (!use.isLost) version = await this.#leave(claim, use);
    } catch (error) {
      this.#parts.log.error('the files of a container cannot be stored; it keeps those from before', {
        container: id,
        error,
      });
      // If this fails, the claim expires.
      await this.#release(claim, true).catch(() => {});
    }
    this.#claims.end(claim);
    this.#uses.delete(id);
    const left = { containerId: id, keyId, sandbox };
    // The next use must not see files that are not stored.
    await this.#awake.giveBack({
      ...left,
      version: version ?? 0,
      sleepAfterMs: version === undefined ? 0 : sleepAfterMs,
    });
  }

  /** Returns the version that is stored; undefined if there is nothing to store. */
  async #leave(claim: Claim, use: ContainerUse): Promise<number | undefined> {
    const { container } = claim;
    const { database, clock, settings, blobs } = this.#parts;
    if (!use.isChanged) {
      await this.#release(claim);
      return container.version;
    }
    const files = await use.files();
    if (files.length === 0 && container.blobId === null && isMadeUp(container.name)) {
      await store.deleteContainer(database, claim);
      return undefined;
    }
    const blob = await use.sandbox.snapshot();
    const now = clock.now();
    await database.transaction(async (tx) => {
      await blobs.keep(tx, blob.id);
      const left = { copied: use.copied, blobId: blob.id, bytes: blob.bytes, usedAt: new Date(now), files };
      const saved = await store.saveContainer(tx, claim, { ...left, expiresAt: new Date(now + settings.containerMs) });
      if (saved === undefined) throw new Error('another use has the container');
      await dropBlobs(blobs, tx, [saved.replaced]);
      const { workspaceId } = container;
      const most = { workspaceId, now: new Date(now), ofKey: MOST_OF_KEY, bytes: WORKSPACE_BYTES };
      await dropBlobs(blobs, tx, await store.deleteSurplus(tx, most));
    });
    return container.version + 1;
  }

  /** @param unsaved its files could not be stored, which the next use and the list of files tell */
  async #release(claim: Claim, unsaved = false): Promise<void> {
    const { database, clock, settings } = this.#parts;
    this.#claims.end(claim);
    const now = clock.now();
    const release = unsaved ? store.releaseUnsaved : store.releaseContainer;
    await release(database, claim, new Date(now), new Date(now + settings.containerMs));
  }

  async #wake(container: StoredContainer): Promise<Pick<Awake, 'sandbox' | 'sleepAfterMs'>> {
    const { id, keyId, version, blobId } = container;
    const awake = await this.#awake.begin(id, keyId, version);
    if (awake !== undefined) return awake;
    try {
      const sandbox = await this.#create(container);
      try {
        if (blobId !== null) await sandbox.restore(blobId);
        return { sandbox, sleepAfterMs: 0 };
      } catch (error) {
        await sandbox.destroy();
        throw error;
      }
    } catch (error) {
      this.#awake.end(keyId);
      throw error;
    }
  }

  async #create({ id, domains }: StoredContainer): Promise<Sandbox> {
    const network = domains === null ? {} : { network: await this.#networks.of(id, domains) };
    for (;;) {
      try {
        // Processes on one machine can have sandboxes of the same container.
        const sandboxId = `c${randomUUID().replaceAll('-', '')}`;
        return await this.#parts.sandboxes.create({ id: sandboxId, owner: `${OWNER}${id}`, ...network });
      } catch (error) {
        const isFull = error instanceof GatewayError && error.status === 503;
        if (!isFull || !(await this.#awake.sleepOldest())) throw error;
      }
    }
  }
}
