/** A finished request as spans. Attributes follow the semantic conventions for HTTP and for generative AI. */
import { usdFromNano } from '../base/money.ts';
import type { FinishedExchange } from '../http/operation.ts';
import { GEN_AI, SpanKind, type SpanWriter } from '../otlp/index.ts';
import type { Generation } from '../spend/index.ts';
import type { AttemptTrace, RequestTrace } from './request-trace.ts';

const SERVER_ERROR = 500;

/** What the spans of a request are made of, once it is over. */
export interface FinishedRequest extends Pick<FinishedExchange, 'method' | 'path' | 'status' | 'closed' | 'requestId'> {
  readonly trace: RequestTrace;
  readonly row: Generation | undefined;
  readonly endedAt: number;
}

export function finishedRequest(
  trace: RequestTrace,
  { method, path, status, closed, requestId }: FinishedExchange,
  row: Generation | undefined,
): FinishedRequest {
  return { trace, row, endedAt: trace.now(), method, path, status, closed, requestId };
}

/** @returns how many */
export function addSpans(out: SpanWriter, finished: FinishedRequest): number {
  const { trace, endedAt } = finished;
  addRequest(out, finished);
  const { traceId, spanId: parentSpanId } = trace;
  for (const { stage: name, startedAt, endedAt } of trace.stages) {
    const spanId = trace.newSpanId();
    out.begin({ traceId, spanId, parentSpanId, name, kind: SpanKind.internal, startedAt, endedAt });
    out.end(null);
  }
  for (const attempt of trace.attempts) addAttempt(out, trace, attempt, endedAt);
  return 1 + trace.stages.length + trace.attempts.length;
}

function addRequest(out: SpanWriter, finished: FinishedRequest): void {
  const { trace, row, endedAt, method, path, status, closed, requestId } = finished;
  const { traceId, spanId, parent, startedAt, omitted } = trace;
  const parentSpanId = parent?.spanId ?? null;
  out.begin({ traceId, spanId, parentSpanId, name: `${method} ${path}`, kind: SpanKind.server, startedAt, endedAt });
  // Errors of the client are not errors of the server.
  const error = row?.error?.type ?? (status >= SERVER_ERROR ? String(status) : null);
  out.attribute('http.request.method', method);
  out.attribute('http.route', path);
  if (status !== 0) out.attribute('http.response.status_code', status);
  out.attribute('error.type', error);
  out.attribute('gatehouse.request.id', requestId);
  if (closed) out.attribute('gatehouse.cancelled', true);
  if (omitted > 0) out.attribute('gatehouse.omitted_spans', omitted);
  if (row !== undefined) {
    out.attribute('gatehouse.generation.id', row.id);
    out.attribute(GEN_AI.cost, usdFromNano(row.costNano + row.byokNano));
    if (row.latencyMs !== null) out.attribute(GEN_AI.timeToFirstChunk, row.latencyMs / 1_000);
  }
  out.end(error);
}

function addAttempt(
  out: SpanWriter,
  { traceId, spanId: parentSpanId }: RequestTrace,
  { spanId, called, startedAt, endedAt, outcome, status, usage }: AttemptTrace,
  endOfRequest: number,
): void {
  const name = `${called.operation} ${called.model}`;
  const times = { startedAt, endedAt: endedAt ?? endOfRequest };
  out.begin({ traceId, spanId, parentSpanId, name, kind: SpanKind.client, ...times });
  const error = outcome !== 'answered' && outcome !== 'given_up' ? outcome : null;
  out.attribute(GEN_AI.operation, called.operation);
  out.attribute(GEN_AI.provider, called.provider);
  out.attribute(GEN_AI.requestModel, called.upstreamModel);
  if (usage !== undefined) {
    out.attribute(GEN_AI.inputTokens, usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h);
    out.attribute(GEN_AI.outputTokens, usage.output);
  }
  out.attribute('http.response.status_code', status);
  out.attribute('error.type', error);
  out.attribute('gatehouse.attempt.outcome', outcome);
  out.end(error);
}
