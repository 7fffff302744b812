/** The SQL of spend. Statements that lock several windows do so in the order of their ids, so they cannot deadlock. */
import type { Nano } from '../base/money.ts';
import type { Queryable } from '../storage/database.ts';
import { INTERVALS, type SpentBy, windowId } from './budget.ts';
import { addToDays, DAY_COLUMNS, DAY_KEYS, DAY_SUMS, type DaySum } from './days.sql.ts';
import { guardrailTotals } from './guardrail-totals.sql.ts';
import type { Entry } from './record.ts';
import { COLUMNS, type StoredRow } from './row.ts';

const NAMES = COLUMNS.map(([name]) => `"${name}"`).join(', ');
const TYPED = COLUMNS.map(([name, type]) => `"${name}" ${type}`).join(', ');

/**
 * Returns the ids of inserted rows only if they are needed ($2).
 *
 * Returns one row per day, key, model and endpoint. No window begins within a day, so these totals are enough for the
 * counters.
 */
const INSERT_GENERATIONS = `
  with inserted as (
    insert into generations (${NAMES}, summed)
    select ${NAMES}, true from json_to_recordset($1::json) as row(${TYPED})
    on conflict (id, created_at) do nothing
    returning id, ${DAY_COLUMNS}
  )
  select ${DAY_SUMS}, min(created_at) as created_at, array_agg(id) filter (where $2::boolean) as ids
  from inserted
  group by ${DAY_KEYS}`;

interface InsertedSum extends DaySum {
  created_at: Date;
  ids: string[] | null;
}

/**
 * Inserts rows and updates their counters, in the caller's transaction. A row that already exists changes nothing, so a
 * batch may be repeated.
 * @param processId process whose leases paid for the rows
 * @returns windows without a lease of this process, because an operator released it
 */
export async function enterGenerations(tx: Queryable, processId: string, entries: readonly Entry[]): Promise<string[]> {
  const rows = `[${entries.map((entry) => entry.row).join(',')}]`;
  const windows = new Map<string, WindowChange>();
  const leases = new Map<string, bigint>();
  const paying = new Map(entries.filter((entry) => entry.taken.length > 0).map((entry) => [entry.id, entry]));
  const sums = await tx.query<InsertedSum>(INSERT_GENERATIONS, [rows, paying.size > 0]);
  for (const sum of sums) {
    const own = new Set(windowsOf(sum));
    for (const id of own) addChange(windows, id, sum);
    for (const id of sum.ids ?? []) {
      const entry = paying.get(id);
      if (entry !== undefined) takeFrom(leases, windows, own, entry);
    }
  }
  const lost = await changeLeases(tx, processId, leases, windows);
  await changeWindows(tx, windows);
  await addToDays(tx, sums);
  return lost;
}

/**
 * Subtracts an entered row from its leases, and adds it to windows other than `own` (those of its account, workspace
 * and key). This includes windows that count the spend of keys (`guardrailTotals`), because processes of an earlier version
 * grant by their counters.
 */
function takeFrom(
  leases: Map<string, bigint>,
  windows: Map<string, WindowChange>,
  own: ReadonlySet<string>,
  entry: Entry,
): void {
  let row: RowCosts | undefined;
  for (const { windowId, nano, forcedNano } of entry.taken) {
    const change = forcedNano - nano;
    if (change !== 0n) leases.set(windowId, (leases.get(windowId) ?? 0n) + change);
    if (own.has(windowId)) continue;
    row ??= JSON.parse(entry.row) as RowCosts;
    addChange(windows, windowId, row);
  }
}

interface RowCosts {
  cost_nano: string | bigint;
  byok_nano: string | bigint;
}

interface WindowChange {
  spent: bigint;
  byok: bigint;
  leased: bigint;
}

/** The windows of every interval of the account, workspace and key. */
function windowsOf(sum: InsertedSum): string[] {
  const at = new Date(sum.created_at).getTime();
  return INTERVALS.flatMap((interval) => [
    windowId('account', sum.organization_id, interval, at),
    windowId('workspace', sum.workspace_id, interval, at),
    windowId('key', sum.key_id, interval, at),
  ]);
}

function addChange(windows: Map<string, WindowChange>, id: string, sum: RowCosts): void {
  const change = changeOf(windows, id);
  change.spent += BigInt(sum.cost_nano);
  change.byok += BigInt(sum.byok_nano);
}

function changeOf(windows: Map<string, WindowChange>, id: string): WindowChange {
  let change = windows.get(id);
  if (change === undefined) {
    change = { spent: 0n, byok: 0n, leased: 0n };
    windows.set(id, change);
  }
  return change;
}

