/** The SQL of BYOK credentials. Callers open the transactions and supply ids and times. */
import type { Page } from '../http/contract.ts';
import { type Columns, insertRow, selectList, updateRow } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

/** The settings that can change after creation, apart from the secret itself. */
export interface ByokCredentialSettings {
  readonly name: string | null;
  readonly disabled: boolean;
  readonly isFallback: boolean;
  readonly isRequired: boolean;
  readonly isByokOnly: boolean;
  readonly declaredZdr: boolean | null;
  /** null means all, here and in the two lists below. */
  readonly allowedModels: readonly string[] | null;
  /** Ids in `api_keys`. */
  readonly allowedKeyIds: readonly string[] | null;
  readonly allowedUserIds: readonly string[] | null;
}

interface StoredByokCredential extends ByokCredentialSettings {
  readonly id: string;
  readonly organizationId: string;
  /** null means every workspace. */
  readonly workspaceId: string | null;
  readonly provider: string;
  readonly label: string;
  readonly sealedAt: Date;
  readonly sortOrder: number;
  readonly createdAt: Date;
}

/** With the members that the wire shows. */
export interface ShownByokCredential extends StoredByokCredential {
  readonly allowedKeyHashes: readonly string[] | null;
}

export interface SealedByokCredential extends StoredByokCredential {
  readonly sealed: Buffer;
}

const SETTINGS: Columns<ByokCredentialSettings> = {
  name: 'name',
  disabled: 'disabled',
  isFallback: 'is_fallback',
  isRequired: 'is_required',
  isByokOnly: 'is_byok_only',
  declaredZdr: 'declared_zdr',
  allowedModels: 'allowed_models',
  allowedKeyIds: 'allowed_key_ids',
  allowedUserIds: 'allowed_user_ids',
};

const COLUMNS: Columns<StoredByokCredential> = {
  ...SETTINGS,
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  provider: 'provider',
  label: 'label',
  sealedAt: 'sealed_at',
  sortOrder: 'sort_order',
  createdAt: 'created_at',
};

const FIELDS = selectList(COLUMNS, 'b');
const SHOWN = `${FIELDS}, case when b.allowed_key_ids is not null then array(
    select k.hash from unnest(b.allowed_key_ids) with ordinality as allowed (id, place)
      join api_keys k on k.id = allowed.id order by allowed.place) end as "allowedKeyHashes"`;

interface ListQuestion extends Page {
  organizationId: string;
  workspaceId: string;
  provider: string | undefined;
}

/** The credentials of a workspace and those for every workspace, by provider and in the order of use. */
export async function listByokCredentials(
  db: Queryable,
  question: ListQuestion,
): Promise<{ keys: ShownByokCredential[]; total: number }> {
  const where = `b.organization_id = $1 and (b.workspace_id = $2 or b.workspace_id is null)
    and ($3::text is null or b.provider = $3)`;
  const scope = [question.organizationId, question.workspaceId, question.provider ?? null];
  const keys = await db.query<ShownByokCredential>(
    `select ${SHOWN} from byok_keys b where ${where} order by b.provider, b.sort_order, b.id limit $4 offset $5`,
    [...scope, question.limit, question.offset],
  );
  const [count] = await db.query<{ total: number }>(
    `select count(*)::int as total from byok_keys b where ${where}`,
    scope,
  );
  return { keys, total: count!.total };
}

/** @param hold locks the row until the transaction ends */
export async function findByokCredential(
  db: Queryable,
  organizationId: string,
  id: string,
  hold = false,
): Promise<ShownByokCredential | undefined> {
  const lock = hold ? ' for update of b' : '';
  const sql = `select ${SHOWN} from byok_keys b where b.organization_id = $1 and b.id = $2${lock}`;
  const [row] = await db.query<ShownByokCredential>(sql, [organizationId, id]);
  return row;
}

/** Enabled credentials of all organizations, in the order of use. */
export async function enabledByokCredentials(db: Queryable): Promise<SealedByokCredential[]> {
  return db.query(
    `select ${FIELDS}, b.sealed from byok_keys b where not b.disabled
      order by b.is_fallback, b.sort_order, b.created_at, b.id`,
  );
}

/** Locks the organization until the transaction ends, so that sort orders are assigned one after the other. */
export async function countByokCredentials(tx: Queryable, organizationId: string): Promise<number> {
  await tx.query('select 1 from organizations where id = $1 for no key update', [organizationId]);
  const sql = 'select count(*)::int as total from byok_keys where organization_id = $1';
  const [row] = await tx.query<{ total: number }>(sql, [organizationId]);
  return row!.total;
}

/** The sort order after all that the organization has at this provider. */
export async function nextSortOrder(tx: Queryable, organizationId: string, provider: string): Promise<number> {
  const sql = `select coalesce(max(sort_order) + 1, 0) as next from byok_keys
    where organization_id = $1 and provider = $2`;
  const [row] = await tx.query<{ next: number }>(sql, [organizationId, provider]);
  return row!.next;
}

export async function insertByokCredential(tx: Queryable, key: SealedByokCredential): Promise<void> {
  await insertRow(tx, 'byok_keys', { ...COLUMNS, sealed: 'sealed' }, key);
}

export async function updateByokCredential(
  tx: Queryable,
  id: string,
  settings: ByokCredentialSettings,
  updatedAt: Date,
): Promise<void> {
  const columns = { ...SETTINGS, updatedAt: 'updated_at' };
  await updateRow(tx, 'byok_keys', columns, { ...settings, updatedAt }, { id });
}

export async function replaceCredential(
  tx: Queryable,
  id: string,
  { label, sealed, sealedAt }: Pick<SealedByokCredential, 'label' | 'sealed' | 'sealedAt'>,
): Promise<void> {
  const sql = 'update byok_keys set label = $2, sealed = $3, sealed_at = $4 where id = $1';
  await tx.query(sql, [id, label, sealed, sealedAt]);
}

export async function deleteByokCredential(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from byok_keys where id = $1', [id]);
}

export async function deleteByokCredentialsIn(tx: Queryable, workspaceId: string): Promise<string[]> {
  const sql = 'delete from byok_keys where workspace_id = $1 returning id';
  return (await tx.query<{ id: string }>(sql, [workspaceId])).map(({ id }) => id);
}
