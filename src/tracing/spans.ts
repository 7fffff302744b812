/** A finished request as spans. Attributes follow the semantic conventions for HTTP and for generative AI. */
import { usdFromNano } from '../base/money.ts';
import type { FinishedExchange } from '../http/operation.ts';
import { type Attributes, GEN_AI, type Span, SpanKind } from '../otlp/index.ts';
import type { Generation } from '../spend/index.ts';
import type { AttemptTrace, RequestTrace } from './request-trace.ts';

const SERVER_ERROR = 500;
const NOTHING: Attributes = {};

export function addSpans(
  add: (span: Span) => void,
  trace: RequestTrace,
  exchange: FinishedExchange,
  row: Generation | undefined,
): void {
  const { traceId, spanId, startedAt } = trace;
  const endedAt = trace.now();
  const { method, path, status } = exchange;
  add({
    traceId,
    spanId,
    parentSpanId: trace.parent?.spanId ?? null,
    name: `${method} ${path}`,
    kind: SpanKind.server,
    startedAt,
    endedAt,
    attributes: requestAttributes(trace, exchange, row),
    // Errors of the client are not errors of the server.
    error: row?.error?.type ?? (status >= SERVER_ERROR ? String(status) : null),
  });
  for (const stage of trace.stages) {
    add({
      traceId,
      spanId: trace.newSpanId(),
      parentSpanId: spanId,
      name: stage.stage,
      kind: SpanKind.internal,
      startedAt: stage.startedAt,
      endedAt: stage.endedAt,
      attributes: NOTHING,
      error: null,
    });
  }
  for (const attempt of trace.attempts) add(attemptSpan(trace, attempt, endedAt));
}

function requestAttributes(
  { omitted }: RequestTrace,
  { method, path, status, closed, requestId }: FinishedExchange,
  row: Generation | undefined,
): Attributes {
  return {
    'http.request.method': method,
    'http.route': path,
    'http.response.status_code': status === 0 ? undefined : status,
    'error.type': row?.error?.type ?? (status >= SERVER_ERROR ? String(status) : undefined),
    'gatehouse.request.id': requestId,
    'gatehouse.cancelled': closed ? true : undefined,
    'gatehouse.omitted_spans': omitted === 0 ? undefined : omitted,
    'gatehouse.generation.id': row?.id,
    [GEN_AI.cost]: row === undefined ? undefined : usdFromNano(row.costNano + row.byokNano),
    [GEN_AI.timeToFirstChunk]: row === undefined || row.latencyMs === null ? undefined : row.latencyMs / 1_000,
  };
}

function attemptSpan({ traceId, spanId }: RequestTrace, attempt: AttemptTrace, endOfRequest: number): Span {
  const { called, outcome, usage } = attempt;
  const failed = outcome !== 'answered' && outcome !== 'given_up';
  return {
    traceId,
    spanId: attempt.spanId,
    parentSpanId: spanId,
    name: `${called.operation} ${called.model}`,
    kind: SpanKind.client,
    startedAt: attempt.startedAt,
    endedAt: attempt.endedAt ?? endOfRequest,
    attributes: {
      [GEN_AI.operation]: called.operation,
      [GEN_AI.provider]: called.provider,
      [GEN_AI.requestModel]: called.upstreamModel,
      [GEN_AI.inputTokens]: usage && usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h,
      [GEN_AI.outputTokens]: usage?.output,
      'http.response.status_code': attempt.status,
      'error.type': failed ? outcome : undefined,
      'gatehouse.attempt.outcome': outcome,
    },
    error: failed ? outcome : null,
  };
}
