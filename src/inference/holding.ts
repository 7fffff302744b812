/**
 * What one request holds of budgets and rate limits while its attempts run: the bound of each attempt before it is sent, on
 * top of those of earlier ones that may have cost something (design, promise 2).
 */
import type { Endpoint } from '../catalog/index.ts';
import { type Budget, type Charge, chargeIn, type Refusal, type Reservation, refusalError } from '../spend/index.ts';
import { budgetsOf } from './govern.ts';
import { holdTokens } from './pace.ts';
import type { InferenceParts } from './parts.ts';
import type { AcceptedRequest } from './request.ts';
import type { Candidate } from './routing/index.ts';
import type { CostBound, Task } from './task.ts';

const NOTHING: Charge = { creditNano: 0n, byokNano: 0n };

export class Holding {
  readonly #request: AcceptedRequest;
  readonly #task: Task;
  readonly #parts: InferenceParts;
  readonly #budgets: readonly Budget[];
  #reservation: Reservation | undefined;
  /** Bounds of earlier attempts that may have cost something. */
  #earlier: Charge = NOTHING;
  #earlierTokens = 0;

  constructor(request: AcceptedRequest, task: Task, parts: InferenceParts) {
    this.#request = request;
    this.#task = task;
    this.#parts = parts;
    this.#budgets = budgetsOf(request.caller, parts.accountBalanceNano());
  }

  /** What `begin` wants; after `hold`. */
  get reservation(): Reservation {
    return this.#reservation!;
  }

  get earlier(): Charge {
    return this.#earlier;
  }

  /**
   * Holds what an attempt could cost and use; returns the smaller output cap that a nearly spent limit leaves. Without a
   * promise where nothing is limited, which is the rule. Rejects with GatewayError 402, 403 or 429.
   */
  hold(candidate: Candidate): undefined | Promise<number | undefined> {
    const countsTokens = this.#request.standing?.countsTokens ?? false;
    if (this.#budgets.length > 0 || countsTokens) return this.#holdAll(candidate, countsTokens);
    // `begin` asks for a reservation all the same.
    this.#reservation ??= this.#parts.spend.reserve([], NOTHING, this.#request.startedAt) as Reservation;
    return undefined;
  }

  /** An attempt has failed after its request may have been worked on: its bound stays held. */
  keep(): void {
    if (this.#reservation) this.#earlier = this.#reservation.held;
    this.#earlierTokens = this.#request.standing?.heldTokens ?? 0;
  }

  /** Gives back what no generation was begun with. */
  release(): void {
    this.#reservation?.release();
  }

  async #holdAll(candidate: Candidate, countsTokens: boolean): Promise<number | undefined> {
    const affordable = await this.#reserve(candidate);
    return countsTokens ? this.#holdTokens(candidate.endpoint, affordable) : affordable;
  }

  async #reserve({ endpoint, own }: Candidate): Promise<number | undefined> {
    // What a customer's own key spends may be nobody's concern, and then it needs no price.
    if (own !== undefined && !this.#budgets.some(({ includeByok }) => includeByok)) {
      await this.#ask(NOTHING);
      return undefined;
    }
    const charge = (nano: bigint): Charge =>
      own === undefined ? { creditNano: nano, byokNano: 0n } : { creditNano: 0n, byokNano: nano };
    let bound = this.#task.bound(endpoint);
    let refusal = await this.#ask(charge(bound.nano));
    if (refusal === undefined) return undefined;
    // A token may be many bytes: where they decide, the tokens themselves are counted.
    const counted = await this.#task.countPrompt?.(endpoint);
    if (counted !== undefined) {
      bound = this.#task.bound(endpoint, counted);
      refusal = await this.#ask(charge(bound.nano));
      if (refusal === undefined) return undefined;
    }
    return this.#affordable(bound, charge, refusal);
  }

  /** The output that every budget pays for: each that refuses leaves less of it. Throws GatewayError 402 for too little. */
  async #affordable(bound: CostBound, charge: (nano: bigint) => Charge, refusal: Refusal): Promise<number | undefined> {
    let { budget, leftNano }: Refusal = refusal;
    for (let asked = 0; asked < this.#budgets.length; asked++) {
      const affordable = bound.within(atLeastNothing(leftNano - chargeIn(budget, this.#earlier)));
      if (affordable === undefined) break;
      const answer = await this.#ask(charge(affordable.nano));
      if (answer === undefined) return affordable.capOutputTokens;
      ({ budget, leftNano } = answer);
    }
    throw refusalError(refusal);
  }

  /** The same for tokens of rate limits; `affordable` is the cap that stands already. */
  async #holdTokens(endpoint: Endpoint, affordable: number | undefined): Promise<number | undefined> {
    const task = this.#task;
    const cap = await holdTokens(this.#request.standing!, {
      earlier: this.#earlierTokens,
      bound: (promptTokens) => task.tokens(endpoint, affordable, promptTokens),
      count: () => task.countPrompt?.(endpoint),
      now: () => this.#parts.clock.now(),
    });
    return cap ?? affordable;
  }

  /** @returns why not, told of all that this request holds and asks for together */
  async #ask(charge: Charge): Promise<Refusal | undefined> {
    if (this.#reservation === undefined) {
      const answer = await this.#parts.spend.reserve(this.#budgets, charge, this.#request.startedAt);
      if (answer.refused) return answer;
      this.#reservation = answer;
      return undefined;
    }
    const { held } = this.#reservation;
    const missing = {
      creditNano: atLeastNothing(this.#earlier.creditNano + charge.creditNano - held.creditNano),
      byokNano: atLeastNothing(this.#earlier.byokNano + charge.byokNano - held.byokNano),
    };
    if (missing.creditNano + missing.byokNano === 0n) return undefined;
    const answer = await this.#reservation.extend(missing);
    if (answer === true) return undefined;
    // What attempts that cost nothing have left is this request's own to use.
    const own = chargeIn(answer.budget, held);
    return { ...answer, neededNano: answer.neededNano + own, leftNano: answer.leftNano + own };
  }
}

function atLeastNothing(nano: bigint): bigint {
  return nano > 0n ? nano : 0n;
}
