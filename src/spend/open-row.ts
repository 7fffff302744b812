/** An accepted request that has no row yet. */
import type { Usage } from '../formats/conversation/conversation.ts';
import type { Queryable } from '../storage/database.ts';
import { type Charge, chargeIn } from './budget.ts';
import type { OpenGeneration } from './contract.ts';
import type { Generation } from './generation.ts';
import type { Holds } from './holds/holds.ts';
import type { Journal, Segment } from './journal.ts';
import type { Ledger } from './ledger.ts';
import { type Attempt, encodeAttempt, encodeProgress, type Taken } from './record.ts';
import type { HeldReservation } from './reservation.ts';
import { encodeRow } from './row.ts';

/** The open requests of a process. */
interface OpenRows {
  readonly journal: Journal;
  readonly ledger: Ledger;
  readonly holds: Holds;
  /** How many they are. */
  open: number;
  /** Those with new progress since the last tick. */
  readonly dirty: OpenRow[];
}

export class OpenRow implements OpenGeneration {
  dirty = false;
  readonly #rows: OpenRows;
  readonly #id: string;
  readonly #reservation: HeldReservation;
  readonly #intent: Segment;
  #attempt: Segment | undefined;
  #progress: Segment | undefined;
  #outputBytes = 0;
  #usage: Usage | null = null;
  #charge: Charge | null = null;
  #settled = false;
  /** The journal records that this attempt has been answered. */
  #answered = false;
  /** Resolves once a hold has the request. */
  #handing: Promise<void> | undefined;

  constructor(rows: OpenRows, id: string, reservation: HeldReservation, intent: Segment) {
    this.#rows = rows;
    this.#id = id;
    this.#reservation = reservation;
    this.#intent = intent;
  }

  attempt(attempt: Attempt): void {
    const segment = this.#rows.journal.append('A', encodeAttempt(this.#id, attempt, this.#reservation.held));
    if (this.#attempt !== undefined) this.#rows.journal.release(this.#attempt);
    this.#attempt = segment;
    this.#outputBytes = 0;
    this.#usage = null;
    this.#charge = null;
    this.#answered = false;
    this.dirty = false;
  }

  seen(outputBytes: number): void {
    this.#outputBytes = outputBytes;
    if (!this.dirty) this.#news();
  }

  reported(usage: Usage, charge: Charge): void {
    this.#usage = usage;
    this.#charge = charge;
    // The usage counts this output, so no estimate of its tokens is added.
    this.#outputBytes = 0;
    if (!this.dirty) this.#news();
  }

  settle(row: Generation, written: () => void = nothing): void {
    if (this.#settled) throw new Error(`generation ${this.#id} is settled twice`);
    this.#settled = true;
    this.dirty = false;
    if (this.#handing === undefined) this.#enter(row, written);
    else void this.#handing.then(written, () => this.#enter(row, written));
  }

  handOver(also: (tx: Queryable) => Promise<void>): Promise<void> {
    const draft = this.#rows.holds.draft();
    draft.add(this.#reservation);
    this.#handing = draft.keep(this.#id, also).then(() => this.#close());
    return this.#handing;
  }

  #enter(row: Generation, written: () => void): void {
    const taken = this.#taken({ creditNano: row.costNano, byokNano: row.byokNano });
    this.#rows.ledger.settle({ id: this.#id, row: encodeRow(row), taken }, () => {
      this.#close();
      written();
    });
  }

  /**
   * The amounts taken from leases. After a failed hand-over the reservation is gone, so the budgets count the cost
   * beyond the leases.
   */
  #taken(cost: Charge): Taken[] {
    if (this.#handing === undefined) return this.#reservation.settle(cost);
    return this.#reservation.parts.map(({ window }) => {
      const nano = chargeIn(window.budget, cost);
      return { windowId: window.id, nano, forcedNano: nano };
    });
  }

  /** Nothing of the request is needed in the journal any more. */
  #close(): void {
    const { journal } = this.#rows;
    journal.release(this.#intent);
    if (this.#attempt !== undefined) journal.release(this.#attempt);
    if (this.#progress !== undefined) journal.release(this.#progress);
    this.#rows.open -= 1;
  }

  progress(): string {
    return encodeProgress(this.#id, { outputBytes: this.#outputBytes, usage: this.#usage, charge: this.#charge });
  }

  written(segment: Segment): void {
    this.dirty = false;
    if (this.#progress !== undefined) this.#rows.journal.release(this.#progress);
    this.#progress = segment;
  }

  #news(): void {
    if (this.#settled || this.#handing !== undefined) return;
    if (!this.#answered) {
      // Now and not with the next batch: only a request without any output may be entered as unconfirmed.
      this.#answered = true;
      const segment = this.#rows.journal.appendAnyway('P', this.progress());
      if (segment !== undefined) this.written(segment);
      return;
    }
    this.dirty = true;
    this.#rows.dirty.push(this);
    this.#rows.journal.wake();
  }
}

const nothing = () => {};
