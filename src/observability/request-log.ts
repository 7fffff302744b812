/**
 * One log line per finished request: the caller, the request, its outcome and its cost. Nothing of a prompt or an
 * answer, and of the key only its label and the beginning of its hash.
 */
import type { Caller } from '../access/index.ts';
import type { Level, Log } from '../base/log.ts';
import { usdFromNano } from '../base/money.ts';
import type { FinishedExchange } from '../http/operation.ts';
import type { Generation } from '../spend/index.ts';

/** Operations that machines poll. */
const PROBES: ReadonlySet<string> = new Set(['getHealth', 'getReadiness', 'getMetrics']);
const SHOWN_HASH_LENGTH = 12;

export class RequestLog {
  readonly #log: Log;
  readonly #share: number;
  #due = 0;

  /** @param share the share of successful requests that are logged; failed requests all are */
  constructor(log: Log, share: number) {
    this.#log = log;
    this.#share = share;
  }

  finished(exchange: FinishedExchange<Caller>, row: Generation | undefined): void {
    const { operation, status, closed, caller } = exchange;
    const failed = status >= 400 || closed || (row !== undefined && row.error !== null);
    if (!failed && !this.#isDue()) return;
    const probe = operation !== undefined && PROBES.has(operation.id);
    // One literal with all members, so that the log sees objects of one shape only.
    this.#log.often(probe && !failed ? 'debug' : levelOf(status, row), 'request', {
      method: exchange.method,
      path: exchange.path,
      status,
      duration_ms: tenths(exchange.durationMs),
      cancelled: closed || undefined,
      client: exchange.clientAddress,
      key: caller?.label,
      // The same prefix as in `gatehouse keys list`.
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

  /** True for the configured share of calls, evenly spread. */
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
  // A stream that broke off after its head was sent.
  return row !== undefined && row.error !== null ? 'error' : 'info';
}

function promptTokens(usage: NonNullable<Generation['usage']>): number {
  return usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h;
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
