/**
 * What one request holds of budgets and rate limits while its attempts run: the bound of each attempt before it is sent, on
 * top of those of earlier ones that may have cost something (design, promise 2).
 */
import type { Nano } from '../base/money.ts';
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
   * promise away from every limit, which is the rule. Throws or rejects with GatewayError 402, 403 or 429.
   */
  hold(candidate: Candidate): undefined | Promise<number | undefined> {
    const bound = this.#boundOf(candidate);
    const refusal = this.#ask(chargeOf(candidate, bound));
    if (refusal !== undefined) return this.#holdFewer(candidate, bound, refusal);
    return this.#holdTokens(candidate.endpoint, undefined);
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

  /** Undefined where it does not matter what the attempt could cost; it then needs no price. */
  #boundOf({ endpoint, own }: Candidate): CostBound | undefined {
    const budgets = this.#budgets;
    // What a customer's own key spends may be nobody's concern.
    const matters = own === undefined ? budgets.length > 0 : budgets.some(({ includeByok }) => includeByok);
    return matters ? this.#task.bound(endpoint) : undefined;
  }

  async #holdFewer(
    candidate: Candidate,
    byBytes: CostBound | undefined,
    answer: Refusal | Promise<Refusal | undefined>,
  ): Promise<number | undefined> {
    const refusal = await answer;
    const affordable =
      refusal === undefined || byBytes === undefined ? undefined : await this.#reserve(candidate, byBytes, refusal);
    return (await this.#holdTokens(candidate.endpoint, affordable)) ?? affordable;
  }

  /** The output cap with which budgets that refused the largest bound take the attempt; undefined for none. */
  async #reserve(candidate: Candidate, byBytes: CostBound, first: Refusal): Promise<number | undefined> {
    let bound = byBytes;
    let refusal = first;
    // A token may be many bytes: where they decide, the tokens themselves are counted.
    const counted = await this.#task.countPrompt?.(candidate.endpoint);
    if (counted !== undefined) {
      bound = this.#task.bound(candidate.endpoint, counted);
      const answer = await this.#ask(chargeOf(candidate, bound));
      if (answer === undefined) return undefined;
      refusal = answer;
    }
    return this.#affordable(candidate, bound, refusal);
  }

  /** The output that every budget pays for: each that refuses leaves less of it. Throws GatewayError 402 for too little. */
  async #affordable(candidate: Candidate, bound: CostBound, refusal: Refusal): Promise<number | undefined> {
    let { budget, leftNano }: Refusal = refusal;
    for (let asked = 0; asked < this.#budgets.length; asked++) {
      const affordable = bound.within(atLeastNothing(leftNano - chargeIn(budget, this.#earlier)));
      if (affordable === undefined) break;
      const answer = await this.#ask(chargeOf(candidate, affordable));
      if (answer === undefined) return affordable.capOutputTokens;
      ({ budget, leftNano } = answer);
    }
    throw refusalError(refusal);
  }

  /** The same for tokens of rate limits; `cap` is the one that stands already. */
  #holdTokens(endpoint: Endpoint, cap: number | undefined): undefined | Promise<number | undefined> {
    const { standing } = this.#request;
    if (standing === undefined || !standing.countsTokens) return undefined;
    return holdTokens(standing, {
      task: this.#task,
      endpoint,
      cap,
      earlier: this.#earlierTokens,
      clock: this.#parts.clock,
    });
  }

  /** @returns why not, told of all that this request holds and asks for together */
  #ask(charge: Charge): undefined | Refusal | Promise<Refusal | undefined> {
    if (this.#reservation === undefined) {
      const answer = this.#parts.spend.reserve(this.#budgets, charge, this.#request.startedAt);
      return answer instanceof Promise ? answer.then((known) => this.#reserved(known)) : this.#reserved(answer);
    }
    const { held } = this.#reservation;
    const missing = {
      creditNano: atLeastNothing(this.#earlier.creditNano + charge.creditNano - held.creditNano),
      byokNano: atLeastNothing(this.#earlier.byokNano + charge.byokNano - held.byokNano),
    };
    if (missing.creditNano + missing.byokNano === 0n) return undefined;
    const answer = this.#reservation.extend(missing);
    return answer instanceof Promise ? answer.then((known) => extended(known, held)) : extended(answer, held);
  }

  #reserved(answer: Reservation | Refusal): Refusal | undefined {
    if (answer.refused) return answer;
    this.#reservation = answer;
    return undefined;
  }
}

function extended(answer: true | Refusal, held: Charge): Refusal | undefined {
  if (answer === true) return undefined;
  // What attempts that cost nothing have left is this request's own to use.
  const own = chargeIn(answer.budget, held);
  return { ...answer, neededNano: answer.neededNano + own, leftNano: answer.leftNano + own };
}

function chargeOf({ own }: Candidate, bound: { nano: Nano } | undefined): Charge {
  if (bound === undefined) return NOTHING;
  return own === undefined ? { creditNano: bound.nano, byokNano: 0n } : { creditNano: 0n, byokNano: bound.nano };
}

function atLeastNothing(nano: bigint): bigint {
  return nano > 0n ? nano : 0n;
}
