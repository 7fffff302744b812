/**
 * Holds: reservations in the database, for work that outlives the process that reserved it, such as a batch that a provider
 * runs for hours. A hold counts as leased until it is released; the rows that it pays for are entered in the transaction of
 * their owner, so each is entered exactly once if its owner's change happens once.
 */
import type { Nano } from '../../base/money.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { chargeIn } from '../budget.ts';
import type { Reservation } from '../contract.ts';
import type { Generation } from '../generation.ts';
import type { Leases } from '../leases.ts';
import type { Ledger } from '../ledger.ts';
import { addPartitions, isPartitionMissing } from '../partitions/store.ts';
import { RETURN } from '../processes/processes.ts';
import { forgetProcess } from '../processes/store.ts';
import type { Entry } from '../record.ts';
import type { HeldReservation } from '../reservation.ts';
import { encodeRow } from '../row.ts';
import { enterGenerations } from '../store.ts';
import type { BudgetWindow } from '../window.ts';
import { deleteHold, type HoldWindow, holdWindows, insertHold, lockHold } from './store.ts';

/** Collects reservations of this process until they are kept. Exactly one of `keep` and `release` is called. */
export interface HoldDraft {
  /** Takes the reservation over; it must not be used any more. */
  add(reservation: Reservation): void;
  /** Moves all of it into the database, in one transaction with `also`. Rejects, and releases it, if that fails. */
  keep(id: string, also: (tx: Queryable) => Promise<void>): Promise<void>;
  release(): void;
}

export interface Holds {
  draft(): HoldDraft;
  /**
   * Enters the rows that `work` returns, in one transaction with what it writes; the hold pays for them. Cost that the
   * hold does not cover is entered too.
   */
  enter(id: string, work: (tx: Queryable) => Promise<readonly Generation[]>): Promise<void>;
  /**
   * Ends the hold of one request that was handed over (`OpenGeneration.handOver`): enters its row, returns what is left, and
   * writes `also`, in one transaction. False: another process has ended it before, and nothing is written.
   */
  settle(row: Generation, also: (tx: Queryable) => Promise<void>): Promise<boolean>;
  /** Returns what is left of the hold. Does nothing for a hold that was released. */
  release(tx: Queryable, id: string): Promise<void>;
}

interface HoldParts {
  database: Database;
  changes: Changes;
  processId: string;
  ledger: Ledger;
  leases: Leases;
  clock: { now(): number };
}

export function createHolds(parts: HoldParts): Holds {
  const { database, changes } = parts;
  const release = async (tx: Queryable, id: string) => {
    const windows = await holdWindows(tx, id);
    if (windows === undefined) return;
    await forgetProcess(tx, id);
    await deleteHold(tx, id);
    await changes.announce(tx, RETURN, ...windows.map((window) => `${id} ${window.id}`));
  };
  return {
    draft: () => new Draft(parts),
    enter: (id, work) => entering(database, (tx, enter) => work(tx).then((rows) => enter(id, rows))),
    async settle(row, also) {
      let isFirst = false;
      await entering(database, async (tx, enter) => {
        isFirst = await lockHold(tx, row.id);
        if (!isFirst) return;
        await also(tx);
        await enter(row.id, [row]);
        await release(tx, row.id);
      });
      return isFirst;
    },
    release,
  };
}

type EnterRows = (id: string, rows: readonly Generation[]) => Promise<void>;

/** Runs the transaction again if the table of a row's month was missing. */
async function entering(database: Database, run: (tx: Queryable, enter: EnterRows) => Promise<void>): Promise<void> {
  let months = new Set<string>();
  const once = () =>
    database.transaction((tx) =>
      run(tx, async (id, rows) => {
        months = new Set(rows.map(({ createdAt }) => new Date(createdAt).toISOString().slice(0, 7)));
        const windows = (await holdWindows(tx, id)) ?? [];
        if (rows.length > 0)
          await enterGenerations(
            tx,
            id,
            rows.map((row) => entryOf(row, windows)),
          );
      }),
    );
  try {
    await once();
  } catch (error) {
    if (!isPartitionMissing(error)) throw error;
    await addPartitions(database, months);
    await once();
  }
}

function entryOf(row: Generation, windows: readonly HoldWindow[]): Entry {
  const cost = { creditNano: row.costNano, byokNano: row.byokNano };
  const isFree = cost.creditNano === 0n && cost.byokNano === 0n;
  const taken = windows.map((window) => ({ windowId: window.id, nano: chargeIn(window, cost), forcedNano: 0n }));
  return { id: row.id, row: encodeRow(row), taken: isFree ? [] : taken };
}

class Draft implements HoldDraft {
  readonly #parts: HoldParts;
  readonly #amounts = new Map<BudgetWindow, Nano>();

  constructor(parts: HoldParts) {
    this.#parts = parts;
  }

  add(reservation: Reservation): void {
    for (const { window, nano } of (reservation as HeldReservation).detach()) {
      const before = this.#amounts.get(window);
      // One holder of the window remains for all of them.
      if (before !== undefined) window.holders -= 1;
      this.#amounts.set(window, (before ?? 0n) + nano);
    }
  }

  async keep(id: string, also: (tx: Queryable) => Promise<void>): Promise<void> {
    const { ledger, leases, database, processId, clock } = this.#parts;
    const windows = [...this.#amounts.keys()].map((window) => ({
      id: window.id,
      includeByok: window.budget.includeByok,
    }));
    const amounts = new Map([...this.#amounts].map(([window, nano]) => [window.id, nano]));
    await ledger.inOrder(async () => {
      try {
        await database.transaction(async (tx) => {
          await insertHold(tx, { id, processId, windows, amounts, at: new Date(clock.now()) });
          await also(tx);
        });
      } catch (error) {
        // The transaction may have been committed.
        leases.uncertain = true;
        this.release();
        throw error;
      }
      leases.moved([...this.#amounts].map(([window, nano]) => ({ window, nano })));
    });
  }

  release(): void {
    const parts = [...this.#amounts].map(([window, nano]) => ({ window, nano }));
    this.#amounts.clear();
    this.#parts.leases.settle(parts, { creditNano: 0n, byokNano: 0n });
  }
}
