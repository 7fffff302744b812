/** The SQL of SCIM groups and their members. Writers hold the organization's lock. */
import { type Columns, insertRow, pick, selectList, updateRow } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';
import { countRows, type FilterColumns, type ListQuery, listRows, type Table } from '../filter.sql.ts';
import type { Condition } from '../protocol/condition.ts';
import type { Attributes } from '../protocol/resource.ts';
import type { Source } from '../users/store.ts';

export interface StoredGroup {
  id: string;
  organizationId: string;
  displayName: string;
  externalId: string | null;
  attributes: Attributes;
  source: Source;
  version: bigint;
  createdAt: Date;
  updatedAt: Date;
}

export interface GroupMember {
  groupId: string;
  userId: string;
  name: string;
}

const COLUMNS: Columns<StoredGroup> = {
  id: 'id',
  organizationId: 'organization_id',
  displayName: 'display_name',
  externalId: 'external_id',
  attributes: { name: 'attributes', type: 'jsonb' },
  source: 'source',
  version: 'version',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
};

const FIELDS = selectList(COLUMNS, 'g');

const FILTER_COLUMNS: FilterColumns = {
  single: {
    schemas: `'urn:ietf:params:scim:schemas:core:2.0:Group'`,
    id: 'g.id::text',
    externalId: 'g.external_id',
    displayName: 'g.display_name',
    'meta.resourceType': `'Group'`,
    'meta.created': 'g.created_at',
    'meta.lastModified': 'g.updated_at',
  },
  lists: {
    members: {
      from: 'scim_group_members gm join users p on p.id = gm.user_id',
      where: 'gm.group_id = g.id',
      single: { value: 'gm.user_id', display: 'p.name', type: `'User'` },
    },
  },
  json: 'g.attributes',
};

const TABLE: Table = {
  from: 'scim_groups g',
  fields: FIELDS,
  organization: 'g.organization_id',
  oldestFirst: 'g.created_at, g.id',
  columns: FILTER_COLUMNS,
};

/** @param id a UUID */
export async function findGroup(db: Queryable, organizationId: string, id: string): Promise<StoredGroup | undefined> {
  const sql = `select ${FIELDS} from scim_groups g where g.organization_id = $1 and g.id = $2`;
  const [group] = await db.query<StoredGroup>(sql, [organizationId, id]);
  return group;
}

/** Oldest first unless ordered otherwise. */
export function listGroups(db: Queryable, organizationId: string, question: ListQuery): Promise<StoredGroup[]> {
  return listRows<StoredGroup>(db, TABLE, organizationId, question);
}

export function countGroups(db: Queryable, organizationId: string, condition: Condition | undefined): Promise<number> {
  return countRows(db, TABLE, organizationId, condition);
}

/** The group with the remote directory's `externalId`, or else the one with this name. */
export async function findRemote(tx: Queryable, organizationId: string, externalId: string, displayName: string) {
  const [group] = await tx.query<StoredGroup>(
    `select ${FIELDS} from scim_groups g
      where g.organization_id = $1 and (g.external_id = $2 or lower(g.display_name) = lower($3))
      order by g.external_id is not distinct from $2 desc, g.id limit 1`,
    [organizationId, externalId, displayName],
  );
  return group;
}

export function pulledGroups(db: Queryable, organizationId: string): Promise<Pick<StoredGroup, 'id' | 'attributes'>[]> {
  const sql = `select id, attributes from scim_groups where organization_id = $1 and source = 'pull'
               order by created_at, id`;
  return db.query(sql, [organizationId]);
}

export async function memberCounts(db: Queryable, groupIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await db.query<{ id: string; count: number }>(
    'select group_id as id, count(*)::int as count from scim_group_members where group_id = any($1::uuid[]) group by 1',
    [groupIds],
  );
  return new Map(rows.map(({ id, count }) => [id, count]));
}

export function membersOf(db: Queryable, groupIds: readonly string[]): Promise<GroupMember[]> {
  return db.query<GroupMember>(
    `select gm.group_id as "groupId", gm.user_id as "userId", p.name
       from scim_group_members gm join users p on p.id = gm.user_id
      where gm.group_id = any($1::uuid[]) order by gm.user_id`,
    [groupIds],
  );
}

/** True if a group other than `id` has the name. */
export async function isNameTaken(tx: Queryable, organizationId: string, displayName: string, id?: string) {
  const sql = `select 1 from scim_groups where organization_id = $1 and lower(display_name) = lower($2)
                  and id is distinct from $3::uuid`;
  return (await tx.query(sql, [organizationId, displayName, id ?? null])).length > 0;
}

export async function insertGroup(tx: Queryable, group: Omit<StoredGroup, 'version' | 'updatedAt'>): Promise<void> {
  const { version: _, ...columns } = COLUMNS;
  await insertRow(tx, 'scim_groups', columns, { ...group, updatedAt: group.createdAt });
}

export async function updateGroup(
  tx: Queryable,
  group: Omit<StoredGroup, 'version' | 'createdAt' | 'updatedAt' | 'organizationId'>,
  updatedAt: Date,
): Promise<void> {
  const columns = pick(COLUMNS, ['displayName', 'externalId', 'attributes', 'source', 'updatedAt']);
  await updateRow(tx, 'scim_groups', columns, { ...group, updatedAt }, { id: group.id }, 'version = version + 1');
}

/** Deletes the group with its members and mappings. */
export async function deleteGroup(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from scim_groups where id = $1', [id]);
}

/** Those of `userIds` that are not SCIM users of the organization. */
export async function unknownUsers(tx: Queryable, organizationId: string, userIds: readonly string[]) {
  const rows = await tx.query<{ id: string }>(
    `select id from unnest($2::text[]) as id
      where not exists (select 1 from scim_users u where u.organization_id = $1 and u.user_id = id)`,
    [organizationId, userIds],
  );
  return rows.map(({ id }) => id);
}

/** Returns those who were not members before. */
export async function addMembers(tx: Queryable, groupId: string, userIds: readonly string[]): Promise<string[]> {
  const sql = `insert into scim_group_members (group_id, user_id) select $1, id from unnest($2::text[]) as id
               on conflict do nothing returning user_id as "userId"`;
  return idsIn(await tx.query(sql, [groupId, userIds]));
}

/** Returns those who were members. */
export async function removeMembers(tx: Queryable, groupId: string, userIds: readonly string[]): Promise<string[]> {
  const sql = `delete from scim_group_members where group_id = $1 and user_id = any($2) returning user_id as "userId"`;
  return idsIn(await tx.query(sql, [groupId, userIds]));
}

/** Removes and returns the members who are not among `userIds`. */
export async function keepMembers(tx: Queryable, groupId: string, userIds: readonly string[]): Promise<string[]> {
  const sql = `delete from scim_group_members where group_id = $1 and user_id <> all($2) returning user_id as "userId"`;
  return idsIn(await tx.query(sql, [groupId, userIds]));
}

function idsIn(rows: readonly { userId: string }[]): string[] {
  return rows.map(({ userId }) => userId);
}
