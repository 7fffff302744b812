/**
 * Ramp AI usage tracking (docs.ramp.com/developer-api/v1/ai-usage): one event for each generation with tokens, cost and
 * attribution, never inputs or outputs. An event that arrives again with its id is counted once.
 */
import type { Outgoing } from '../../egress/index.ts';
import { SERVICE_NAME } from '../../otlp/index.ts';
import type { GenerationRecord } from '../record.ts';
import { type DestinationKind, type FullConfig, JSON_BODY, secret, USUAL_BATCH_UNITS, url } from './kind.ts';

const ROOT = 'https://api.ramp.com/developer/v1/ai-usage';
/** The default of the interface names a platform. The endpoint for platforms without one of their own is `unified`. */
const USUAL_BASE_URL = `${ROOT}/svc`;
const UNIFIED = `${ROOT}/unified`;
const SCHEMA_VERSION = '1.0';
const COST_DIGITS = 9;

export const ramp: DestinationKind = {
  type: 'ramp',
  fields: { apiKey: secret(), baseUrl: url({ default: USUAL_BASE_URL }) },
  durable: false,
  batchUnits: USUAL_BATCH_UNITS,
  probe: (config, { now }) => request(config, [testEvent(now)]),
  requests: (config, records) => [request(config, records.map(eventOf))],
};

function request({ members, headers }: FullConfig, events: readonly object[]): Outgoing {
  const { apiKey, baseUrl } = members;
  return {
    url: baseUrl === USUAL_BASE_URL ? UNIFIED : baseUrl!,
    method: 'POST',
    headers: { ...JSON_BODY, ...headers, authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ schema_version: SCHEMA_VERSION, events }),
  };
}

function eventOf(record: GenerationRecord): object {
  const { usage, sessionId, userId, metadata } = record;
  return {
    event_id: record.id,
    source: SERVICE_NAME,
    occurred_at: new Date(record.endedAt).toISOString(),
    provider: record.provider ?? 'none',
    model: record.model,
    usage: usageOf(usage),
    pricing_context: pricingOf(new Date(record.startedAt).toISOString()),
    reported_cost: costOf(record.cost),
    attribution: {
      ...(sessionId !== null && { session_id: sessionId }),
      ...(userId !== null && { user_id: userId }),
      turn_id: record.traceId,
      tags: {
        ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, textOf(value)])),
        api_key_name: record.keyName,
        operation: record.operation,
      },
    },
  };
}

function usageOf(usage: GenerationRecord['usage']): object {
  return {
    // Tokens of the cache have members of their own.
    input_tokens: usage === null ? 0 : usage.prompt - usage.cacheRead - usage.cacheWrite,
    output_tokens: usage?.completion ?? 0,
    cache_read_input_tokens: usage?.cacheRead ?? 0,
    cache_write_input_tokens: usage?.cacheWrite ?? 0,
    reasoning_output_tokens: usage?.reasoning ?? 0,
    // Required, although the documentation calls it optional.
    meters: [],
  };
}

/** What Ramp calculates a price from where no cost is reported. */
function pricingOf(startedAt: string): object {
  return { service_tier: 'standard', fast_mode: false, long_context: false, session_created_at: startedAt };
}

function costOf(usd: number): object {
  return { amount: decimal(usd), currency: 'USD', provenance: SERVICE_NAME, estimated: false };
}

/** Of no use and no cost. */
function testEvent(now: number): object {
  const at = new Date(now).toISOString();
  return {
    ...{ event_id: `connection-test-${now}`, source: SERVICE_NAME, occurred_at: at },
    ...{ provider: SERVICE_NAME, model: 'connection-test' },
    usage: usageOf(null),
    pricing_context: pricingOf(at),
    reported_cost: costOf(0),
    attribution: { tags: {} },
  };
}

/** Without an exponent. */
function decimal(usd: number): string {
  return usd.toFixed(COST_DIGITS).replace(/\.?0+$/, '');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
