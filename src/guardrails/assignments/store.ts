/** The SQL of assignments. Callers open the transactions and have checked that the guardrail exists. */
import type { Page } from '../../http/contract.ts';
import type { Queryable } from '../../storage/database.ts';
import { count } from '../store.ts';

export interface KeyAssignment {
  id: string;
  guardrailId: string;
  keyHash: string;
  keyName: string;
  keyLabel: string;
  assignedBy: string | null;
  createdAt: Date;
}

export interface MemberAssignment {
  id: string;
  guardrailId: string;
  userId: string;
  organizationId: string;
  assignedBy: string | null;
  createdAt: Date;
}

interface AssignedBy {
  organizationId: string;
  guardrailId: string;
  assignedBy: string | null;
  createdAt: Date;
}

/** Assignments of one guardrail, or of all guardrails of an organization; newest first. */
export async function listKeyAssignments(
  db: Queryable,
  organizationId: string,
  guardrailId: string | null,
  { offset, limit }: Page,
): Promise<{ assignments: KeyAssignment[]; total: number }> {
  const from = `from guardrail_keys a join api_keys k on k.id = a.key_id
    where a.organization_id = $1 and ($2::uuid is null or a.guardrail_id = $2) and k.deleted_at is null`;
  const assignments = await db.query<KeyAssignment>(
    `select a.id, a.guardrail_id as "guardrailId", k.hash as "keyHash", k.name as "keyName", k.label as "keyLabel",
            a.assigned_by as "assignedBy", a.created_at as "createdAt"
       ${from} order by a.created_at desc, a.id desc limit $3 offset $4`,
    [organizationId, guardrailId, limit, offset],
  );
  const total = await count(db, `select count(*)::int as total ${from}`, [organizationId, guardrailId]);
  return { assignments, total };
}

export async function listMemberAssignments(
  db: Queryable,
  organizationId: string,
  guardrailId: string | null,
  { offset, limit }: Page,
): Promise<{ assignments: MemberAssignment[]; total: number }> {
  const from = `from guardrail_members a where a.organization_id = $1 and ($2::uuid is null or a.guardrail_id = $2)`;
  const assignments = await db.query<MemberAssignment>(
    `select a.id, a.guardrail_id as "guardrailId", a.user_id as "userId", a.organization_id as "organizationId",
            a.assigned_by as "assignedBy", a.created_at as "createdAt"
       ${from} order by a.created_at desc, a.id desc limit $3 offset $4`,
    [organizationId, guardrailId, limit, offset],
  );
  const total = await count(db, `select count(*)::int as total ${from}`, [organizationId, guardrailId]);
  return { assignments, total };
}

/** Key hashes or member ids, depending on the operation. */
interface Assigned {
  /** Those named in the request that now have the requested state. */
  named: string[];
  /** Those whose state changed. */
  changed: string[];
}

/** Ids of keys by their current hash, or by a hash from before a rotation. */
const keysOf = (hash: string) => `select id from api_keys where hash = ${hash}
  union all select key_id from key_aliases where kind = 'predecessor' and hash = ${hash}`;

/** Replaces the keys' current assignments. @param ids one assignment id for each hash */
export async function assignKeys(
  tx: Queryable,
  hashes: readonly string[],
  ids: readonly string[],
  { organizationId, guardrailId, assignedBy, createdAt }: AssignedBy,
): Promise<Assigned> {
  const rows = await tx.query<Row>(
    `with wanted as (
       select distinct on (k.id) k.id as key_id, k.hash, w.id
         from unnest($1::text[], $2::uuid[]) as w (hash, id)
         join api_keys k on k.id in (${keysOf('w.hash')})
        where k.organization_id = $3 and k.kind = 'inference' and k.deleted_at is null
     ), placed as (
       insert into guardrail_keys (key_id, id, organization_id, guardrail_id, assigned_by, created_at)
       select key_id, id, $3, $4, $5, $6 from wanted order by key_id
       on conflict (key_id) do update set id = excluded.id, guardrail_id = excluded.guardrail_id,
         assigned_by = excluded.assigned_by, created_at = excluded.created_at
         where guardrail_keys.guardrail_id <> excluded.guardrail_id
       returning key_id
     )
     select hash as name, key_id in (select key_id from placed) as changed from wanted`,
    [hashes, ids, organizationId, guardrailId, assignedBy, createdAt],
  );
  return assigned(rows);
}

interface Row {
  name: string;
  changed: boolean;
}

function assigned(rows: readonly Row[]): Assigned {
  return { named: rows.map(({ name }) => name), changed: rows.flatMap(({ name, changed }) => (changed ? name : [])) };
}

/** Removes this guardrail from the keys that have it. */
export async function unassignKeys(
  tx: Queryable,
  organizationId: string,
  guardrailId: string,
  hashes: readonly string[],
): Promise<Assigned> {
  const rows = await tx.query<Row>(
    `delete from guardrail_keys a using api_keys k
      where k.id = a.key_id and a.organization_id = $1 and a.guardrail_id = $2 and k.id in (${keysOf('any($3)')})
      returning k.hash as name, true as changed`,
    [organizationId, guardrailId, hashes],
  );
  return assigned(rows);
}

/** Replaces the members' current assignments. @param ids one assignment id for each user */
export async function assignMembers(
  tx: Queryable,
  userIds: readonly string[],
  ids: readonly string[],
  { organizationId, guardrailId, assignedBy, createdAt }: AssignedBy,
): Promise<Assigned> {
  const rows = await tx.query<Row>(
    `with wanted as (
       select m.user_id, w.id
         from unnest($1::text[], $2::uuid[]) as w (user_id, id)
         join members m on m.organization_id = $3 and m.user_id = w.user_id
     ), placed as (
       insert into guardrail_members (organization_id, user_id, id, guardrail_id, assigned_by, created_at)
       select $3, user_id, id, $4, $5, $6 from wanted order by user_id
       on conflict (organization_id, user_id) do update set id = excluded.id, guardrail_id = excluded.guardrail_id,
         assigned_by = excluded.assigned_by, created_at = excluded.created_at
         where guardrail_members.guardrail_id <> excluded.guardrail_id
       returning user_id
     )
     select user_id as name, user_id in (select user_id from placed) as changed from wanted`,
    [userIds, ids, organizationId, guardrailId, assignedBy, createdAt],
  );
  return assigned(rows);
}

export async function unassignMembers(
  tx: Queryable,
  organizationId: string,
  guardrailId: string,
  userIds: readonly string[],
): Promise<Assigned> {
  const rows = await tx.query<Row>(
    `delete from guardrail_members where organization_id = $1 and guardrail_id = $2 and user_id = any($3)
      returning user_id as name, true as changed`,
    [organizationId, guardrailId, userIds],
  );
  return assigned(rows);
}
