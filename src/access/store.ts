/** The SQL of access. Callers open the transactions and supply ids, hashes and times. */
import type { RateLimits } from '../rate-limits/index.ts';
import { type Columns, insertRow, updateRow } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import type { KeyFacts, KeyKind, LimitReset } from './caller.ts';
import { NUMBER_DIGITS } from './token.ts';

/** A stored key, with the state of its organization and creator. */
export interface StoredKey {
  readonly caller: KeyFacts;
  /** Also true when its workspace was deleted. */
  readonly disabled: boolean;
  /** False when the member who created the key has left the organization. */
  readonly creatorIsMember: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date | null;
}

export interface NewKey {
  id: string;
  hash: string;
  kind: KeyKind;
  organizationId: string;
  /** null for all kinds but inference keys. */
  workspaceId: string | null;
  creatorUserId: string | null;
  name: string;
  label: string;
  expiresAt: Date | null;
  limitNano: bigint | null;
  limitReset: LimitReset | null;
  includeByokInLimit: boolean;
  rateLimits: RateLimits | null;
  externalUser: string | null;
  externalKeyHash: string | null;
  internId: string | null;
  createdAt: Date;
}

/** The members of a key that can change after its creation. */
export interface KeyTerms {
  name: string;
  disabled: boolean;
  limitNano: bigint | null;
  limitReset: LimitReset | null;
  includeByokInLimit: boolean;
  rateLimits: RateLimits | null;
}

interface KeyPage {
  organizationId: string;
  workspaceId: string;
  includeDisabled: boolean;
  offset: number;
  limit: number;
}

interface KeyRow extends Omit<KeyFacts, 'expiresAt'> {
  expiresAt: Date | null;
  disabled: boolean;
  creatorIsMember: boolean;
  createdAt: Date;
  updatedAt: Date | null;
}

const TERMS: Columns<KeyTerms> = {
  name: 'name',
  disabled: 'disabled',
  limitNano: 'limit_nano',
  limitReset: 'limit_reset',
  includeByokInLimit: 'include_byok_in_limit',
  rateLimits: { name: 'rate_limits', type: 'jsonb' },
};

const { disabled: _, ...FIRST_TERMS } = TERMS;

const NEW_KEY: Columns<NewKey> = {
  ...FIRST_TERMS,
  id: 'id',
  hash: 'hash',
  kind: 'kind',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  creatorUserId: 'creator_user_id',
  label: 'label',
  expiresAt: 'expires_at',
  externalUser: 'external_user',
  externalKeyHash: 'external_key_hash',
  internId: 'intern_id',
  createdAt: 'created_at',
};

const selectKeys = (more = '') => `
  select ${more} k.id as "keyId", k.hash as "keyHash", k.kind, k.name, k.label, k.creator_user_id as "userId",
         k.organization_id as "organizationId",
         coalesce(k.workspace_id::text, o.default_workspace_id::text, '') as "workspaceId",
         k.limit_nano as "limitNano", k.limit_reset as "limitReset", k.include_byok_in_limit as "includeByokInLimit",
         k.rate_limits as "rateLimits", k.external_user as "externalUser", k.intern_id as "internId",
         k.expires_at as "expiresAt",
         k.disabled or w.deleted_at is not null as disabled,
         k.creator_user_id is null or m.user_id is not null as "creatorIsMember",
         k.created_at as "createdAt", k.updated_at as "updatedAt"
    from api_keys k
    join organizations o on o.id = k.organization_id
    left join workspaces w on w.id = k.workspace_id
    left join members m on m.organization_id = k.organization_id and m.user_id = k.creator_user_id
   where k.deleted_at is null`;

const SELECT_KEYS = selectKeys();

/** A key found by one of its secrets. */
interface PresentedKey extends StoredKey {
  readonly presentedHash: string;
  /** Wall time in ms at which this secret of the key ends; null: with the key. */
  readonly aliasExpiresAt: number | null;
}

interface PresentedRow extends KeyRow {
  /** The presented aliases of the key. */
  aliases: { hash: string; expiresAt: string | null }[] | null;
}

/** The keys of any kind that own the secrets with these hashes. One statement, because requests wait for it. */
export async function presentedKeys(db: Queryable, hashes: readonly string[]): Promise<PresentedKey[]> {
  const rows = await db.query<PresentedRow>(
    `${selectKeys(`(select jsonb_agg(jsonb_build_object('hash', a.hash, 'expiresAt', a.expires_at))
        from key_aliases a where a.key_id = k.id and a.hash = any($1)) as aliases,`)}
      and k.hash = any($1::text[] || array(
        select own.hash from key_aliases a join api_keys own on own.id = a.key_id where a.hash = any($1)))`,
    [hashes],
  );
  const presented = new Set(hashes);
  return rows.flatMap(({ aliases, ...row }) => {
    const key = storedKey(row);
    const own = { ...key, presentedHash: row.keyHash, aliasExpiresAt: null };
    const others = (aliases ?? []).map(({ hash, expiresAt }) => ({
      ...key,
      presentedHash: hash,
      aliasExpiresAt: expiresAt === null ? null : Date.parse(expiresAt),
    }));
    return presented.has(row.keyHash) ? [...others, own] : others;
  });
}

