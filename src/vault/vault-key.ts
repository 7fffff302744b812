/** The data key of a vault: stored encrypted, decrypted for one operation at a time. */
import { createHmac, randomBytes } from 'node:crypto';
import { GatewayError } from '../base/errors.ts';
import {
  KEY_BYTES,
  openRecord,
  type SealContext,
  type Sealing,
  SealingError,
  sealedColumn,
  sealRecord,
} from '../sealing/index.ts';
import type { Queryable } from '../storage/database.ts';
import type { StoredAuthority, StoredSecret, Vault } from './store.ts';

const PURPOSE = 'vault';
const COLUMN = 'data_key';

/** Rows to re-encrypt after a rotation of the data keys of `sealing/`. */
export const sealedVaultKeys = sealedColumn({ purpose: PURPOSE, table: 'vaults', column: COLUMN });

/** What a value is bound to. */
type Binding = Pick<StoredSecret, 'name' | 'hosts'>;

/** What the key of an authority is bound to. `certificate` in PEM. */
type AuthorityBinding = Pick<StoredAuthority, 'certificate'>;

/** Encrypts and decrypts the values of one vault. */
export class VaultKey {
  readonly #vaultId: string;
  readonly #version: number;
  readonly #bytes: Buffer;

  constructor(vaultId: string, version: number, bytes: Buffer) {
    this.#vaultId = vaultId;
    this.#version = version;
    this.#bytes = bytes;
  }

  /** The record opens for this vault, name and list of hosts only. */
  seal(binding: Binding, value: string): Buffer {
    return this.#seal(this.#secretContext(binding), value);
  }

  /** @throws SealingError if the row was altered, or belongs to another vault, name or key */
  open(secret: Binding & Pick<StoredSecret, 'sealed'>): string {
    return this.#open(this.#secretContext(secret), secret.sealed);
  }

  /** The record opens for this vault and certificate only. @param key in PEM */
  sealAuthority(binding: AuthorityBinding, key: string): Buffer {
    return this.#seal(this.#authorityContext(binding), key);
  }

  /** @returns the key in PEM @throws SealingError as `open` */
  openAuthority(authority: AuthorityBinding & Pick<StoredAuthority, 'sealed'>): string {
    return this.#open(this.#authorityContext(authority), authority.sealed);
  }

  /** Equal for equal values under this key, and only for those: `sha256:` and an HMAC in hexadecimal. */
  fingerprint(value: string): string {
    return `sha256:${createHmac('sha256', this.#bytes).update(value).digest('hex')}`;
  }

  #seal(context: SealContext, text: string): Buffer {
    return sealRecord({ version: this.#version, bytes: this.#bytes }, context, Buffer.from(text));
  }

  #open(context: SealContext, record: Buffer): string {
    return openRecord((version) => (version === this.#version ? this.#bytes : undefined), context, record).toString();
  }

  #secretContext({ name, hosts }: Binding): SealContext {
    return { purpose: 'vault secret', id: JSON.stringify([this.#vaultId, name, hosts]), column: 'sealed' };
  }

  #authorityContext({ certificate }: AuthorityBinding): SealContext {
    return { purpose: 'vault authority', id: JSON.stringify([this.#vaultId, certificate]), column: 'sealed' };
  }
}

/** As `open` of the key. @throws SealingError that names the secret */
export function openNamed(key: VaultKey, secret: StoredSecret): string {
  try {
    return key.open(secret);
  } catch (cause) {
    if (!(cause instanceof SealingError)) throw cause;
    throw new SealingError(`the secret ${secret.name} of the vault ${secret.vaultId}: ${cause.message}`, { cause });
  }
}

/** @throws SealingError if it cannot be decrypted here */
export async function openVaultKey(
  sealing: Sealing,
  tx: Queryable,
  { id, dataKey, keyVersion }: Pick<Vault, 'id' | 'dataKey' | 'keyVersion'>,
): Promise<VaultKey> {
  const box = await sealing.find(PURPOSE, [dataKey], tx);
  if (box === undefined) throw new SealingError('the database lacks the key that encrypts vaults');
  return new VaultKey(id, keyVersion, Buffer.from(box.open(id, COLUMN, dataKey), 'base64'));
}

/** A new random data key, encrypted for the row of this vault. Not within a transaction. @throws SealingError */
export async function newDataKey(sealing: Sealing, vaultId: string): Promise<Buffer> {
  return (await sealing.sealer(PURPOSE)).seal(vaultId, COLUMN, randomBytes(KEY_BYTES).toString('base64'));
}

/** @throws GatewayError 503 where `work` cannot encrypt or decrypt */
export async function presented<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof SealingError)) throw cause;
    const message = 'Secrets cannot be encrypted on this machine at the moment; see its log.';
    throw new GatewayError('server', message, { status: 503, cause });
  }
}
