/** The SQL of holds. */
import type { Nano } from '../../base/money.ts';
import type { Queryable } from '../../storage/database.ts';
import { moveLeases } from '../store.ts';

/** A window that counts the rows of a hold. */
export interface HoldWindow {
  id: string;
  includeByok: boolean;
}

/** Moves amounts from the leases of a process to a new hold. */
export async function insertHold(
  tx: Queryable,
  {
    id,
    processId,
    windows,
    amounts,
    at,
  }: {
    id: string;
    processId: string;
    windows: readonly HoldWindow[];
    amounts: ReadonlyMap<string, Nano>;
    at: Date;
  },
): Promise<void> {
  await tx.query('insert into spend_holds (id, windows, created_at) values ($1, $2, $3)', [
    id,
    JSON.stringify(windows),
    at,
  ]);
  await moveLeases(tx, processId, id, amounts);
}

/** Undefined: it was released. */
export async function holdWindows(tx: Queryable, id: string): Promise<HoldWindow[] | undefined> {
  const [row] = await tx.query<{ windows: HoldWindow[] }>('select windows from spend_holds where id = $1', [id]);
  return row?.windows;
}

/** Locks the hold until the transaction ends. False: it was released. */
export async function lockHold(tx: Queryable, id: string): Promise<boolean> {
  return (await tx.query('select from spend_holds where id = $1 for update', [id])).length > 0;
}

/** Of requests, by their ids: those that a hold has. */
export async function heldAmong(db: Queryable, ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ id: string }>('select id from spend_holds where id = any($1)', [ids]);
  return rows.map(({ id }) => id);
}

export async function deleteHold(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from spend_holds where id = $1', [id]);
}
