/** The turns of an answer before the current one, and the tools that the gateway runs between them: what they cost. */
import { type Metered, type NestedCost, sumOfTurns } from '../accounting/meter.ts';
import { ToolAccount } from '../accounting/tool-account.ts';
import { tokensOf } from '../admission/rate-limits.ts';
import type { RequestReservation } from '../admission/reservation.ts';
import type { RequestContext } from '../context.ts';
import { askNested, type Serve } from '../nested.ts';
import type { InferenceParts } from '../parts.ts';
import type { PipelineStage } from '../plugins/plugin.ts';
import type { LoopRunning } from './turn-loop.ts';

export class EarlierTurns {
  readonly #reservation: RequestReservation;
  readonly #serve: Serve;
  readonly #turns: Metered[] = [];
  #tools: ToolAccount | undefined;
  #stop: AbortController | undefined;

  /**
   * @param serve sends the requests that tools make
   * @param tools that were paid before the first turn
   */
  constructor(reservation: RequestReservation, serve: Serve, tools?: ToolAccount) {
    this.#reservation = reservation;
    this.#serve = serve;
    this.#tools = tools;
  }

  get count(): number {
    return this.#turns.length;
  }

  /** What the tools did, for the routing metadata. */
  get stage(): PipelineStage | undefined {
    return this.#tools?.stage;
  }

  add(turn: Metered): void {
    this.#turns.push(turn);
  }

  /** The last of them ends the answer. */
  takeBack(): void {
    this.#turns.pop();
  }

  /** The sum of all turns and tools so far. @param current cost of the current turn */
  with(current: Metered | null): Metered | null {
    const tools = this.#tools?.metered;
    return sumOfTurns(tools === undefined ? this.#turns : [tools, ...this.#turns], current);
  }

  /**
   * What the tools of a turn may use.
   * @param advanced the answer has output that the client may see before the tools have ended
   * @param changed the sum has changed
   */
  running(
    context: RequestContext,
    parts: InferenceParts,
    { advanced, changed }: { advanced(): void; changed(): void },
  ): LoopRunning {
    this.#tools ??= new ToolAccount(this.#reservation);
    const tools = this.#tools;
    tools.changed = changed;
    this.#stop ??= new AbortController();
    const { signal } = this.#stop;
    return {
      request: context.request,
      parts,
      signal,
      spending: tools,
      ask: (body, signal, operation = 'chat') => {
        const { request } = context;
        const charged = (cost: NestedCost) => tools.nested(cost);
        return askNested(body, { operation, request, signal, serve: this.#serve, parts, charged });
      },
      onEnd(run) {
        if (signal.aborted) run();
        else signal.addEventListener('abort', run, { once: true });
      },
      found: (hits) => context.addHits(hits),
      advanced,
      spent: () => {
        const { usage, costNano, byokNano, nested } = this.with(null)!;
        const tools = nested === undefined ? 0n : nested.nano + nested.byokNano;
        return { tokens: tokensOf(usage), costNano: costNano + byokNano + tools };
      },
    };
  }

  /** Aborts the tools that are running. */
  stop(): void {
    this.#stop?.abort();
  }
}
