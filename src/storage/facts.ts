/** What an operator wants to know of a database that cannot do its work. */
import type { Queryable } from './database.ts';

interface DatabaseFacts {
  version: string;
  role: string;
  schema: string;
  /** The role may make tables in the schema. */
  mayCreate: boolean;
  /** The server's wall time. */
  nowMs: number;
}

export async function databaseFacts(db: Queryable): Promise<DatabaseFacts> {
  const [facts] = await db.query<Omit<DatabaseFacts, 'nowMs'> & { now: Date }>(
    `select current_setting('server_version') as version, current_user as role, coalesce(current_schema(), '') as schema,
       coalesce(has_schema_privilege(current_schema(), 'create'), false) as "mayCreate", clock_timestamp() as now`,
  );
  const { now, ...rest } = facts!;
  return { ...rest, nowMs: now.getTime() };
}
