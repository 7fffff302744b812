/** The cost and the counts of the tools that the gateway ran for one request, which its row and its usage include. */
import { type Nano, usdFromNano } from '../../base/money.ts';
import type { Usage } from '../../formats/conversation/conversation.ts';
import type { RequestReservation } from '../admission/reservation.ts';
import type { PipelineStage } from '../plugins/plugin.ts';
import type { ToolSpending } from '../turns/gateway-tools.ts';
import type { Metered, NestedCost } from './meter.ts';

export class ToolAccount implements ToolSpending {
  readonly #reservation: RequestReservation;
  readonly #journal: (() => Promise<void>) | undefined;
  /** Called whenever the cost changes. */
  changed: () => void = () => {};
  /** Includes calls that are running: a request that ends before them is charged for them. */
  #costNano: Nano = 0n;
  /** The part of the cost that no reply has confirmed: of calls that are running or whose outcome is unknown. */
  #supposedNano: Nano = 0n;
  /** Cost of requests that tools have made. They have rows of their own, so this request's row leaves it out. */
  #nested: NestedCost | undefined;
  #requested = 0;
  #executed = 0;
  #searches = 0;
  #fetches = 0;

  /** @param journal records what is held, before it is spent. Absent: `changed` does */
  constructor(reservation: RequestReservation, journal?: () => Promise<void>) {
    this.#reservation = reservation;
    this.#journal = journal;
  }

  /** In USD, of all tools so far. */
  get costUsd(): number {
    return usdFromNano(this.#shownNano);
  }

  /** The entry in `pipeline`; undefined if no call was requested. */
  get stage(): PipelineStage | undefined {
    if (this.#requested === 0) return undefined;
    return {
      type: 'server_tools',
      name: 'server-tools',
      summary: `ran ${this.#executed} of ${this.#requested} ${this.#requested === 1 ? 'call' : 'calls'}`,
      data: { tool_calls_requested: this.#requested, tool_calls_executed: this.#executed },
      ...(this.#shownNano > 0n && { cost_usd: this.costUsd }),
    };
  }

  /** A search that no model asked for was made. */
  searched(): void {
    this.#searches += 1;
  }

  async hold(nano: Nano): Promise<void> {
    if (nano === 0n) return;
    await this.#reservation.holdTool(nano);
    try {
      await this.#journal?.();
    } catch (error) {
      this.#reservation.toolEnded(nano, 0n);
      throw error;
    }
    this.#costNano += nano;
    this.#supposedNano += nano;
    this.changed();
  }

  settle(held: Nano, spent: Nano): void {
    this.#supposedNano -= held;
    if (held === spent) return;
    this.#reservation.toolEnded(held, spent);
    this.#costNano += spent - held;
    this.changed();
  }

  /** A request that a tool made has cost this. */
  nested({ nano, byokNano }: NestedCost): void {
    const { nano: before = 0n, byokNano: byokBefore = 0n } = this.#nested ?? {};
    this.#nested = { nano: before + nano, byokNano: byokBefore + byokNano };
  }

  get #shownNano(): Nano {
    return this.#costNano + (this.#nested?.nano ?? 0n);
  }

  count({ executed, searches = 0, fetches = 0 }: Parameters<ToolSpending['count']>[0]): void {
    this.#requested += 1;
    if (executed) this.#executed += 1;
    this.#searches += searches;
    this.#fetches += fetches;
  }

  /**
   * As a turn without tokens; undefined before the first call. Tools are paid with credits, whatever credential the turns
   * use.
   */
  get metered(): Metered | undefined {
    const shownNano = this.#shownNano;
    const byokNano = this.#nested?.byokNano ?? 0n;
    if (this.#requested + this.#searches === 0 && shownNano === 0n) return undefined;
    const usage: Usage = {
      ...NO_TOKENS,
      toolCallsRequested: this.#requested,
      toolCallsExecuted: this.#executed,
      ...(this.#searches > 0 && { webSearches: this.#searches }),
      ...(this.#fetches > 0 && { webFetches: this.#fetches }),
    };
    const cost = usdFromNano(shownNano);
    return {
      usage,
      estimated: this.#supposedNano > 0n,
      costNano: this.#costNano,
      byokNano: 0n,
      ...(this.#nested && { nested: this.#nested }),
      cacheDiscountNano: null,
      cost: {
        cost: shownNano === 0n ? null : cost,
        is_byok: false,
        cost_details: {
          upstream_inference_cost: byokNano === 0n ? null : usdFromNano(byokNano),
          upstream_inference_prompt_cost: 0,
          upstream_inference_completions_cost: 0,
          server_tool_cost: cost,
        },
      },
    };
  }
}

const NO_TOKENS: Usage = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };
