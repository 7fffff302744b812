/**
 * The own keys of all organizations, opened, in the memory of one process. Read at the start and again whenever one
 * changes; whoever changed it waits for that, so an answered change holds everywhere. While they cannot be read again,
 * what was known holds.
 */
import type { Clock, Timer } from '../base/clock.ts';
import type { ProviderSettings } from '../base/config.ts';
import { type Log, redact } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import { type Sealing, SealingError } from '../sealing/index.ts';
import type { Changes, Database } from '../storage/database.ts';
import { secretsIn } from './credential.ts';
import type { OwnKey, OwnKeyCaller, OwnKeys } from './own-keys.ts';
import { PURPOSE, SEALED_COLUMN, TOPIC } from './sealed.ts';
import { slugsOf } from './slugs.ts';
import { enabledOwnKeys, type SealedOwnKey } from './store.ts';

export interface FollowParts {
  database: Database;
  changes: Pick<Changes, 'subscribe'>;
  clock: Clock;
  log: Log;
  sealing: Sealing;
  /** As they are configured now; another list after every reload. */
  providers(): readonly ProviderSettings[];
  /** What a model is called beside its id, in any spelling: its lasting name. */
  otherNames(modelId: string): readonly string[];
}

export interface FollowedOwnKeys extends OwnKeys {
  close(): void;
}

const RETRY_MS = 1_000;
const NONE: readonly OwnKey[] = Object.freeze([]);

/** Reads them once. @throws SealingError when what is there cannot be opened, in words for the operator */
export async function followOwnKeys(parts: FollowParts): Promise<FollowedOwnKeys> {
  await parts.sealing.check();
  const keys = new Followed(parts);
  await keys.start();
  return keys;
}

/** What concerns a caller at one provider, whatever the model. */
interface Concerning {
  keys: readonly HeldKey[];
  /** That say something about the gateway's own credentials, among them those that cannot be opened. */
  closing: readonly HeldKey[];
  /** Some of `keys` are for certain models only. */
  chosen: boolean;
}

class Followed implements FollowedOwnKeys {
  readonly #parts: FollowParts;
  #keys: readonly HeldKey[] = [];
  #byCaller = new WeakMap<OwnKeyCaller, Map<string, Concerning>>();
  /** That `#byCaller` was made for. */
  #providers: readonly ProviderSettings[] | undefined;
  #reading: Promise<void> | undefined;
  #outdated = false;
  #retry: Timer | undefined;
  #closed = false;

  constructor(parts: FollowParts) {
    this.#parts = parts;
    parts.changes.subscribe(TOPIC, () => this.#readAgain());
  }

  /** To be called at once: what is told of meanwhile is read after this, never before it. */
  start(): Promise<void> {
    return this.#alone(async () => {
      this.#adopt(await this.#read());
      await this.#readUntilCurrent();
    });
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

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
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

  #adopt(keys: readonly HeldKey[]): void {
    this.#keys = keys;
    this.#forgetCallers(undefined);
  }

  /** Fulfilled when what is known is no older than this call, or cannot be read. */
  #readAgain(): Promise<void> {
    this.#outdated = true;
    return this.#alone(() => this.#readUntilCurrent());
  }

  #alone(read: () => Promise<void>): Promise<void> {
    this.#reading ??= read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readUntilCurrent(): Promise<void> {
    while (this.#outdated && !this.#closed) {
      this.#outdated = false;
      try {
        this.#adopt(await this.#read());
      } catch (error) {
        if (this.#closed) return;
        this.#parts.log.error('own keys cannot be read; those that were known go on', { error });
        this.#retry?.cancel();
        this.#retry = this.#parts.clock.timer(RETRY_MS, () => void this.#readAgain());
      }
    }
  }

  async #read(): Promise<HeldKey[]> {
    const { database, sealing, log } = this.#parts;
    const rows = await enabledOwnKeys(database);
    if (rows.length === 0) return [];
    const records = rows.map(({ sealed }) => sealed);
    const box = await sealing.opener(PURPOSE, records);
    return rows.map((row) => {
      try {
        return new HeldKey(row, box.open(row.id, SEALED_COLUMN, row.sealed));
      } catch (error) {
        if (!(error instanceof SealingError)) throw error;
        log.error('an own key cannot be opened and is not used', { id: row.id, provider: row.provider, error });
        return new HeldKey(row, undefined);
      }
    });
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
