/**
 * One line of the log for each request that is over: who asked for what, how it ended and what it cost. Nothing of a prompt
 * or an answer, and no key but its label.
 */
import type { Caller } from '../access/index.ts';
import type { Level, Log } from '../base/log.ts';
import { usdFromNano } from '../base/money.ts';
import type { FinishedExchange } from '../http/operation.ts';
import type { Generation } from '../spend/index.ts';

/** Machines ask for these all day long. */
const PROBES: ReadonlySet<string> = new Set(['getHealth', 'getReadiness', 'getMetrics']);
const SHOWN_HASH_LENGTH = 12;

export class RequestLog {
  readonly #log: Log;
  readonly #share: number;
  #due = 0;

  /** @param share of the requests that went well that get a line; those that did not all do */
  constructor(log: Log, share: number) {
    this.#log = log;
    this.#share = share;
  }

  finished(exchange: FinishedExchange<Caller>, row: Generation | undefined): void {
    const { operation, status, closed, caller } = exchange;
    const failed = status >= 400 || closed || (row !== undefined && row.error !== null);
    if (!failed && !this.#isDue()) return;
    const probe = operation !== undefined && PROBES.has(operation.id);
    // One literal with all members, so that the log meets objects of one shape only.
    this.#log.often(probe && !failed ? 'debug' : levelOf(status, row), 'request', {
      method: exchange.method,
      path: exchange.path,
      status,
      duration_ms: tenths(exchange.durationMs),
      cancelled: closed || undefined,
      client: exchange.clientAddress,
      key: caller?.label,
      // As `gatehouse keys list` shows it.
      key_hash: caller?.keyHash.slice(0, SHOWN_HASH_LENGTH),
      generation: row?.id,
      model: row?.model,
      provider: row?.endpointId?.slice(0, row.endpointId.indexOf(':')),
      streamed: row?.streamed || undefined,
      cached: row === undefined || row.responseCacheSourceId === null ? undefined : true,
      prompt_tokens: row?.usage ? promptTokens(row.usage) : undefined,
      completion_tokens: row?.usage?.output,
      cost_usd: row === undefined ? undefined : usdFromNano(row.costNano),
      estimated: row?.estimated || undefined,
      first_token_ms: row?.latencyMs ?? undefined,
      attempts: row?.providerResponses.length,
      error: row?.error?.type,
      request_id: exchange.requestId,
    });
  }

  /** Every so many requests, evenly. */
  #isDue(): boolean {
    this.#due += this.#share;
    if (this.#due < 1) return false;
    this.#due -= 1;
    return true;
  }
}

function levelOf(status: number, row: Generation | undefined): Level {
  if (status >= 500) return 'error';
  if (status >= 400) return 'warn';
  // A stream that broke off behind its head.
  return row !== undefined && row.error !== null ? 'error' : 'info';
}

function promptTokens(usage: NonNullable<Generation['usage']>): number {
  return usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h;
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
