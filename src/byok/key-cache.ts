/**
 * Key cache: the decrypted BYOK credentials of all organizations in the memory of one process, kept current by changes.
 * Their settings (disabled, required, allowed callers) apply even without the installation key. A credential that
 * cannot be decrypted is never used, but still blocks the gateway's own credentials where its settings say so.
 */
import type { Clock } from '../base/clock.ts';
import type { ProviderSettings } from '../base/config.ts';
import { type Log, redact } from '../base/log.ts';
import { Secret } from '../base/secret.ts';
import { type Box, type Sealing, SealingError } from '../sealing/index.ts';
import type { Changes, Database } from '../storage/database.ts';
import { Followed, type Refreshable } from '../storage/followed.ts';
import type { ByokCaller, ByokCredential, ByokCredentials } from './byok-credentials.ts';
import { secretsIn } from './credential.ts';
import { PURPOSE, SEALED_COLUMN, TOPIC } from './sealed.ts';
import { slugsOf } from './slugs.ts';
import { enabledByokCredentials, type SealedByokCredential } from './store.ts';

interface FollowParts {
  database: Database;
  changes: Pick<Changes, 'subscribe' | 'freshness'>;
  clock: Clock;
  log: Log;
  sealing: Sealing;
  /** The current configuration; a new list after every reload. */
  providers(): readonly ProviderSettings[];
  /** Other names of a model (its permanent name), in any spelling. */
  otherNames(modelId: string): readonly string[];
}

/** Call `refresh` before `of` and the other methods. */
export interface ByokCache extends ByokCredentials, Refreshable {
  /** Why some credentials cannot be decrypted here, for the operator; undefined if all can. */
  readonly problem: string | undefined;
  /** An enabled credential that can be decrypted here, whoever may use it. */
  withId(id: string): ByokCredential | undefined;
  close(): void;
}

const NONE: readonly ByokCredential[] = Object.freeze([]);
const NO_HELD_KEYS: readonly CachedCredential[] = [];

/**
 * Reads all credentials once. @throws SealingError with a message for the operator, if stored values cannot be
 * decrypted
 */
export async function startByokCache(parts: FollowParts): Promise<ByokCache> {
  await parts.sealing.check();
  const keys = new CredentialCache(parts);
  await keys.start();
  return keys;
}

/** The credentials that apply to a caller at one provider, for any model. */
interface Concerning {
  keys: readonly CachedCredential[];
  /** Those that cannot be decrypted. */
  undecrypted: readonly CachedCredential[];
  /** Those that restrict the gateway's own credentials, including those that cannot be decrypted. */
  closing: readonly CachedCredential[];
  /** True if some of `keys` are limited to certain models. */
  chosen: boolean;
}

class CredentialCache implements ByokCache {
  problem: string | undefined;
  readonly #parts: FollowParts;
  readonly #followed: Followed<readonly CachedCredential[]>;
  /** Why none of them can be decrypted. */
  #failure: SealingError | undefined;
  #byCaller = new WeakMap<ByokCaller, Map<string, Concerning>>();
  /** The provider list that `#byCaller` was built for. */
  #providers: readonly ProviderSettings[] | undefined;
  /** Ids already logged as not decryptable. */
  #logged = new Set<string>();

