/**
 * The budgets and rate-limit tokens that one request reserves. Before each attempt is sent, its bound is reserved on
 * top of the bounds of earlier attempts that may have cost something, and of the costs of earlier turns.
 */
import type { Nano } from '../../base/money.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { Usage } from '../../formats/conversation/conversation.ts';
import { addUsage } from '../../formats/conversation/usage.ts';
import { type Budget, type Charge, chargeIn, type Refusal, type Reservation, refusalError } from '../../spend/index.ts';
import type { Admission } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { Candidate } from '../routing/index.ts';
import type { CostBound, Task } from '../task.ts';
import { budgetsOf } from './cost-bounds.ts';
import { holdTokens, tokensOf } from './rate-limits.ts';

const NOTHING: Charge = { creditNano: 0n, byokNano: 0n };

export class RequestReservation {
  readonly #context: Admission;
  #task: Task | undefined;
  readonly #parts: InferenceParts;
  readonly #budgets: readonly Budget[];
  #reservation: Reservation | undefined;
  /** Bounds of failed attempts that may have cost something, and the costs of complete turns. */
  #earlier: Charge = NOTHING;
  #earlierTokens = 0;
  #earlierUsage: Usage | undefined;

  /** @param task undefined as long as only tools are charged (`ofTask`) */
  constructor(context: Admission, task: Task | undefined, parts: InferenceParts) {
    this.#context = context;
    this.#task = task;
    this.#parts = parts;
    this.#budgets = budgetsOf(context.request.caller, parts.accountBalanceNano());
  }

  /** Reserves for the turns of this task too from now on. */
  ofTask(task: Task): this {
    this.#task = task;
    return this;
  }

  /** The argument for `spend.begin`; set once `hold` succeeds. */
  get reservation(): Reservation {
    return this.#reservation!;
  }

  get earlier(): Charge {
    return this.#earlier;
  }

  /** Usage of the complete turns. */
  get earlierUsage(): Usage | undefined {
    return this.#earlierUsage;
  }

  /**
   * Reserves what an attempt could cost and use. Resolves with a smaller output cap if a nearly exhausted limit
   * requires one. Returns no promise if no limit is near, the usual case. Throws or rejects with GatewayError 402, 403
   * or 429.
   */
  hold(candidate: Candidate): undefined | Promise<number | undefined> {
    const bound = this.#boundOf(candidate);
    const refusal = this.#ask(chargeOf(candidate, bound));
    if (refusal !== undefined) return this.#holdFewer(candidate, bound, refusal);
    return this.#holdTokens(candidate.endpoint, undefined);
  }

  /** Keeps the bound of an attempt reserved that failed after the upstream may have worked on it. */
  keep(): void {
    if (this.#reservation) this.#earlier = this.#reservation.held;
    this.#earlierTokens = this.#context.rateLimitHold?.heldTokens ?? 0;
  }

  /** A turn of the answer is complete: only its cost stays reserved, not its bound. @param spent by this turn */
  turnEnded(spent: Charge, usage: Usage): void {
    this.#earlier = plus(this.#earlier, spent);
    this.#earlierTokens += tokensOf(usage);
    this.#earlierUsage = this.#earlierUsage === undefined ? usage : addUsage(this.#earlierUsage, usage);
  }

  /**
   * Reserves the cost of a tool on top of all that the request holds for its turns so far. Rejects with GatewayError 402
   * when a budget does not cover it.
   */
  async holdTool(nano: Nano): Promise<void> {
    if (nano === 0n) return;
    // Held at once, so that tools which run side by side are counted together.
    this.#earlier = { ...this.#earlier, creditNano: this.#earlier.creditNano + nano };
    const refusal = await this.#ask(NOTHING);
    if (refusal === undefined) return;
    this.toolEnded(nano, 0n);
    throw refusalError(refusal);
  }

  /** Releases what `holdTool` reserved beyond the cost. */
  toolEnded(held: Nano, spent: Nano): void {
    this.#earlier = { ...this.#earlier, creditNano: this.#earlier.creditNano - held + spent };
  }

  /** Releases a reservation that no generation was begun with. */
  release(): void {
    this.#reservation?.release();
  }

  /** Undefined if no budget counts the attempt's cost; the endpoint then needs no price. */
  #boundOf({ endpoint, byok }: Candidate): CostBound | undefined {
    const budgets = this.#budgets;
    // Spend on a BYOK credential counts only in budgets that include it.
    const matters = byok === undefined ? budgets.length > 0 : budgets.some(({ includeByok }) => includeByok);
    return matters ? this.#task!.bound(endpoint) : undefined;
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

  /** The output cap with which the budgets accept the attempt; undefined if no cap is needed. */
  async #reserve(candidate: Candidate, byBytes: CostBound, first: Refusal): Promise<number | undefined> {
    let bound = byBytes;
    let refusal = first;
    // A token may have many bytes, so count the exact tokens before refusing.
    const counted = await this.#task!.countPrompt?.(candidate.endpoint);
    if (counted !== undefined) {
      bound = this.#task!.bound(candidate.endpoint, counted);
      const answer = await this.#ask(chargeOf(candidate, bound));
      if (answer === undefined) return undefined;
      refusal = answer;
    }
    return this.#affordable(candidate, bound, refusal);
  }

