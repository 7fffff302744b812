/** How pg-boss is set up here, and how it reaches the database: through the connections that everything else uses. */
import type { ConstructorOptions, Db, PgBoss } from 'pg-boss';
import type { Queryable } from '../storage/database.ts';

/** PostgreSQL schema of pg-boss alone. pg-boss migrates it; backups leave it out. */
const JOBS_SCHEMA = 'gatehouse_jobs';

/**
 * pg-boss looks for dead workers and starts their jobs again this often. With the shortest heartbeat it knows (10 s) a
 * killed process is replaced after 12 s; its own default takes almost a minute.
 */
const SUPERVISE_SECONDS = 2;
const MAINTAIN_SECONDS = 60;

export function statementsOf(queryable: Pick<Queryable, 'query'>): Db {
  return {
    async executeSql(text, values) {
      return { rows: await queryable.query(text, values) };
    },
  };
}

/** Loads the library, which nothing needs before the gateway listens. */
export async function openBoss(queryable: Pick<Queryable, 'query'>, options: ConstructorOptions = {}): Promise<PgBoss> {
  const { PgBoss } = await import('pg-boss');
  return new PgBoss({
    db: statementsOf(queryable),
    schema: JOBS_SCHEMA,
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    maintenanceIntervalSeconds: MAINTAIN_SECONDS,
    monitorVacuum: false,
    ...options,
  });
}
