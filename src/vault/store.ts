/** The SQL of vaults. Callers open the transactions and supply ids and times. */
import type { Page } from '../http/contract.ts';
import { type Columns, insertRow, selectList, updateRow } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

/** What a vault belongs to: a workspace, or an intern of it. `id`: of the workspace or intern. */
export interface VaultOwner {
  readonly type: 'workspace' | 'intern';
  readonly id: string;
  readonly organizationId: string;
  readonly workspaceId: string;
}

export interface Vault {
  readonly id: string;
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly ownerType: VaultOwner['type'];
  readonly ownerId: string;
  /** Encrypted. */
  readonly dataKey: Buffer;
  readonly keyVersion: number;
  readonly createdAt: Date;
}

/** What may be shown of a secret. */
export interface ShownSecret {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly fingerprint: string;
  /** When the name was first stored. */
  readonly createdAt: Date;
}

export interface StoredSecret extends ShownSecret {
  readonly vaultId: string;
  readonly sealed: Buffer;
  readonly updatedAt: Date;
}

/** A certificate authority of a vault. */
export interface StoredAuthority {
  readonly id: string;
  readonly vaultId: string;
  /** PEM. */
  readonly certificate: string;
  /** Its key. */
  readonly sealed: Buffer;
  readonly createdAt: Date;
}

const VAULT: Columns<Vault> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  ownerType: 'owner_type',
  ownerId: 'owner_id',
  dataKey: 'data_key',
  keyVersion: 'key_version',
  createdAt: 'created_at',
};

const SHOWN: Columns<ShownSecret> = {
  name: 'name',
  hosts: 'hosts',
  fingerprint: 'fingerprint',
  createdAt: 'created_at',
};
const SECRET: Columns<StoredSecret> = { ...SHOWN, vaultId: 'vault_id', sealed: 'sealed', updatedAt: 'updated_at' };

/** @returns its id; undefined: the owner has none */
export async function vaultIdOf(
  db: Queryable,
  { type, id }: Pick<VaultOwner, 'type' | 'id'>,
): Promise<string | undefined> {
  const sql = 'select id from vaults where owner_type = $1 and owner_id = $2';
  const [vault] = await db.query<{ id: string }>(sql, [type, id]);
  return vault?.id;
}

/** Whether an intern can borrow it: it belongs to an intern of this workspace. */
export async function isLendable(db: Queryable, workspaceId: string, vaultId: string): Promise<boolean> {
  const sql = `select 1 from vaults where id = $1 and workspace_id = $2 and owner_type = 'intern'`;
  return (await db.query(sql, [vaultId, workspaceId])).length > 0;
}

/** Does nothing if the owner has a vault. */
export async function insertVault(tx: Queryable, vault: Vault): Promise<void> {
  await insertRow(tx, 'vaults', VAULT, vault, 'on conflict (owner_type, owner_id) do nothing');
}

/** The vault of an owner, locked until the transaction ends: its secrets have one writer at a time. */
export async function lockVault(tx: Queryable, { type, id }: VaultOwner): Promise<Vault | undefined> {
  const sql = `select ${selectList(VAULT, 'v')} from vaults v where owner_type = $1 and owner_id = $2 for update`;
  const [vault] = await tx.query<Vault>(sql, [type, id]);
  return vault;
}

export async function lockVaultWithId(tx: Queryable, id: string): Promise<Vault | undefined> {
  const sql = `select ${selectList(VAULT, 'v')} from vaults v where id = $1 for update`;
  const [vault] = await tx.query<Vault>(sql, [id]);
  return vault;
}

/** Those that exist. Their keys stay what they are until the transaction ends. */
export async function holdVaults(tx: Queryable, ids: readonly string[]): Promise<Vault[]> {
  const sql = `select ${selectList(VAULT, 'v')} from vaults v where id = any($1::uuid[]) order by id for share`;
  return tx.query(sql, [ids]);
}

/** Oldest first. @param workspaceId null: of every workspace of every organization */
export async function vaultsIn(
  db: Queryable,
  workspaceId: string | null,
): Promise<Pick<Vault, 'id' | 'organizationId'>[]> {
  const { id, organizationId } = VAULT;
  const sql = `select ${selectList({ id, organizationId }, 'v')} from vaults v
    where $1::uuid is null or workspace_id = $1 order by id`;
  return db.query(sql, [workspaceId]);
}

export async function replaceDataKey(tx: Queryable, vault: Pick<Vault, 'id' | 'dataKey' | 'keyVersion'>) {
  const { dataKey, keyVersion } = VAULT;
  await updateRow(tx, 'vaults', { dataKey, keyVersion }, vault, { id: vault.id });
}

/** @returns their ids */
export async function deleteVaultsIn(tx: Queryable, workspaceId: string): Promise<string[]> {
  const deleted = await tx.query<{ id: string }>('delete from vaults where workspace_id = $1 returning id', [
    workspaceId,
  ]);
  return deleted.map(({ id }) => id);
}

/** @returns its id, if there was one */
export async function deleteVaultOf(
  tx: Queryable,
  { type, id }: Pick<VaultOwner, 'type' | 'id'>,
): Promise<string | undefined> {
  const sql = 'delete from vaults where owner_type = $1 and owner_id = $2 returning id';
  const [deleted] = await tx.query<{ id: string }>(sql, [type, id]);
  return deleted?.id;
}

/** By name. */
export async function listSecrets(db: Queryable, owner: VaultOwner, { limit, offset }: Page): Promise<ShownSecret[]> {
  return db.query(
    `select ${selectList(SHOWN, 's')} from vault_secrets s join vaults v on v.id = s.vault_id
      where v.owner_type = $1 and v.owner_id = $2 order by s.name limit $3 offset $4`,
    [owner.type, owner.id, limit, offset],
  );
}