  /**
   * The output that every budget pays for; each refusal leaves less. Throws GatewayError 402 when that is too little.
   */
  async #affordable(candidate: Candidate, bound: CostBound, refusal: Refusal): Promise<number | undefined> {
    let { budget, leftNano }: Refusal = refusal;
    for (let tries = 0; tries < this.#budgets.length; tries++) {
      const affordable = bound.within(atLeastZero(leftNano - chargeIn(budget, this.#earlier)));
      if (affordable === undefined) break;
      const answer = await this.#ask(chargeOf(candidate, affordable));
      if (answer === undefined) return affordable.capOutputTokens;
      ({ budget, leftNano } = answer);
    }
    throw refusalError(refusal);
  }

  /** The same for the tokens of rate limits. `cap` is the output cap found so far. */
  #holdTokens(endpoint: Endpoint, cap: number | undefined): undefined | Promise<number | undefined> {
    const { rateLimitHold: hold } = this.#context;
    if (hold === undefined || !hold.countsTokens) return undefined;
    return holdTokens(hold, {
      task: this.#task!,
      endpoint,
      cap,
      earlier: this.#earlierTokens,
      clock: this.#parts.clock,
    });
  }

  /** @returns the refusal; its amount is what this request holds already plus what it asks for now */
  #ask(charge: Charge): undefined | Refusal | Promise<Refusal | undefined> {
    if (this.#reservation === undefined) {
      const all = this.#earlier === NOTHING ? charge : plus(this.#earlier, charge);
      const answer = this.#parts.spend.reserve(this.#budgets, all, this.#context.request.startedAt);
      return answer instanceof Promise ? answer.then((known) => this.#reserved(known)) : this.#reserved(answer);
    }
    const { held } = this.#reservation;
    const missing = {
      creditNano: atLeastZero(this.#earlier.creditNano + charge.creditNano - held.creditNano),
      byokNano: atLeastZero(this.#earlier.byokNano + charge.byokNano - held.byokNano),
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

function plus(one: Charge, other: Charge): Charge {
  return { creditNano: one.creditNano + other.creditNano, byokNano: one.byokNano + other.byokNano };
}

function extended(answer: true | Refusal, held: Charge): Refusal | undefined {
  if (answer === true) return undefined;
  // What this request already holds, from attempts that cost nothing, is still available to it.
  const own = chargeIn(answer.budget, held);
  return { ...answer, neededNano: answer.neededNano + own, leftNano: answer.leftNano + own };
}

function chargeOf({ byok }: Candidate, bound: { nano: Nano } | undefined): Charge {
  if (bound === undefined) return NOTHING;
  return byok === undefined ? { creditNano: bound.nano, byokNano: 0n } : { creditNano: 0n, byokNano: bound.nano };
}

function atLeastZero(nano: bigint): bigint {
  return nano > 0n ? nano : 0n;
}
