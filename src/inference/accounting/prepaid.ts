/**
 * Payments of a request before its first turn, such as for a search of the plugin `web`. The first payment opens the
 * request's generation, so that the journal has it if the process dies before an endpoint is called.
 */
import { type OpenGeneration, type Spend, unservedAttempt } from '../../spend/index.ts';
import type { RequestReservation } from '../admission/reservation.ts';
import type { RequestContext } from '../context.ts';
import { acceptedOf } from './record.ts';
import { ToolAccount } from './tool-account.ts';

export class Prepaid {
  readonly reservation: RequestReservation;
  readonly tools: ToolAccount;
  readonly #context: RequestContext;
  readonly #spend: Pick<Spend, 'begin'>;
  #opening: Promise<void> | undefined;
  #generation: OpenGeneration | undefined;

  constructor(context: RequestContext, reservation: RequestReservation, spend: Pick<Spend, 'begin'>) {
    this.#context = context;
    this.#spend = spend;
    this.reservation = reservation;
    this.tools = new ToolAccount(reservation, () => this.#journal());
  }

  /** Open until the row of the request settles it; undefined while nothing was paid. */
  get generation(): OpenGeneration | undefined {
    return this.#generation;
  }

  /** The generation, for a request that calls no endpoint. Rejects with GatewayError 503 as below. */
  async open(): Promise<OpenGeneration> {
    this.#opening ??= this.#open();
    await this.#opening;
    return this.#generation!;
  }

  /** Rejects with GatewayError 503 if the journal cannot be written. */
  async #journal(): Promise<void> {
    // Once an endpoint is asked, the call reports what tools have cost.
    if (this.#context.hasRow) return;
    this.#opening ??= this.#open();
    try {
      await this.#opening;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
    this.#generation?.attempt(this.#attempt());
  }

  async #open(): Promise<void> {
    // Only conversations have plugins and tools.
    const accepted = acceptedOf(this.#context, 'completions');
    this.#generation = await this.#spend.begin(accepted, this.#attempt(), this.reservation.reservation, () => true);
  }

  #attempt() {
    const { model, fallbackModels } = this.#context.request.facts;
    return unservedAttempt(model ?? fallbackModels[0] ?? '', this.reservation.earlier);
  }
}