/** Adds the actual changes to `windows`, so that a window's leased total always equals the sum of its leases. */
async function changeLeases(
  tx: Queryable,
  processId: string,
  leases: ReadonlyMap<string, bigint>,
  windows: Map<string, WindowChange>,
): Promise<string[]> {
  if (leases.size === 0) return [];
  const changes = [...leases].map(([id, change]) => ({ id, change: String(change) }));
  const changed = await tx.query<{ window_id: string; change: bigint }>(
    `with old as materialized (
       select lease.window_id, lease.amount_nano, asked.change
       from spend_leases lease
       join jsonb_to_recordset($2::jsonb) as asked(id text, change bigint) on asked.id = lease.window_id
       where lease.process_id = $1 order by lease.window_id for update of lease
     )
     update spend_leases lease set amount_nano = greatest(old.amount_nano + old.change, 0)
     from old where lease.process_id = $1 and lease.window_id = old.window_id
     returning lease.window_id, lease.amount_nano - old.amount_nano as change`,
    [processId, JSON.stringify(changes)],
  );
  const lost = new Set(leases.keys());
  for (const row of changed) {
    lost.delete(row.window_id);
    changeOf(windows, row.window_id).leased += BigInt(row.change);
  }
  return [...lost];
}

async function changeWindows(tx: Queryable, windows: ReadonlyMap<string, WindowChange>): Promise<void> {
  if (windows.size === 0) return;
  const changes = [...windows].map(([id, change]) => ({
    id,
    spent: String(change.spent),
    byok: String(change.byok),
    leased: String(change.leased),
  }));
  await tx.query(
    `insert into spend_windows as own (id, spent_nano, byok_nano, leased_nano)
     select id, spent, byok, leased
     from jsonb_to_recordset($1::jsonb) as change(id text, spent bigint, byok bigint, leased bigint)
     order by id collate "C"
     on conflict (id) do update set
       spent_nano = own.spent_nano + excluded.spent_nano,
       byok_nano = own.byok_nano + excluded.byok_nano,
       leased_nano = own.leased_nano + excluded.leased_nano`,
    [JSON.stringify(changes)],
  );
}

/** Moves amounts of leases from one holder to another, which has none in these windows. */
export async function moveLeases(
  tx: Queryable,
  from: string,
  to: string,
  amounts: ReadonlyMap<string, Nano>,
): Promise<void> {
  const moved = [...amounts].filter(([, nano]) => nano > 0n);
  const windows = new Map<string, WindowChange>();
  await changeLeases(tx, from, new Map(moved.map(([id, nano]) => [id, -nano])), windows);
  // Where an operator has released the giver's lease, the amount is leased again.
  for (const [id, nano] of moved) changeOf(windows, id).leased += nano;
  await addLeases(
    tx,
    to,
    moved.map(([windowId, grantedNano]) => ({ windowId, grantedNano })),
  );
  await changeWindows(tx, windows);
}

/** A process's request for a part of one window. */
export interface LeaseRequest {
  windowId: string;
  limitNano: Nano;
  includeByok: boolean;
  /** Amount returned before anything is granted. */
  backNano: Nano;
  /** Granted completely or not at all. */
  needNano: Nano;
  /** Granted beyond the need as far as there is room, because other requests wait for it. */
  wantNano: Nano;
  /** Granted beyond both, up to one eighth of the room, so that not every request needs the database. */
  spareNano: Nano;
  /** As in `Budget`. */
  spentBy?: SpentBy | undefined;
}

export interface LeaseAnswer {
  windowId: string;
  grantedNano: Nano;
  /** Spent as the budget counts it. */
  usedNano: Nano;
  /** Leased by all processes, after the grant. */
  leasedNano: Nano;
}

interface WindowRow {
  id: string;
  spent_nano: bigint;
  byok_nano: bigint;
  leased_nano: bigint;
}

/** Moves leases of one process. A grant never takes spent plus leased above the limit. Call it in a transaction. */
export async function askLeases(
  tx: Queryable,
  processId: string,
  requests: readonly LeaseRequest[],
): Promise<LeaseAnswer[]> {
  const locked = await lockWindows(
    tx,
    requests.map((request) => request.windowId),
  );
  const changes = new Map<string, WindowChange>();
  const backs = requests.filter((request) => request.backNano > 0n);
  // Do not return again what an operator has already taken back.
  await changeLeases(tx, processId, new Map(backs.map((request) => [request.windowId, -request.backNano])), changes);
  const counted = await guardrailTotals(tx, requests);
  const answers = requests.map((request) => {
    const back = changes.get(request.windowId)?.leased ?? 0n;
    const row = locked.get(request.windowId)!;
    const { spentNano = row.spent_nano, byokNano = row.byok_nano } = counted.get(request.windowId) ?? {};
    const usedNano = BigInt(spentNano) + (request.includeByok ? BigInt(byokNano) : 0n);
    const answer = decide(request, usedNano, BigInt(row.leased_nano) + back);
    if (answer.grantedNano > 0n) changeOf(changes, request.windowId).leased += answer.grantedNano;
    return answer;
  });
  await addLeases(tx, processId, answers);
  await changeWindows(tx, changes);
  return answers;
}

