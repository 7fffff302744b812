/** The variables of OpenTelemetry that the gateway reads. `TRACES` in a name is for traces alone, and wins. */
import type { Variable } from './environment.ts';

export const TRACING_VARIABLES: readonly Variable[] = [
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    fallback: '',
    meaning:
      'Base URL of an OTLP/HTTP collector, such as `http://localhost:4318`. Turns on [traces](../guides/observability.md#traces), which go to `/v1/traces` below it.',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    fallback: '',
    meaning: 'The whole URL that traces go to. Also turns them on.',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_HEADERS',
    fallback: '',
    meaning: 'Headers for the collector, as `name=value,name=value` with percent-encoded values.',
  },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_HEADERS', fallback: '', meaning: 'The same for traces alone.' },
  {
    name: 'OTEL_EXPORTER_OTLP_PROTOCOL',
    fallback: 'http/protobuf',
    meaning: '`http/protobuf` or `http/json`. `grpc` is not supported.',
  },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', fallback: '', meaning: 'The same for traces alone.' },
  {
    name: 'OTEL_EXPORTER_OTLP_TIMEOUT',
    fallback: '10000',
    meaning: 'Milliseconds for one delivery, from 1 to 60000.',
  },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', fallback: '', meaning: 'The same for traces alone.' },
  { name: 'OTEL_TRACES_EXPORTER', fallback: 'otlp', meaning: '`none` turns traces off; `otlp` is the only exporter.' },
  { name: 'OTEL_SDK_DISABLED', fallback: 'false', meaning: '`true` turns traces off.' },
  {
    name: 'OTEL_TRACES_SAMPLER',
    fallback: 'parentbased_always_on',
    meaning:
      '`always_on`, `always_off` or `traceidratio`. With the prefix `parentbased_`, the trace of the client decides if there is one.',
  },
  { name: 'OTEL_TRACES_SAMPLER_ARG', fallback: '1', meaning: 'The share of a `traceidratio` sampler, such as `0.01`.' },
  {
    name: 'OTEL_PROPAGATORS',
    fallback: 'tracecontext,baggage',
    meaning:
      'Without `tracecontext`, the trace context of clients is ignored and upstreams get none. Baggage is never sent.',
  },
  { name: 'OTEL_SERVICE_NAME', fallback: 'gatehouse', meaning: 'The name of the service in traces.' },
  {
    name: 'OTEL_RESOURCE_ATTRIBUTES',
    fallback: '',
    meaning: 'Further attributes of the service, as `name=value,name=value` with percent-encoded values.',
  },
];
