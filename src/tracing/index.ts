/**
 * Traces of the gateway itself, for the operator (`OTEL_EXPORTER_OTLP_ENDPOINT`): a span for each HTTP request, below it the
 * stages of an inference request and its calls to upstreams, which get the trace context of W3C. Loaded only if the
 * operator has set it.
 *
 *     trace-context     the headers `traceparent` and `tracestate`
 *     request-trace     the stages and calls of one request, in plain numbers
 *     spans             the same as spans
 *     tracer            samples, encodes and sends in the background; bounded, so that a dead collector costs nothing
 *
 * Not here: the records that customers get of their generations (`destinations/`), and metrics (`observability/`).
 */
export type { AttemptTrace, RequestTrace } from './request-trace.ts';
export type { Tracer } from './tracer.ts';
export { startTracer } from './tracer.ts';
