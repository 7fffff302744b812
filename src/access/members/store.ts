/** The SQL of an organization's members. */
import type { Queryable } from '../../storage/database.ts';

export interface Member {
  userId: string;
  name: string;
  email: string | null;
  givenName: string | null;
  familyName: string | null;
  role: 'admin' | 'member';
}

/** In the order in which they joined. */
export function listMembers(db: Queryable, organizationId: string, offset: number, limit: number): Promise<Member[]> {
  return db.query<Member>(
    `select m.user_id as "userId", u.name, u.email, s.attributes #>> '{name,givenName}' as "givenName",
            s.attributes #>> '{name,familyName}' as "familyName", m.role
       from members m join users u on u.id = m.user_id left join scim_users s on s.user_id = m.user_id
      where m.organization_id = $1 order by m.created_at, m.user_id offset $2 limit $3`,
    [organizationId, offset, limit],
  );
}

export async function countMembers(db: Queryable, organizationId: string): Promise<number> {
  const sql = 'select count(*)::int as count from members where organization_id = $1';
  const [row] = await db.query<{ count: number }>(sql, [organizationId]);
  return row?.count ?? 0;
}

/** Ids of the organizations with more than one member. */
export async function organizationsOfSeveral(db: Queryable): Promise<string[]> {
  const sql = 'select organization_id as id from members group by organization_id having count(*) > 1';
  return (await db.query<{ id: string }>(sql)).map(({ id }) => id);
}