/** The keys of any kind among `hashes` that exist. */
export async function keysByHash(db: Queryable, hashes: readonly string[]): Promise<StoredKey[]> {
  const rows = await db.query<KeyRow>(`${SELECT_KEYS} and k.hash = any($1)`, [hashes]);
  return rows.map(storedKey);
}

/** Whether a key has this hash, or had it before it was deleted or rotated. */
export async function isKnownHash(db: Queryable, hash: string): Promise<boolean> {
  const sql = 'select 1 from api_keys where hash = $1 union all select 1 from key_aliases where hash = $1';
  return (await db.query(sql, [hash])).length > 0;
}

/** An organization's inference key. */
export async function inferenceKey(
  db: Queryable,
  organizationId: string,
  hash: string,
): Promise<StoredKey | undefined> {
  const sql = `${SELECT_KEYS} and k.kind = 'inference' and k.organization_id = $1 and k.hash = $2`;
  const [row] = await db.query<KeyRow>(sql, [organizationId, hash]);
  return row && storedKey(row);
}

/** Locked until the transaction ends. */
export async function internKey(tx: Queryable, internId: string): Promise<StoredKey | undefined> {
  const [row] = await tx.query<KeyRow>(`${SELECT_KEYS} and k.intern_id = $1 for update of k`, [internId]);
  return row && storedKey(row);
}

/** Inference keys of one workspace, newest first. */
export async function listInferenceKeys(db: Queryable, page: KeyPage): Promise<StoredKey[]> {
  const sql = `${SELECT_KEYS} and k.kind = 'inference' and k.organization_id = $1 and k.workspace_id = $2
      and ($3 or not k.disabled)
    order by k.created_at desc, k.id desc
    limit $4 offset $5`;
  const { organizationId, workspaceId, includeDisabled, limit, offset } = page;
  const rows = await db.query<KeyRow>(sql, [organizationId, workspaceId, includeDisabled, limit, offset]);
  return rows.map(storedKey);
}

/** Keys of every kind, newest first. */
export async function allKeys(db: Queryable, organizationId: string): Promise<StoredKey[]> {
  const sql = `${SELECT_KEYS} and k.organization_id = $1 order by k.created_at desc, k.id desc`;
  return (await db.query<KeyRow>(sql, [organizationId])).map(storedKey);
}

export async function insertKey(tx: Queryable, key: NewKey): Promise<void> {
  await insertRow(tx, 'api_keys', NEW_KEY, key);
}

/** Locks the key's row until the transaction ends, so that concurrent changes do not overwrite each other. */
export async function lockKey(tx: Queryable, organizationId: string, hash: string): Promise<void> {
  await tx.query('select 1 from api_keys where organization_id = $1 and hash = $2 for update', [organizationId, hash]);
}

export async function updateKey(tx: Queryable, keyId: string, terms: KeyTerms, updatedAt: Date): Promise<void> {
  await updateRow(tx, 'api_keys', { ...TERMS, updatedAt: 'updated_at' }, { ...terms, updatedAt }, { id: keyId });
}

/** Keeps the row, because the ledger refers to it; the token is never accepted again. */
export async function markKeyDeleted(tx: Queryable, keyId: string, deletedAt: Date): Promise<void> {
  await tx.query('update api_keys set deleted_at = $2 where id = $1', [keyId, deletedAt]);
}

/** undefined when it was deleted. */
export async function defaultWorkspaceId(db: Queryable, organizationId: string): Promise<string | undefined> {
  const sql = 'select default_workspace_id as "workspaceId" from organizations where id = $1';
  const [row] = await db.query<{ workspaceId: string | null }>(sql, [organizationId]);
  return row?.workspaceId ?? undefined;
}

/** @param hold locks the workspace against deletion until the transaction ends; for callers about to add to it */
export async function hasWorkspace(
  db: Queryable,
  organizationId: string,
  workspaceId: string,
  hold = false,
): Promise<boolean> {
  const sql = `select 1 from workspaces
    where organization_id = $1 and id = $2 and deleted_at is null${hold ? ' for key share' : ''}`;
  return (await db.query(sql, [organizationId, workspaceId])).length > 0;
}