  constructor(parts: FollowParts) {
    this.#parts = parts;
    const { changes, clock, log } = parts;
    this.#followed = new Followed({
      ...{ changes, clock, log, topic: TOPIC },
      name: 'BYOK credentials',
      read: () => this.#read(),
      adopted: () => this.#forgetCallers(undefined),
    });
  }

  /** Call it first: changes announced in the meantime are read after this, never before it. */
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

  get #keys(): readonly CachedCredential[] {
    return this.#followed.value ?? NO_HELD_KEYS;
  }

  get any(): boolean {
    return this.#keys.length > 0;
  }

  of(caller: ByokCaller, provider: { id: string; kindId: string }, modelId: string): readonly ByokCredential[] {
    if (this.#keys.length === 0) return NONE;
    const { keys, chosen } = this.#concerning(caller, provider);
    if (!chosen) return keys;
    const names = this.#namesOf(modelId);
    return keys.filter((key) => key.serves(names));
  }

  closes(caller: ByokCaller, provider: { id: string; kindId: string }, modelId: string): boolean {
    if (this.#keys.length === 0) return false;
    const { closing } = this.#concerning(caller, provider);
    if (closing.length === 0) return false;
    const names = this.#namesOf(modelId);
    return closing.some((key) => key.isByokOnly || key.serves(names));
  }

  undecrypted(
    caller: ByokCaller,
    provider: { id: string; kindId: string },
    modelId: string,
  ): readonly ByokCredential[] {
    if (this.problem === undefined) return NONE;
    const names = this.#namesOf(modelId);
    return this.#concerning(caller, provider).undecrypted.filter((key) => key.serves(names));
  }

  withId(id: string): ByokCredential | undefined {
    return this.#keys.find((key) => key.id === id && key.isOpen);
  }

  close(): void {
    this.#followed.close();
  }

  #namesOf(modelId: string): string[] {
    return [modelId, ...this.#parts.otherNames(modelId)].map((name) => name.toLowerCase());
  }

  #concerning(caller: ByokCaller, provider: { id: string; kindId: string }): Concerning {
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
        undecrypted: all.filter(({ isOpen }) => !isOpen),
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

  async #read(): Promise<CachedCredential[]> {
    const rows = await enabledByokCredentials(this.#parts.database);
    const box = rows.length === 0 ? undefined : await this.#box(rows);
    const keys = rows.map((row) => this.#opened(row, box));
    this.#report(keys.filter(({ isOpen }) => !isOpen));
    return keys;
  }

  /** undefined if this machine can decrypt none of them. */
  async #box(rows: readonly SealedByokCredential[]): Promise<Box | undefined> {
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

  #opened(row: SealedByokCredential, box: Box | undefined): CachedCredential {
    try {
      return new CachedCredential(row, box?.open(row.id, SEALED_COLUMN, row.sealed));
    } catch (error) {
      if (!(error instanceof SealingError)) throw error;
      return new CachedCredential(row, undefined);
    }
  }

  /** Logs each credential once, however often it is read. */
  #report(undecrypted: readonly CachedCredential[]): void {
    const { length } = undecrypted;
    const reason = this.#failure?.message ?? 'their records were altered';
    this.problem =
      length === 0 ? undefined : `${length} provider credentials (BYOK) cannot be decrypted here: ${reason}`;
    const fresh = undecrypted.filter(({ id }) => !this.#logged.has(id)).map(({ id }) => id);
    this.#logged = new Set(undecrypted.map(({ id }) => id));
    if (fresh.length > 0)
      this.#parts.log.error('provider credentials (BYOK) cannot be decrypted and are not used', { ids: fresh, reason });
  }
}

class CachedCredential implements ByokCredential {
  readonly id: string;
  readonly providerSlug: string;
  readonly isFallback: boolean;
  readonly isRequired: boolean;
  readonly isByokOnly: boolean;
  readonly declaredZdr: boolean | null;
  readonly sortOrder: number;
  /** In lower case; null means all. */
  readonly models: ReadonlySet<string> | null;
  readonly #row: Pick<SealedByokCredential, 'organizationId' | 'workspaceId' | 'allowedUserIds'>;
  readonly #keyIds: ReadonlySet<string> | null;
  /** Undefined if it cannot be decrypted. */
  readonly #value: Secret | undefined;

  constructor(row: SealedByokCredential, value: string | undefined) {
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
    if (this.#value === undefined) throw new Error('the provider credential cannot be decrypted');
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

  admits({ organizationId, workspaceId, keyId, userId }: ByokCaller): boolean {
    const { allowedUserIds } = this.#row;
    return (
      organizationId === this.#row.organizationId &&
      (this.#row.workspaceId === null || this.#row.workspaceId === workspaceId) &&
      (this.#keyIds === null || this.#keyIds.has(keyId)) &&
      (allowedUserIds === null || (userId !== null && allowedUserIds.includes(userId)))
    );
  }
}