/** The vaults that a sandbox gets secrets from. Where both have a name, the own one wins. */
interface EffectiveVaults {
  /** Null: there is none. */
  readonly ownId: string | null;
  readonly borrowedId: string | null;
}

const EFFECTIVE = `from vault_secrets s where vault_id = any($1::uuid[]) order by name, (vault_id = $2) desc nulls last`;

function effectiveIds({ ownId, borrowedId }: EffectiveVaults): [string[], string | null] {
  return [[ownId, borrowedId].filter((id) => id !== null), ownId];
}

/** By name. */
export async function listEffectiveSecrets(
  db: Queryable,
  vaults: EffectiveVaults,
  { limit, offset }: Page,
): Promise<ShownSecret[]> {
  const sql = `select distinct on (s.name) ${selectList(SHOWN, 's')} ${EFFECTIVE} limit $3 offset $4`;
  return db.query(sql, [...effectiveIds(vaults), limit, offset]);
}

/** With their values, by name. A vault has at most a thousand. */
export async function effectiveSecrets(db: Queryable, vaults: EffectiveVaults): Promise<StoredSecret[]> {
  const sql = `select distinct on (s.name) ${selectList(SECRET, 's')} ${EFFECTIVE}`;
  return db.query(sql, effectiveIds(vaults));
}

/** With their values, in the order of names, from after `after`. */
export async function sealedSecrets(
  db: Queryable,
  vaultId: string,
  after: string,
  limit: number,
): Promise<StoredSecret[]> {
  const sql = `select ${selectList(SECRET, 's')} from vault_secrets s
    where vault_id = $1 and name > $2 order by name limit $3`;
  return db.query(sql, [vaultId, after, limit]);
}

export async function findSecret(db: Queryable, vaultId: string, name: string): Promise<ShownSecret | undefined> {
  const sql = `select ${selectList(SHOWN, 's')} from vault_secrets s where vault_id = $1 and name = $2`;
  const [secret] = await db.query<ShownSecret>(sql, [vaultId, name]);
  return secret;
}

/** The secrets with these names, as far as they exist, with their values. */
export async function secretsNamed(db: Queryable, vaultId: string, names: readonly string[]): Promise<StoredSecret[]> {
  const sql = `select ${selectList(SECRET, 's')} from vault_secrets s where vault_id = $1 and name = any($2)`;
  return db.query(sql, [vaultId, names]);
}

export async function countSecrets(db: Queryable, vaultId: string): Promise<number> {
  const sql = 'select count(*)::int as count from vault_secrets where vault_id = $1';
  const [row] = await db.query<{ count: number }>(sql, [vaultId]);
  return row!.count;
}

/** Replaces all but `createdAt` of a secret with this name. */
export async function putSecret(tx: Queryable, secret: StoredSecret): Promise<void> {
  const replaced = ['hosts', 'fingerprint', 'sealed', 'updated_at'].map((name) => `${name} = excluded.${name}`);
  await insertRow(
    tx,
    'vault_secrets',
    SECRET,
    secret,
    `on conflict (vault_id, name) do update set ${replaced.join(', ')}`,
  );
}

export async function deleteSecret(tx: Queryable, vaultId: string, name: string): Promise<void> {
  await tx.query('delete from vault_secrets where vault_id = $1 and name = $2', [vaultId, name]);
}

const AUTHORITY: Columns<StoredAuthority> = {
  id: 'id',
  vaultId: 'vault_id',
  certificate: 'certificate',
  sealed: 'sealed',
  createdAt: 'created_at',
};

/** @returns the authority for sandboxes that start now */
export async function currentAuthority(db: Queryable, vaultId: string): Promise<StoredAuthority | undefined> {
  const sql = `select ${selectList(AUTHORITY, 'a')} from vault_authorities a where vault_id = $1 and retired_at is null`;
  const [authority] = await db.query<StoredAuthority>(sql, [vaultId]);
  return authority;
}

export async function authorityWithId(db: Queryable, id: string): Promise<StoredAuthority | undefined> {
  const sql = `select ${selectList(AUTHORITY, 'a')} from vault_authorities a where id = $1`;
  const [authority] = await db.query<StoredAuthority>(sql, [id]);
  return authority;
}

/** The current one and those that sandboxes may still use. */
export async function authoritiesOf(db: Queryable, vaultId: string): Promise<StoredAuthority[]> {
  const sql = `select ${selectList(AUTHORITY, 'a')} from vault_authorities a where vault_id = $1 order by id`;
  return db.query(sql, [vaultId]);
}

/** The vault must have no current authority. */
export async function insertAuthority(tx: Queryable, authority: StoredAuthority): Promise<void> {
  await insertRow(tx, 'vault_authorities', AUTHORITY, authority);
}

export async function resealAuthority(tx: Queryable, authority: Pick<StoredAuthority, 'id' | 'sealed'>): Promise<void> {
  const { sealed } = AUTHORITY;
  await updateRow(tx, 'vault_authorities', { sealed }, authority, { id: authority.id });
}

/** Retires the current authority, and deletes those that were retired before `expiry`. */
export async function retireAuthority(tx: Queryable, vaultId: string, at: Date, expiry: Date): Promise<void> {
  await tx.query('delete from vault_authorities where vault_id = $1 and retired_at < $2', [vaultId, expiry]);
  await tx.query('update vault_authorities set retired_at = $2 where vault_id = $1 and retired_at is null', [
    vaultId,
    at,
  ]);
}
