/**
 * The own keys of all organizations, opened, in the memory of one process, followed by changes. What is not sealed (whether
 * a key is disabled or deleted, what it requires, whom it is for) holds without the key that opens them. A key that cannot be
 * opened is never used, and still closes what it closes.
 */
import type { Clock } from '../base/clock.ts';
import type { ProviderSettings } from '../base/config.ts';
import { type Log, redact } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import { type Box, type Sealing, SealingError } from '../sealing/index.ts';
import type { Changes, Database } from '../storage/database.ts';
import { Followed, type Refreshable } from '../storage/followed.ts';
import { secretsIn } from './credential.ts';
import type { OwnKey, OwnKeyCaller, OwnKeys } from './own-keys.ts';
import { PURPOSE, SEALED_COLUMN, TOPIC } from './sealed.ts';
import { slugsOf } from './slugs.ts';
import { enabledOwnKeys, type SealedOwnKey } from './store.ts';

export interface FollowParts {
  database: Database;
  changes: Pick<Changes, 'subscribe' | 'freshness'>;
  clock: Clock;
  log: Log;
  sealing: Sealing;
  /** As they are configured now; another list after every reload. */
  providers(): readonly ProviderSettings[];
  /** What a model is called beside its id, in any spelling: its lasting name. */
  otherNames(modelId: string): readonly string[];
}

/** To be refreshed before `of` and the others are called. */
export interface FollowedOwnKeys extends OwnKeys, Refreshable {
  /** Why some of them cannot be opened here, in words for the operator; undefined: all can. */
  readonly problem: string | undefined;
  close(): void;
}

const NONE: readonly OwnKey[] = Object.freeze([]);
const NO_HELD_KEYS: readonly HeldKey[] = [];

/** Reads them once. @throws SealingError when what is there cannot be opened, in words for the operator */
export async function followOwnKeys(parts: FollowParts): Promise<FollowedOwnKeys> {
  await parts.sealing.check();
  const keys = new HeldKeys(parts);
  await keys.start();
  return keys;
}

/** What concerns a caller at one provider, whatever the model. */
interface Concerning {
  keys: readonly HeldKey[];
  /** That cannot be opened. */
  unopened: readonly HeldKey[];
  /** That say something about the gateway's own credentials, among them those that cannot be opened. */
  closing: readonly HeldKey[];
  /** Some of `keys` are for certain models only. */
  chosen: boolean;
}

class HeldKeys implements FollowedOwnKeys {
  problem: string | undefined;
  readonly #parts: FollowParts;
  readonly #followed: Followed<readonly HeldKey[]>;
  /** Why not one of them can be opened. */
  #failure: SealingError | undefined;
  #byCaller = new WeakMap<OwnKeyCaller, Map<string, Concerning>>();
  /** That `#byCaller` was made for. */
  #providers: readonly ProviderSettings[] | undefined;
  /** Ids of those that were logged because they cannot be opened. */
  #logged = new Set<string>();

