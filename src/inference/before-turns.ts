/**
 * Slow work before the first turn: plugins that call other services, tools that have to be listed, and calls that the
 * client has approved. Meanwhile the client's stream is kept alive, and the work is aborted when the client disconnects
 * or the gateway shuts down.
 */
import { GatewayError } from '../base/errors.ts';
import type { NestedCost } from './accounting/meter.ts';
import { shuttingDown } from './answer/error-response.ts';
import type { RequestContext } from './context.ts';
import { askNested, type Serve } from './nested.ts';
import type { InferenceParts } from './parts.ts';
import type { Interruptible } from './requests-in-flight.ts';
import type { Route } from './routing/index.ts';
import type { Task } from './task.ts';
import { Abandoned } from './turns/dispatch.ts';
import type { ToolsRunning } from './turns/gateway-tools.ts';

/** The facilities that tools and plugins may use before the first turn. */
export type EarlyRunning = Omit<ToolsRunning, 'conversation'>;

export class EarlyWork implements Interruptible {
  readonly #context: RequestContext;
  readonly #parts: InferenceParts;
  readonly #serve: Serve;
  readonly #stop = new AbortController();

  constructor(context: RequestContext, parts: InferenceParts, serve: Serve) {
    this.#context = context;
    this.#parts = parts;
    this.#serve = serve;
  }

  /** Rejects with what the work throws, `Abandoned` for a client that has disconnected, or 503 at a shutdown. */
  async run<T>(work: (running: EarlyRunning) => Promise<T>): Promise<T> {
    const { signal } = this.#stop;
    const { sink, request } = this.#context;
    const stream = this.#context.answerStream(this.#parts);
    const slot = this.#parts.inFlight.add(this);
    sink.onClose(() => this.#abort(new Abandoned()));
    if (request.facts.stream) stream.keepAlive();
    try {
      return await work(this.#running);
    } finally {
      stream.quiet();
      this.#parts.inFlight.delete(this, slot);
      // biome-ignore lint/correctness/noUnsafeFinally: aborted work has no other outcome.
      if (signal.aborted) throw signal.reason;
    }
  }

  interrupt(): void {
    this.#abort(shuttingDown());
  }

  #abort(reason: Abandoned | GatewayError): void {
    this.#stop.abort(reason);
  }

  get #running(): EarlyRunning {
    const context = this.#context;
    const parts = this.#parts;
    return {
      request: context.request,
      parts,
      signal: this.#stop.signal,
      get spending() {
        return context.payingForTools(parts);
      },
      ask: (body, signal, operation = 'chat') => {
        const charged = (cost: NestedCost) => context.payingForTools(parts).nested(cost);
        return askNested(body, { operation, request: context.request, signal, serve: this.#serve, parts, charged });
      },
      onEnd: (run) => context.onEnd(run),
      found: (hits) => context.addHits(hits),
    };
  }
}

/**
 * Reserves the first turn for the first endpoint that limits and budgets allow, as the turn itself will. Rejects with
 * GatewayError 402, 403 or 429.
 */
export async function holdFirstTurn(
  context: RequestContext,
  task: Task,
  { candidates }: Route,
  parts: InferenceParts,
): Promise<void> {
  const reservation = context.prepaying(parts).reservation.ofTask(task);
  let refused: GatewayError | undefined;
  for (const candidate of candidates) {
    try {
      await reservation.hold(candidate);
      return;
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status >= 500) throw error;
      refused ??= error;
    }
  }
  if (refused !== undefined) throw refused;
}