/** True if the organization has or had the workspace. */
export async function hadWorkspace(db: Queryable, organizationId: string, workspaceId: string): Promise<boolean> {
  const sql = 'select 1 from workspaces where organization_id = $1 and id = $2';
  return (await db.query(sql, [organizationId, workspaceId])).length > 0;
}

/** Condition on rows of keys named `k`: the hash is their current one or one from before a rotation. */
const isOrWas = (hash: string) =>
  `(k.hash = ${hash} or k.id in (select key_id from key_aliases where kind = 'predecessor' and hash = ${hash}))`;

/** Ids of an organization's inference keys, including deleted ones, by current or former hash, or by creator. */
export async function pastKeyIds(
  db: Queryable,
  organizationId: string,
  { hash, creatorUserId }: { hash?: string | undefined; creatorUserId?: string | undefined },
): Promise<string[]> {
  const sql = `select k.id from api_keys k where k.organization_id = $1 and k.kind = 'inference'
    and ($2::text is null or ${isOrWas('$2')}) and ($3::text is null or k.creator_user_id = $3)`;
  const rows = await db.query<{ id: string }>(sql, [organizationId, hash ?? null, creatorUserId ?? null]);
  return rows.map(({ id }) => id);
}

/** The number of the key with this hash, as text (`keyNumber`). */
const numberOf = (hash: string) => `('x' || left(${hash}, ${NUMBER_DIGITS}))::bit(${4 * NUMBER_DIGITS})::bigint::text`;

/**
 * Ids of an organization's keys, including deleted ones, for each of `names`: a current or former hash, or the number
 * of one.
 */
export async function namedKeys(
  db: Queryable,
  organizationId: string,
  names: readonly string[],
): Promise<Map<string, string[]>> {
  const rows = await db.query<{ name: string; id: string }>(
    `select wanted.name, k.id from unnest($2::text[]) as wanted (name)
       join api_keys k on k.organization_id = $1 and (${isOrWas('lower(wanted.name)')}
         or ${numberOf('k.hash')} = wanted.name
         or k.id in (select key_id from key_aliases where kind = 'predecessor' and ${numberOf('hash')} = wanted.name))`,
    [organizationId, names],
  );
  const ids = new Map<string, string[]>();
  for (const { name, id } of rows) ids.set(name, [...(ids.get(name) ?? []), id]);
  return ids;
}

/** Locks the membership until the transaction ends. */
export async function hasMember(tx: Queryable, organizationId: string, userId: string): Promise<boolean> {
  const sql = 'select 1 from members where organization_id = $1 and user_id = $2 for key share';
  return (await tx.query(sql, [organizationId, userId])).length > 0;
}

/** The installation's organization; undefined before the first start. */
export async function organizationId(db: Queryable): Promise<string | undefined> {
  const [row] = await db.query<{ id: string }>('select id from organizations order by created_at, id limit 1');
  return row?.id;
}

/** Locks out other writers of organizations until the transaction ends; readers continue. */
export async function lockOrganizations(tx: Queryable): Promise<void> {
  await tx.query('lock table organizations in share row exclusive mode');
}

interface FirstRows {
  organizationId: string;
  organizationName: string;
  workspaceId: string;
  workspaceSlug: string;
  workspaceName: string;
  userId: string;
  userName: string;
  createdAt: Date;
}

/** Inserts an organization with its default workspace and the one member who owns it. */
export async function insertOrganization(tx: Queryable, rows: FirstRows): Promise<void> {
  const { organizationId, workspaceId, userId, createdAt } = rows;
  await tx.query('insert into organizations (id, name, default_workspace_id, created_at) values ($1, $2, $3, $4)', [
    organizationId,
    rows.organizationName,
    workspaceId,
    createdAt,
  ]);
  await tx.query('insert into workspaces (id, slug, name, organization_id, created_at) values ($1, $2, $3, $4, $5)', [
    workspaceId,
    rows.workspaceSlug,
    rows.workspaceName,
    organizationId,
    createdAt,
  ]);
  await tx.query('insert into users (id, name, created_at) values ($1, $2, $3)', [userId, rows.userName, createdAt]);
  await tx.query(`insert into members (organization_id, user_id, role, created_at) values ($1, $2, 'admin', $3)`, [
    organizationId,
    userId,
    createdAt,
  ]);
}

function storedKey(row: KeyRow): StoredKey {
  const { expiresAt, disabled, creatorIsMember, createdAt, updatedAt, ...rest } = row;
  const caller: KeyFacts = Object.freeze({ ...rest, expiresAt: expiresAt?.getTime() ?? null });
  return { caller, disabled, creatorIsMember, createdAt, updatedAt };
}
