/** Which process holds an intern. */
import type { Queryable } from '../../storage/database.ts';
import type { Owner } from '../../storage/owner.ts';

export interface ProcessRow {
  readonly id: string;
  readonly owner: Owner;
  readonly seenAt: Date;
}

export async function putProcess(db: Queryable, { id, owner, seenAt }: ProcessRow): Promise<void> {
  await db.query(
    `insert into intern_processes (id, owner, seen_at) values ($1, $2::jsonb, $3)
      on conflict (id) do update set seen_at = excluded.seen_at`,
    [id, JSON.stringify(owner), seenAt],
  );
}

const PROCESS = 'p.id, p.owner, p.seen_at as "seenAt"';

export function processes(db: Queryable): Promise<ProcessRow[]> {
  return db.query<ProcessRow>(`select ${PROCESS} from intern_processes p`);
}

export async function findProcess(db: Queryable, id: string): Promise<ProcessRow | undefined> {
  const [row] = await db.query<ProcessRow>(`select ${PROCESS} from intern_processes p where id = $1`, [id]);
  return row;
}

/** With all that it holds. */
export async function deleteProcess(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from intern_holders where process_id = $1', [id]);
  await tx.query('delete from intern_processes where id = $1', [id]);
}

/** The process that holds the intern. */
export async function holderOf(db: Queryable, internId: string): Promise<ProcessRow | undefined> {
  const [row] = await db.query<ProcessRow>(
    `select ${PROCESS} from intern_holders h join intern_processes p on p.id = h.process_id where h.intern_id = $1`,
    [internId],
  );
  return row;
}

/** Interns that the process holds. */
export async function internsOf(db: Queryable, processId: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>('select intern_id as id from intern_holders where process_id = $1', [
    processId,
  ]);
  return rows.map(({ id }) => id);
}

/** Returns false if another process holds it. @param replaced a process that is dead */
export async function takeIntern(
  db: Queryable,
  internId: string,
  processId: string,
  replaced: string | null,
): Promise<boolean> {
  const rows = await db.query(
    `insert into intern_holders as h (intern_id, process_id) values ($1, $2)
      on conflict (intern_id) do update set process_id = excluded.process_id
        where h.process_id = $2 or h.process_id = $3
          or not exists (select 1 from intern_processes p where p.id = h.process_id)
      returning 1`,
    [internId, processId, replaced],
  );
  return rows.length > 0;
}

export async function releaseIntern(db: Queryable, internId: string, processId: string): Promise<void> {
  await db.query('delete from intern_holders where intern_id = $1 and process_id = $2', [internId, processId]);
}
