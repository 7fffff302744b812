/**
 * What sandboxes get of vaults: a way out through the egress proxy, which knows the values, and placeholders. It follows changes: a
 * secret that is stored, replaced or deleted counts in running sandboxes as soon as the operation has answered.
 */
import { gatewayAuthor, recordChange } from '../audit/index.ts';
import type { Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import {
  type BoundSecret,
  createPlaceholder,
  type EgressWay,
  isReservedVariable,
  type ProxiedSandbox,
  type RefusalReport,
  type SandboxSettings,
} from '../egress-proxy/index.ts';
import { SealingError } from '../sealing/index.ts';
import type { Changes } from '../storage/database.ts';
import { currentAuthority } from './authorities.ts';
import { openEffective } from './effective.ts';
import { type HeldOwner, resourceIdOf, type SecretParts } from './secrets.ts';
import * as store from './store.ts';
import { presented } from './vault-key.ts';
import { newVault, VAULTS_TOPIC } from './vaults.ts';

interface ReleaseParts extends SecretParts {
  changes: Pick<Changes, 'announce' | 'subscribe' | 'freshness'>;
  log: Log;
  /** The current configuration. */
  settings(): { domains: readonly string[]; ports: readonly number[] };
}

/** Who a sandbox works for, and where it may go. */
export interface SandboxPolicy {
  /** Its vault is made if there is none. */
  held: HeldOwner;
  /** The vault that an intern borrows. */
  borrowedVaultId: string | null;
  /** Exact domains, globs or `*`, within those of the installation. */
  domains: readonly string[];
  /** Within those of the installation; absent: all of them. */
  ports?: readonly number[];
}

/** A secret that a sandbox does not get. */
export interface WithheldSecret {
  name: string;
  problem: string;
}

export interface SandboxEgress {
  /** For `Sandboxes.create`. `certificate`: of the authority that the sandbox trusts for as long as it lives, in PEM. */
  readonly network: { certificate: string } & Pick<ProxiedSandbox, 'load' | 'onRefused'>;
  /** A variable for each secret, for processes that start now: the name in upper case, and its placeholder. */
  environment(): Record<string, string>;
  /** Secrets whose variables the sandbox itself needs. */
  withheld(): readonly WithheldSecret[];
}

/** How often sandboxes read their secrets again while changes do not arrive. */
const RECHECK_MS = 1_000;

class Release implements SandboxEgress {
  readonly #parts: ReleaseParts;
  readonly #policy: SandboxPolicy;
  readonly #authorityId: string;
  readonly #placeholders = new Map<string, string>();
  readonly vaults: { ownId: string; borrowedId: string | null };
  readonly network: SandboxEgress['network'];
  /** Names of secrets that it has now. */
  #names: readonly string[] = [];
  #withheld: readonly WithheldSecret[] = [];
  /** Monotonic time in ms at which what the proxy has was known to be right. */
  rightAt = Number.NEGATIVE_INFINITY;
  /** Its way out is closed, because the secrets could not be read. */
  isSuspended = false;
  /** Known once the sandbox is opened. */
  way: EgressWay | undefined;

  /** @param opened called when the proxy has asked for the secrets for the first time */
  constructor(
    parts: ReleaseParts,
    policy: SandboxPolicy,
    { ownId, authority }: Prepared,
    events: { opened(release: Release): void; refused(refusal: RefusalReport): void },
  ) {
    this.#parts = parts;
    this.#policy = policy;
    this.#authorityId = authority.id;
    this.vaults = { ownId, borrowedId: policy.borrowedVaultId };
    this.network = {
      certificate: authority.certificate,
      onRefused: (refusal) => events.refused(refusal),
      load: (way) => {
        if (this.way === undefined) events.opened(this);
        this.way = way;
        return this.load();
      },
    };
  }

  /** The gateway keeps no value. @throws SealingError, or GatewayError 503 without the database */
  async load(): Promise<SandboxSettings> {
    const { clock, settings } = this.#parts;
    const startedAt = clock.monotonic();
    const { secrets, authority } = await openEffective(this.#parts, {
      vaults: this.vaults,
      authorityId: this.#authorityId,
    });
    const usable = secrets.filter(({ name }) => !isReservedVariable(name));
    const bound: BoundSecret[] = usable.map((secret) => ({ ...secret, placeholder: this.#placeholderOf(secret.name) }));
    this.#names = usable.map(({ name }) => name);
    this.#withheld = secrets.filter(({ name }) => isReservedVariable(name)).map(withheld);
    this.rightAt = startedAt;
    this.isSuspended = false;
    const { domains, ports } = settings();
    const wanted = this.#policy.ports;
    return {
      ...{ secrets: bound, authority, domains: this.#policy.domains, withinDomains: domains },
      ports: wanted === undefined ? ports : ports.filter((port) => wanted.includes(port)),
    };
  }

  environment(): Record<string, string> {
    return Object.fromEntries(this.#names.map((name) => [name.toUpperCase(), this.#placeholderOf(name)]));
  }

  withheld(): readonly WithheldSecret[] {
    return this.#withheld;
  }

  uses(vaultId: string): boolean {
    return this.vaults.ownId === vaultId || this.vaults.borrowedId === vaultId;
  }

  /** Stays the same while the sandbox lives, also for a secret that is replaced. */
  #placeholderOf(name: string): string {
    const placeholder = this.#placeholders.get(name) ?? createPlaceholder();
    this.#placeholders.set(name, placeholder);
    return placeholder;
  }
}

function withheld({ name }: { name: string }): WithheldSecret {
  return {
    name,
    problem: `the variable ${name.toUpperCase()} has another meaning in a sandbox; store it under another name`,
  };
}

interface Prepared {
  ownId: string;
  authority: { id: string; certificate: string };
}

export class SecretReleases {
  readonly #parts: ReleaseParts;
  readonly #open = new Set<Release>();
  #timer: Timer | undefined;

  constructor(parts: ReleaseParts) {
    this.#parts = parts;
    parts.changes.subscribe(VAULTS_TOPIC, (id) => this.#changed(id));
  }

  /**
   * What a sandbox is created with: all secrets of its vaults, or none if one cannot be decrypted. It follows changes from when its
   * network is opened until it is closed.
   *
   * @param sandbox its id, for the audit log
   * @throws GatewayError 503 if a secret cannot be decrypted here
   */
  async prepare(sandbox: string, policy: SandboxPolicy): Promise<SandboxEgress> {
    return presented(async () => {
      const release = new Release(this.#parts, policy, await this.#prepared(policy), {
        opened: (opened) => this.#follow(opened),
        refused: (refusal) => void this.#report(sandbox, policy, refusal),
      });
      // The proxy asks again when it is opened; here it shows whether it can, and the names.
      await release.load();
      for (const { name, problem } of release.withheld())
        this.#parts.log.warn('a secret is withheld', { sandbox, name, problem });
      return release;
    });
  }

  /** Reads everything again, after the configuration changed. */
  async reload(): Promise<void> {
    await Promise.all([...this.#open].map((release) => this.#refresh(release, false)));
  }

  /** Stops following. */
  end(): void {
    this.#timer?.cancel();
    this.#open.clear();
  }

  /** @throws SealingError */
  async #prepared({ held: { owner, hold } }: SandboxPolicy): Promise<Prepared> {
    const { database, sealing, clock } = this.#parts;
    let ownId = await store.vaultIdOf(database, owner);
    if (ownId === undefined) {
      const made = await newVault(sealing, owner, new Date(clock.now()));
      ownId = await database.transaction(async (tx) => {
        await hold(tx);
        await store.insertVault(tx, made);
        return (await store.vaultIdOf(tx, owner))!;
      });
    }
    return { ownId, authority: await currentAuthority(this.#parts, ownId) };
  }

  /** A write waits for this, so the proxy has the new state, or none, when it resolves. @param vaultId null: any */
  async #changed(vaultId: string | null): Promise<void> {
    const concerned = [...this.#open].filter((release) => vaultId === null || release.uses(vaultId));
    await Promise.all(concerned.map((release) => this.#refresh(release, vaultId !== null)));
  }

  /** @param isChanged what the proxy has is known to be out of date */
  async #refresh(release: Release, isChanged: boolean): Promise<void> {
    const { changes, log } = this.#parts;
    const way = release.way!;
    try {
      await way.reload();
    } catch (error) {
      if (!way.isOpen) return;
      const isUnreachable = !(error instanceof SealingError);
      if (isUnreachable && !isChanged && changes.freshness.inGrace(release.rightAt)) return;
      const vault = release.vaults.ownId;
      if (!release.isSuspended)
        log.error('a sandbox has no egress, because its secrets cannot be read', { vault, error });
      release.isSuspended = true;
      way.suspend();
    }
  }

  #follow(release: Release): void {
    this.#open.add(release);
    this.#timer ??= this.#parts.clock.timer(RECHECK_MS, () => void this.#recheck());
  }

  /** Forgets closed sandboxes. While changes do not arrive, what the proxy has is read again. */
  async #recheck(): Promise<void> {
    for (const release of this.#open) if (!release.way!.isOpen) this.#open.delete(release);
    if (!this.#parts.changes.freshness.current) await this.reload();
    if (this.#open.size > 0) this.#timer?.refresh();
    else this.#timer = undefined;
  }

  /** Attempts to send a secret elsewhere are audited, other refusals logged. */
  async #report(sandbox: string, { held: { owner } }: SandboxPolicy, refusal: RefusalReport): Promise<void> {
    const { database, clock, log } = this.#parts;
    const { secret, ...facts } = refusal;
    const about = { sandbox, ...facts };
    if (secret === null) return log.info('egress of a sandbox refused', about);
    try {
      const { message: _, ...after } = about;
      await database.transaction((tx) =>
        recordChange(tx, gatewayAuthor(owner.organizationId, clock.now()), {
          action: 'vault_secret.refused',
          resourceType: 'vault_secret',
          resourceId: resourceIdOf(owner, secret),
          workspaceId: owner.workspaceId,
          after,
        }),
      );
    } catch (error) {
      log.error('a refused secret could not be audited', { ...about, name: secret, error });
    }
  }
}
