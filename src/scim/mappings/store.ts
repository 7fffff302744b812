/** The SQL of group mappings and of the memberships that they grant. Writers hold the organization's lock. */
import type { Page } from '../../http/contract.ts';
import { type Columns, insertRow, selectList } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';

type Role = 'admin' | 'member';

export interface StoredMapping {
  id: string;
  organizationId: string;
  groupId: string;
  workspaceId: string;
  role: Role;
  createdAt: Date;
  updatedAt: Date;
}

const COLUMNS: Columns<StoredMapping> = {
  id: 'id',
  organizationId: 'organization_id',
  groupId: 'scim_group_id',
  workspaceId: 'workspace_id',
  role: 'role',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
};

const SELECT_MAPPINGS = `select ${selectList(COLUMNS, 'scim_group_mappings')} from scim_group_mappings
    where organization_id = $1`;

/** Oldest first. */
export function listMappings(db: Queryable, organizationId: string, { offset, limit }: Page) {
  const sql = `${SELECT_MAPPINGS} order by created_at, id offset $2 limit $3`;
  return db.query<StoredMapping>(sql, [organizationId, offset, limit]);
}

export async function countMappings(db: Queryable, organizationId: string): Promise<number> {
  const sql = 'select count(*)::int as count from scim_group_mappings where organization_id = $1';
  const [row] = await db.query<{ count: number }>(sql, [organizationId]);
  return row?.count ?? 0;
}

export async function findMapping(db: Queryable, organizationId: string, id: string) {
  const [mapping] = await db.query<StoredMapping>(`${SELECT_MAPPINGS} and id = $2`, [organizationId, id]);
  return mapping;
}

export async function isMapped(tx: Queryable, groupId: string, workspaceId: string): Promise<boolean> {
  const sql = 'select 1 from scim_group_mappings where scim_group_id = $1 and workspace_id = $2';
  return (await tx.query(sql, [groupId, workspaceId])).length > 0;
}

export async function insertMapping(tx: Queryable, mapping: Omit<StoredMapping, 'updatedAt'>): Promise<void> {
  await insertRow(tx, 'scim_group_mappings', COLUMNS, { ...mapping, updatedAt: mapping.createdAt });
}

export async function updateRole(tx: Queryable, id: string, role: Role, now: Date): Promise<void> {
  await tx.query('update scim_group_mappings set role = $2, updated_at = $3 where id = $1', [id, role, now]);
}

export async function deleteMapping(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from scim_group_mappings where id = $1', [id]);
}

export async function deleteMappingsOf(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from scim_group_mappings where workspace_id = $1', [workspaceId]);
}

/** The workspaces that the group is mapped to. */
export async function workspacesOf(tx: Queryable, groupId: string): Promise<string[]> {
  const sql = 'select workspace_id as id from scim_group_mappings where scim_group_id = $1';
  return (await tx.query<{ id: string }>(sql, [groupId])).map(({ id }) => id);
}

/** Makes the grants of the mapping manual memberships, with the higher of the two roles. */
export async function keepByHand(tx: Queryable, { groupId, workspaceId, role }: StoredMapping): Promise<void> {
  await tx.query(
    `update workspace_members wm
        set scim_managed = false,
            manual_role = case when wm.scim_managed then $3 else least(coalesce(wm.manual_role, m.role), $3) end
       from scim_group_members gm, members m
      where wm.workspace_id = $2 and gm.group_id = $1 and gm.user_id = wm.user_id
        and m.organization_id = wm.organization_id and m.user_id = wm.user_id`,
    [groupId, workspaceId, role],
  );
}

/** Selects memberships; undefined means all. */
export interface Scope {
  workspaceIds?: readonly string[];
  userIds?: readonly string[];
}

export interface Grant {
  workspaceId: string;
  userId: string;
  role: Role;
}

const valuesOf = (organizationId: string, { workspaceIds, userIds }: Scope) => [
  organizationId,
  workspaceIds ?? null,
  userIds ?? null,
];

/** The grants of the mappings, each with the highest role: `min` picks `admin` over `member`. */
export function wantedGrants(tx: Queryable, organizationId: string, scope: Scope): Promise<Grant[]> {
  return tx.query<Grant>(
    `select mp.workspace_id as "workspaceId", gm.user_id as "userId", min(mp.role) as role
       from scim_group_mappings mp
       join scim_group_members gm on gm.group_id = mp.scim_group_id
       join members m on m.organization_id = mp.organization_id and m.user_id = gm.user_id
      where mp.organization_id = $1 and ($2::uuid[] is null or mp.workspace_id = any($2))
        and ($3::text[] is null or gm.user_id = any($3))
      group by mp.workspace_id, gm.user_id`,
    valuesOf(organizationId, scope),
  );
}

/** The current grants. */
export function heldGrants(tx: Queryable, organizationId: string, scope: Scope): Promise<Grant[]> {
  return tx.query<Grant>(
    `select workspace_id as "workspaceId", user_id as "userId", scim_role as role
       from workspace_members
      where organization_id = $1 and scim_role is not null and ($2::uuid[] is null or workspace_id = any($2))
        and ($3::text[] is null or user_id = any($3))`,
    valuesOf(organizationId, scope),
  );
}

/** Deletes granted memberships; manual ones lose only the granted role. */
export async function takeBack(tx: Queryable, grants: readonly Grant[]): Promise<void> {
  const values = [grants.map(({ workspaceId }) => workspaceId), grants.map(({ userId }) => userId)];
  const removed = `unnest($1::uuid[], $2::text[]) as gone (workspace_id, user_id)
     where wm.workspace_id = gone.workspace_id and wm.user_id = gone.user_id`;
  // A manual membership added in between stays: the second statement finds it, the first one does not.
  await tx.query(`delete from workspace_members wm using ${removed} and wm.scim_managed`, values);
  await tx.query(`update workspace_members wm set scim_role = null from ${removed}`, values);
}

/** Inserts memberships, or updates the granted role of existing ones. */
export async function putGrants(
  tx: Queryable,
  organizationId: string,
  grants: readonly (Grant & { id: string })[],
  now: Date,
): Promise<void> {
  await tx.query(
    `insert into workspace_members (id, organization_id, workspace_id, user_id, scim_managed, scim_role, created_at)
     select id, $1, "workspaceId", "userId", true, role, $2
       from jsonb_to_recordset($3::jsonb) as granted(id uuid, "workspaceId" uuid, "userId" text, role text)
     on conflict (workspace_id, user_id) do update set scim_role = excluded.scim_role`,
    [organizationId, now, JSON.stringify(grants)],
  );
}
