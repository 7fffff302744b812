/** The SQL of SCIM users and their memberships. Writers hold the organization's lock. */
import { type Columns, insertRow, pick, selectList, updateRow } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';
import { countRows, type FilterColumns, type ListQuery, listRows, type Table } from '../filter.sql.ts';
import type { Condition } from '../protocol/condition.ts';
import type { Attributes } from '../protocol/resource.ts';

/** Pushed by the identity provider, or pulled from it. */
export type Source = 'push' | 'pull';

export interface StoredUser {
  /** `user_...`: the id in SCIM and in the rest of the gateway. */
  userId: string;
  organizationId: string;
  userName: string;
  externalId: string | null;
  active: boolean;
  attributes: Attributes;
  source: Source;
  version: bigint;
  createdAt: Date;
  updatedAt: Date;
}

export interface UserGroup {
  userId: string;
  groupId: string;
  displayName: string;
}

const COLUMNS: Columns<StoredUser> = {
  userId: 'user_id',
  organizationId: 'organization_id',
  userName: 'user_name',
  externalId: 'external_id',
  active: 'active',
  attributes: { name: 'attributes', type: 'jsonb' },
  source: 'source',
  version: 'version',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
};

const FIELDS = selectList(COLUMNS, 'u');

const FILTER_COLUMNS: FilterColumns = {
  single: {
    schemas: `'urn:ietf:params:scim:schemas:core:2.0:User'`,
    id: 'u.user_id',
    externalId: 'u.external_id',
    userName: 'u.user_name',
    active: 'u.active',
    'meta.resourceType': `'User'`,
    'meta.created': 'u.created_at',
    'meta.lastModified': 'u.updated_at',
  },
  lists: {
    groups: {
      from: 'scim_group_members gm join scim_groups g on g.id = gm.group_id',
      where: 'gm.user_id = u.user_id',
      single: { value: 'g.id::text', display: 'g.display_name' },
    },
  },
  json: 'u.attributes',
};

const TABLE: Table = {
  from: 'scim_users u',
  fields: FIELDS,
  organization: 'u.organization_id',
  oldestFirst: 'u.created_at, u.user_id',
  columns: FILTER_COLUMNS,
};

export async function findUser(db: Queryable, organizationId: string, userId: string): Promise<StoredUser | undefined> {
  const sql = `select ${FIELDS} from scim_users u where u.organization_id = $1 and u.user_id = $2`;
  const [user] = await db.query<StoredUser>(sql, [organizationId, userId]);
  return user;
}

/** Oldest first unless ordered otherwise. */
export function listUsers(db: Queryable, organizationId: string, question: ListQuery): Promise<StoredUser[]> {
  return listRows<StoredUser>(db, TABLE, organizationId, question);
}

export function countUsers(db: Queryable, organizationId: string, condition: Condition | undefined): Promise<number> {
  return countRows(db, TABLE, organizationId, condition);
}

/** The user with the remote directory's `externalId`, or else the one with this name. */
export async function findRemote(tx: Queryable, organizationId: string, externalId: string, userName: string) {
  const [user] = await tx.query<StoredUser>(
    `select ${FIELDS} from scim_users u
      where u.organization_id = $1 and (u.external_id = $2 or lower(u.user_name) = lower($3))
      order by u.external_id is not distinct from $2 desc, u.user_id limit 1`,
    [organizationId, externalId, userName],
  );
  return user;
}

export function pulledUsers(db: Queryable, organizationId: string): Promise<StoredUser[]> {
  const sql = `select ${FIELDS} from scim_users u where u.organization_id = $1 and u.source = 'pull'`;
  return db.query<StoredUser>(sql, [organizationId]);
}

/** Sorted by name. */
export function groupsOfUsers(db: Queryable, userIds: readonly string[]): Promise<UserGroup[]> {
  return db.query<UserGroup>(
    `select gm.user_id as "userId", g.id as "groupId", g.display_name as "displayName"
       from scim_group_members gm join scim_groups g on g.id = gm.group_id
      where gm.user_id = any($1) order by g.display_name, g.id`,
    [userIds],
  );
}

/** True if a user other than `userId` has the name. */
export async function isNameTaken(tx: Queryable, organizationId: string, userName: string, userId?: string) {
  const sql = `select 1 from scim_users where organization_id = $1 and lower(user_name) = lower($2)
                  and user_id is distinct from $3`;
  return (await tx.query(sql, [organizationId, userName, userId ?? null])).length > 0;
}

/** A member not managed by an identity provider, by e-mail address; undefined also if several match. */
export async function unmanagedMember(tx: Queryable, organizationId: string, emails: readonly string[]) {
  const rows = await tx.query<{ userId: string }>(
    `select m.user_id as "userId" from members m join users p on p.id = m.user_id
      where m.organization_id = $1 and lower(p.email) = any($2)
        and not exists (select 1 from scim_users u where u.user_id = m.user_id)`,
    [organizationId, emails.map((email) => email.toLowerCase())],
  );
  return rows.length === 1 ? rows[0]!.userId : undefined;
}

export interface Person {
  userId: string;
  name: string;
  email: string | null;
}

/** Inserts the person, or updates the name and e-mail address. */
export async function putPerson(tx: Queryable, { userId, name, email }: Person, now: Date): Promise<void> {
  await tx.query(
    `insert into users (id, name, email, created_at) values ($1, $2, $3, $4)
     on conflict (id) do update set name = excluded.name, email = excluded.email`,
    [userId, name, email, now],
  );
}

export async function insertUser(tx: Queryable, user: Omit<StoredUser, 'version' | 'updatedAt'>): Promise<void> {
  const { version: _, ...columns } = COLUMNS;
  await insertRow(tx, 'scim_users', columns, { ...user, updatedAt: user.createdAt });
}

export async function updateUser(
  tx: Queryable,
  user: Omit<StoredUser, 'version' | 'createdAt' | 'organizationId'>,
): Promise<void> {
  const columns = pick(COLUMNS, ['userName', 'externalId', 'active', 'attributes', 'source', 'updatedAt']);
  await updateRow(tx, 'scim_users', columns, user, { user_id: user.userId }, 'version = version + 1');
}

/** Increases the versions of the groups that lose a member. */
export async function deleteUser(tx: Queryable, userId: string, now: Date): Promise<void> {
  await tx.query(
    `update scim_groups set version = version + 1, updated_at = $2
      where id in (select group_id from scim_group_members where user_id = $1)`,
    [userId, now],
  );
  await tx.query('delete from scim_users where user_id = $1', [userId]);
}

/** Returns true if the user was not a member before. */
export async function joinOrganization(tx: Queryable, organizationId: string, userId: string, now: Date) {
  const sql = `insert into members (organization_id, user_id, role, created_at) values ($1, $2, 'member', $3)
               on conflict do nothing returning user_id`;
  return (await tx.query(sql, [organizationId, userId, now])).length > 0;
}

/** Returns true if the user was a member. Deletes all workspace memberships too. */
export async function removeFromOrganization(tx: Queryable, organizationId: string, userId: string): Promise<boolean> {
  const sql = 'delete from members where organization_id = $1 and user_id = $2 returning user_id';
  return (await tx.query(sql, [organizationId, userId])).length > 0;
}
