/** Which process holds an intern. */
import type { Queryable } from '../../storage/database.ts';
import type { Owner } from '../../storage/owner.ts';

/** Where other processes reach this one. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly sealedKey: Buffer;
}

export interface ProcessRow {
  readonly id: string;
  readonly owner: Owner;
  readonly seenAt: Date;
  readonly endpoint: Endpoint;
}

type FlatRow = Omit<ProcessRow, 'endpoint'> & Endpoint;

export async function putProcess(db: Queryable, { id, owner, seenAt, endpoint }: ProcessRow): Promise<void> {
  const { host, port, sealedKey } = endpoint;
  await db.query(
    `insert into intern_processes (id, owner, seen_at, host, port, sealed_key) values ($1, $2::jsonb, $3, $4, $5, $6)
      on conflict (id) do update set seen_at = excluded.seen_at`,
    [id, JSON.stringify(owner), seenAt, host, port, sealedKey],
  );
}

const PROCESS = 'p.id, p.owner, p.seen_at as "seenAt", p.host, p.port, p.sealed_key as "sealedKey"';

export async function processes(db: Queryable): Promise<ProcessRow[]> {
  return (await db.query<FlatRow>(`select ${PROCESS} from intern_processes p`)).map(processOf);
}

function processOf({ host, port, sealedKey, ...row }: FlatRow): ProcessRow {
  return { ...row, endpoint: { host, port, sealedKey } };
}

/** With all that it holds. */
export async function deleteProcess(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from intern_holders where process_id = $1', [id]);
  await tx.query('delete from intern_processes where id = $1', [id]);
}

/** The process that holds the intern. */
export async function holderOf(db: Queryable, internId: string): Promise<ProcessRow | undefined> {
  const [row] = await db.query<FlatRow>(
    `select ${PROCESS} from intern_holders h join intern_processes p on p.id = h.process_id where h.intern_id = $1`,
    [internId],
  );
  return row && processOf(row);
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