  constructor(parts: FollowParts) {
    this.#parts = parts;
    const { changes, clock, log } = parts;
    this.#followed = new Followed({
      ...{ changes, clock, log, topic: TOPIC },
      name: "The customers' own keys at providers (BYOK)",
      read: () => this.#read(),
      adopted: () => this.#forgetCallers(undefined),
    });
  }

  /** To be called at once: what is told of meanwhile is read after this, never before it. */
  async start(): Promise<void> {
    await this.#followed.readNow();
    if (this.#failure !== undefined) throw this.#failure;
  }

  get upToDate(): boolean {
    return this.#followed.upToDate;
  }

  refresh(): Promise<void> | undefined {
    return this.#followed.refresh();
  }

  get #keys(): readonly HeldKey[] {
    return this.#followed.value ?? NO_HELD_KEYS;
  }

  get any(): boolean {
    return this.#keys.length > 0;
  }

  of(caller: OwnKeyCaller, provider: { id: string; kindId: string }, modelId: string): readonly OwnKey[] {
    if (this.#keys.length === 0) return NONE;
    const { keys, chosen } = this.#concerning(caller, provider);
    if (!chosen) return keys;
    const names = this.#namesOf(modelId);
    return keys.filter((key) => key.serves(names));
  }

  closes(caller: OwnKeyCaller, provider: { id: string; kindId: string }, modelId: string): boolean {
    if (this.#keys.length === 0) return false;
    const { closing } = this.#concerning(caller, provider);
    if (closing.length === 0) return false;
    const names = this.#namesOf(modelId);
    return closing.some((key) => key.isByokOnly || key.serves(names));
  }

  unopened(caller: OwnKeyCaller, provider: { id: string; kindId: string }, modelId: string): readonly OwnKey[] {
    if (this.problem === undefined) return NONE;
    const names = this.#namesOf(modelId);
    return this.#concerning(caller, provider).unopened.filter((key) => key.serves(names));
  }

  close(): void {
    this.#followed.close();
  }

  #namesOf(modelId: string): string[] {
    return [modelId, ...this.#parts.otherNames(modelId)].map((name) => name.toLowerCase());
  }

  #concerning(caller: OwnKeyCaller, provider: { id: string; kindId: string }): Concerning {
    const providers = this.#parts.providers();
    if (providers !== this.#providers) this.#forgetCallers(providers);
    let byProvider = this.#byCaller.get(caller);
    if (byProvider === undefined) {
      byProvider = new Map();
      this.#byCaller.set(caller, byProvider);
    }
    let concerning = byProvider.get(provider.id);
    if (concerning === undefined) {
      const slugs = slugsOf(provider, providers);
      const all = this.#keys.filter((key) => slugs.includes(key.providerSlug) && key.admits(caller));
      const keys = Object.freeze(all.filter(({ isOpen }) => isOpen));
      concerning = {
        keys,
        unopened: all.filter(({ isOpen }) => !isOpen),
        closing: all.filter(({ isByokOnly, isRequired }) => isByokOnly || isRequired),
        chosen: keys.some(({ models }) => models !== null),
      };
      byProvider.set(provider.id, concerning);
    }
    return concerning;
  }

  #forgetCallers(providers: readonly ProviderSettings[] | undefined): void {
    this.#byCaller = new WeakMap();
    this.#providers = providers;
  }

  async #read(): Promise<HeldKey[]> {
    const rows = await enabledOwnKeys(this.#parts.database);
    const box = rows.length === 0 ? undefined : await this.#box(rows);
    const keys = rows.map((row) => this.#opened(row, box));
    this.#report(keys.filter(({ isOpen }) => !isOpen));
    return keys;
  }

  /** undefined: none can be opened on this machine. */
  async #box(rows: readonly SealedOwnKey[]): Promise<Box | undefined> {
    this.#failure = undefined;
    const records = rows.map(({ sealed }) => sealed);
    try {
      return await this.#parts.sealing.opener(PURPOSE, records);
    } catch (error) {
      if (!(error instanceof SealingError)) throw error;
      this.#failure = error;
      return undefined;
    }
  }

  #opened(row: SealedOwnKey, box: Box | undefined): HeldKey {
    try {
      return new HeldKey(row, box?.open(row.id, SEALED_COLUMN, row.sealed));
    } catch (error) {
      if (!(error instanceof SealingError)) throw error;
      return new HeldKey(row, undefined);
    }
  }

  /** Once for each key, however often they are read. */
  #report(unopened: readonly HeldKey[]): void {
    const { length } = unopened;
    const reason = this.#failure?.message ?? 'their records were altered';
    this.problem = length === 0 ? undefined : `${length} own keys at providers cannot be opened here: ${reason}`;
    const fresh = unopened.filter(({ id }) => !this.#logged.has(id)).map(({ id }) => id);
    this.#logged = new Set(unopened.map(({ id }) => id));
    if (fresh.length > 0) this.#parts.log.error('own keys cannot be opened and are not used', { ids: fresh, reason });
  }
}

class HeldKey implements OwnKey {
  readonly id: string;
  readonly providerSlug: string;
  readonly isFallback: boolean;
  readonly isRequired: boolean;
  readonly isByokOnly: boolean;
  readonly declaredZdr: boolean | null;
  readonly sortOrder: number;
  /** In lower case; null: all. */
  readonly models: ReadonlySet<string> | null;
  readonly #row: Pick<SealedOwnKey, 'organizationId' | 'workspaceId' | 'allowedUserIds'>;
  readonly #keyIds: ReadonlySet<string> | null;
  /** Undefined where it cannot be opened. */
  readonly #value: Secret | undefined;

  constructor(row: SealedOwnKey, value: string | undefined) {
    this.id = row.id;
    this.providerSlug = row.provider;
    this.isFallback = row.isFallback;
    this.isRequired = row.isRequired;
    this.isByokOnly = row.isByokOnly;
    this.declaredZdr = row.declaredZdr;
    this.sortOrder = row.sortOrder;
    this.models = row.allowedModels && new Set(row.allowedModels.map((model) => model.toLowerCase()));
    const { organizationId, workspaceId, allowedUserIds } = row;
    this.#row = { organizationId, workspaceId, allowedUserIds };
    this.#keyIds = row.allowedKeyIds && new Set(row.allowedKeyIds);
    this.#value = value === undefined ? undefined : new Secret(value);
    for (const secret of value === undefined ? [] : secretsIn(value)) redact(secret);
    Object.freeze(this);
  }

  get value(): string {
    if (this.#value === undefined) throw new Error('the own key cannot be opened');
    return this.#value.reveal();
  }

  get isOpen(): boolean {
    return this.#value !== undefined;
  }

  /** @param names of one model, in lower case */
  serves(names: readonly string[]): boolean {
    const { models } = this;
    return models === null || names.some((name) => models.has(name));
  }

  admits({ organizationId, workspaceId, keyId, userId }: OwnKeyCaller): boolean {
    const { allowedUserIds } = this.#row;
    return (
      organizationId === this.#row.organizationId &&
      (this.#row.workspaceId === null || this.#row.workspaceId === workspaceId) &&
      (this.#keyIds === null || this.#keyIds.has(keyId)) &&
      (allowedUserIds === null || (userId !== null && allowedUserIds.includes(userId)))
    );
  }
}
