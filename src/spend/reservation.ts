/** The hold of one request on its budgets. */
import type { Charge, Refusal } from './budget.ts';
import type { Reservation } from './contract.ts';
import type { Leases } from './leases.ts';
import type { Taken } from './record.ts';
import type { Part } from './window.ts';

/** A reservation inside `spend/`. */
export class HeldReservation implements Reservation {
  readonly refused = undefined;
  readonly parts: readonly Part[];
  readonly #leases: Leases;
  #held: Charge;
  #open = true;

  constructor(leases: Leases, parts: readonly Part[], held: Charge) {
    this.#leases = leases;
    this.parts = parts;
    this.#held = held;
  }

  get held(): Charge {
    return this.#held;
  }

  extend(more: Charge): true | Refusal | Promise<true | Refusal> {
    return this.#open ? this.#leases.extend(this, more) : true;
  }

  /** Adds `extra`, which the windows cover, unless the reservation was settled in the meantime. */
  grow(extra: readonly Part[], more: Charge): void {
    if (!this.#open) return;
    for (const [index, part] of this.parts.entries()) {
      part.nano += extra[index]!.nano;
      part.window.reserved += extra[index]!.nano;
    }
    this.#held = {
      creditNano: this.#held.creditNano + more.creditNano,
      byokNano: this.#held.byokNano + more.byokNano,
    };
  }

  /** Settles the hold; returns the amounts taken from the leases. Empty on later calls. */
  settle(cost: Charge): Taken[] {
    if (!this.#open) return [];
    this.#open = false;
    return this.#leases.settle(this.parts, cost);
  }

  /** Ends the reservation without returning what it holds. Its new owner gets the parts. Empty on later calls. */
  detach(): readonly Part[] {
    if (!this.#open) return [];
    this.#open = false;
    return this.parts;
  }

  release(): void {
    this.settle(FREE);
  }
}

const FREE: Charge = { creditNano: 0n, byokNano: 0n };