function decide(request: LeaseRequest, usedNano: Nano, leasedNano: Nano): LeaseAnswer {
  const spare = request.limitNano - usedNano - leasedNano - request.needNano;
  let grantedNano = 0n;
  if (spare >= 0n && request.needNano > 0n) {
    const ahead = min(request.spareNano, spare / SPARE_PARTS);
    grantedNano = request.needNano + (ahead > request.wantNano ? ahead : min(request.wantNano, spare));
  }
  return { windowId: request.windowId, grantedNano, usedNano, leasedNano: leasedNano + grantedNano };
}

/** At most 1/SPARE_PARTS of the remainder is granted ahead of requests. */
const SPARE_PARTS = 8n;

function min(one: Nano, other: Nano): Nano {
  return one < other ? one : other;
}

async function addLeases(
  tx: Queryable,
  processId: string,
  answers: readonly Pick<LeaseAnswer, 'windowId' | 'grantedNano'>[],
): Promise<void> {
  const grants = answers.filter((answer) => answer.grantedNano > 0n);
  if (grants.length === 0) return;
  await tx.query(
    `insert into spend_leases as own (process_id, window_id, amount_nano)
     select $1, id, amount from jsonb_to_recordset($2::jsonb) as granted(id text, amount bigint)
     on conflict (process_id, window_id) do update set amount_nano = own.amount_nano + excluded.amount_nano`,
    [processId, JSON.stringify(grants.map((grant) => ({ id: grant.windowId, amount: String(grant.grantedNano) })))],
  );
}

/** Locks windows in the order of their ids, and inserts missing ones. */
export async function lockWindows(tx: Queryable, ids: readonly string[]): Promise<Map<string, WindowRow>> {
  const lock = 'select * from spend_windows where id = any($1::text[]) order by id for update';
  let rows = await tx.query<WindowRow>(lock, [ids]);
  if (rows.length < ids.length) {
    await tx.query(
      `insert into spend_windows (id, spent_nano, byok_nano, leased_nano)
       select id, 0, 0, 0 from unnest($1::text[]) as id order by id collate "C" on conflict (id) do nothing`,
      [ids],
    );
    rows = await tx.query<WindowRow>(lock, [ids]);
  }
  return new Map(rows.map((row) => [row.id, row]));
}

/** Leases of one process as recorded in the database. */
export async function leasesOf(db: Queryable, processId: string): Promise<Map<string, Nano>> {
  const rows = await db.query<{ window_id: string; amount_nano: bigint }>(
    'select window_id, amount_nano from spend_leases where process_id = $1',
    [processId],
  );
  return new Map(rows.map((row) => [row.window_id, BigInt(row.amount_nano)]));
}

export async function removeEmptyLeases(db: Queryable, processId: string): Promise<void> {
  await db.query('delete from spend_leases where process_id = $1 and amount_nano = 0', [processId]);
}

export async function generationById(db: Queryable, id: string): Promise<StoredRow | undefined> {
  const [row] = await db.query<StoredRow>(`select ${NAMES} from generations where id = $1`, [id]);
  return row;
}

interface WindowState {
  spentNano: Nano;
  byokNano: Nano;
  leasedNano: Nano;
  /** Held by processes with a heartbeat older than `deadBefore`, or with a replayed journal. */
  unreturnedNano: Nano;
}

export async function windowStates(
  db: Queryable,
  ids: readonly string[],
  deadBefore: number,
): Promise<Map<string, WindowState>> {
  const rows = await db.query<WindowRow & { unreturned_nano: bigint }>(
    `select own.*, coalesce((
       select sum(lease.amount_nano) from spend_leases lease
       left join spend_processes process on process.id = lease.process_id
       where lease.window_id = own.id and lease.process_id not in (select id from spend_holds)
         and (process.seen_at is null or process.seen_at < $2 or process.replayed_at is not null)
     ), 0)::bigint as unreturned_nano
     from spend_windows own where own.id = any($1::text[])`,
    [ids, new Date(deadBefore)],
  );
  return new Map(
    rows.map((row) => [
      row.id,
      {
        spentNano: BigInt(row.spent_nano),
        byokNano: BigInt(row.byok_nano),
        leasedNano: BigInt(row.leased_nano),
        unreturnedNano: BigInt(row.unreturned_nano),
      },
    ]),
  );
}
