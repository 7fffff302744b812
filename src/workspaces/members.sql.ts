/** The SQL of memberships in workspaces. */
import type { Page } from '../http/contract.ts';
import type { Queryable } from '../storage/database.ts';
import type { StoredWorkspace } from './store.ts';

export interface StoredMember {
  /** null for the implied membership in the default workspace. */
  id: string | null;
  workspaceId: string;
  userId: string;
  role: string;
  createdAt: Date;
}

/** The higher of a member's manual and group role; `least` picks `admin` over `member`. */
const BY_HAND_ROLE = 'least(coalesce(wm.manual_role, m.role), wm.scim_role)';

const SELECT_MEMBERS = {
  own: `
    select wm.id, wm.workspace_id as "workspaceId", wm.user_id as "userId",
           case when wm.scim_managed then coalesce(wm.scim_role, m.role) else ${BY_HAND_ROLE} end as role,
           wm.created_at as "createdAt"
      from workspace_members wm
      join members m on m.organization_id = wm.organization_id and m.user_id = wm.user_id
     where wm.organization_id = $1 and wm.workspace_id = $2`,
  implied: `
    select null::uuid as id, $2::uuid as "workspaceId", m.user_id as "userId", ${BY_HAND_ROLE} as role,
           m.created_at as "createdAt"
      from members m
      left join workspace_members wm on wm.workspace_id = $2 and wm.user_id = m.user_id
     where m.organization_id = $1`,
};

type WorkspaceRef = Pick<StoredWorkspace, 'id' | 'organizationId' | 'isDefault'>;

const selectMembers = ({ isDefault }: WorkspaceRef) => (isDefault ? SELECT_MEMBERS.implied : SELECT_MEMBERS.own);

/** In the order in which they joined. */
export function listMembers(db: Queryable, workspace: WorkspaceRef, { offset, limit }: Page): Promise<StoredMember[]> {
  const sql = `select * from (${selectMembers(workspace)}) listed order by "createdAt", "userId" offset $3 limit $4`;
  return db.query<StoredMember>(sql, [workspace.organizationId, workspace.id, offset, limit]);
}

export function findMembers(
  db: Queryable,
  workspace: WorkspaceRef,
  userIds: readonly string[],
): Promise<StoredMember[]> {
  const sql = `select * from (${selectMembers(workspace)}) listed where "userId" = any($3) order by "createdAt", "userId"`;
  return db.query<StoredMember>(sql, [workspace.organizationId, workspace.id, userIds]);
}

export async function countMembers(db: Queryable, workspace: WorkspaceRef): Promise<number> {
  const sql = `select count(*)::int as count from (${selectMembers(workspace)}) listed`;
  const [row] = await db.query<{ count: number }>(sql, [workspace.organizationId, workspace.id]);
  return row?.count ?? 0;
}

/** Those of `userIds` who belong to the organization; locks their memberships until the transaction ends. */
export async function membersOfOrganization(
  tx: Queryable,
  organizationId: string,
  userIds: readonly string[],
): Promise<Set<string>> {
  const sql = 'select user_id as "userId" from members where organization_id = $1 and user_id = any($2) for key share';
  const rows = await tx.query<{ userId: string }>(sql, [organizationId, userIds]);
  return new Set(rows.map(({ userId }) => userId));
}

/** Memberships from an identity provider become manual. Returns the ids of the users whose membership changed. */
export async function insertMembers(
  tx: Queryable,
  workspace: WorkspaceRef,
  members: readonly { id: string; userId: string }[],
  createdAt: Date,
): Promise<string[]> {
  const rows = await tx.query<{ userId: string }>(
    `insert into workspace_members (id, organization_id, workspace_id, user_id, created_at)
     select id, $1, $2, user_id, $3 from jsonb_to_recordset($4::jsonb) as added(id uuid, user_id text)
     on conflict (workspace_id, user_id) do update set scim_managed = false where workspace_members.scim_managed
     returning user_id as "userId"`,
    [
      workspace.organizationId,
      workspace.id,
      createdAt,
      JSON.stringify(members.map(({ id, userId }) => ({ id, user_id: userId }))),
    ],
  );
  return rows.map(({ userId }) => userId);
}

/** The members among `userIds` that cannot be removed, by reason. */
interface HeldMembers {
  byScim: string[];
  byKeys: string[];
}

export async function heldMembers(
  tx: Queryable,
  workspace: WorkspaceRef,
  userIds: readonly string[],
  now: Date,
): Promise<HeldMembers> {
  const rows = await tx.query<{ userId: string; scim: boolean; keys: boolean }>(
    `select wm.user_id as "userId", wm.scim_managed or wm.scim_role is not null as scim, exists (
       select 1 from api_keys k where k.workspace_id = wm.workspace_id and k.creator_user_id = wm.user_id
         and k.deleted_at is null and not k.disabled and (k.expires_at is null or k.expires_at > $3)
     ) as keys
     from workspace_members wm where wm.workspace_id = $1 and wm.user_id = any($2)
     order by wm.user_id for update of wm`,
    [workspace.id, userIds, now],
  );
  return {
    byScim: rows.filter(({ scim }) => scim).map(({ userId }) => userId),
    byKeys: rows.filter(({ keys }) => keys).map(({ userId }) => userId),
  };
}

/** Returns the ids of those who were members. */
export async function deleteMembers(
  tx: Queryable,
  workspace: WorkspaceRef,
  userIds: readonly string[],
): Promise<string[]> {
  const sql =
    'delete from workspace_members where workspace_id = $1 and user_id = any($2) returning user_id as "userId"';
  return (await tx.query<{ userId: string }>(sql, [workspace.id, userIds])).map(({ userId }) => userId);
}
