/**
 * Destinations that speak OTLP/HTTP with JSON bodies. They differ in the URL, the headers and a few attributes; each entry
 * names the vendor's documentation that it follows.
 */
import { type Attributes, JSON_TRACES, PROTOBUF_TRACES, type TraceEncoding } from '../../otlp/index.ts';
import { inputMessages, outputMessages, plainMessages } from '../otlp/messages.ts';
import { otlpBody, type Payload } from '../otlp/spans.ts';
import type { GenerationRecord } from '../record.ts';
import {
  baseUrl,
  basic,
  choice,
  type DestinationKind,
  type Field,
  type FullConfig,
  headerText,
  secret,
  text,
  USUAL_BATCH_UNITS,
  under,
  url,
  userText,
} from './kind.ts';

interface OtlpKind {
  type: string;
  fields: Readonly<Record<string, Field>>;
  method?(config: FullConfig): 'POST' | 'PUT';
  durable?: boolean;
  /** Default JSON. */
  encoding?: TraceEncoding;
  url(members: Readonly<Record<string, string>>): string;
  headers?(members: Readonly<Record<string, string>>): Record<string, string>;
  payload?(members: Readonly<Record<string, string>>): Omit<Payload, 'encoding'>;
  /** Default USUAL_BATCH_UNITS. */
  batchUnits?: number;
}

/** Marks a payload that tests the connection. */
const TEST_HEADER = { 'x-test-connection': 'true' };

export function otlpKind(kind: OtlpKind): DestinationKind {
  const request = (config: FullConfig, body: Buffer, headers: Record<string, string> = {}) => ({
    url: kind.url(config.members),
    method: kind.method?.(config) ?? 'POST',
    headers: {
      'content-type': (kind.encoding ?? JSON_TRACES).contentType,
      ...config.headers,
      ...kind.headers?.(config.members),
      ...headers,
    },
    body,
  });
  const bodyOf = ({ members }: FullConfig, records: readonly GenerationRecord[], version: string) =>
    otlpBody(records, version, { ...kind.payload?.(members), ...(kind.encoding && { encoding: kind.encoding }) });
  return {
    type: kind.type,
    fields: kind.fields,
    durable: kind.durable ?? false,
    batchUnits: kind.batchUnits ?? USUAL_BATCH_UNITS,
    probe: (config, { version }) => request(config, bodyOf(config, [], version), TEST_HEADER),
    requests: (config, records, { version }) => [request(config, bodyOf(config, records, version))],
  };
}

const NEW_RELIC_VALUE = 4_095;
/** Of characters that take up to three bytes. */
const NEW_RELIC_BATCH_UNITS = 256 * 1024;

export const OTLP_KINDS: readonly DestinationKind[] = [
  otlpKind({ type: 'otel-collector', fields: { endpoint: url() }, url: ({ endpoint }) => endpoint! }),
  // langfuse.com/integrations/native/opentelemetry
  otlpKind({
    type: 'langfuse',
    fields: {
      publicKey: userText(),
      secretKey: secret(),
      baseUrl: baseUrl({ default: 'https://us.cloud.langfuse.com' }),
    },
    url: ({ baseUrl }) => under(baseUrl!, '/api/public/otel/v1/traces'),
    headers: ({ publicKey, secretKey }) => ({
      authorization: basic(publicKey!, secretKey!),
      'x-langfuse-ingestion-version': '4',
    }),
    payload: () => ({ span: langfuse }),
  }),
  // grafana.com/docs/grafana-cloud/send-data/otlp
  otlpKind({
    type: 'grafana',
    fields: {
      instanceId: userText(),
      apiKey: secret(),
      baseUrl: baseUrl({ default: 'https://otlp-gateway-prod-us-west-0.grafana.net' }),
    },
    url: ({ baseUrl }) => under(baseUrl!, '/otlp/v1/traces'),
    headers: ({ instanceId, apiKey }) => ({ authorization: basic(instanceId!, apiKey!) }),
  }),
  // arize.com/docs/ax: OpenInference attributes in place of those of GenAI
  otlpKind({
    type: 'arize',
    fields: {
      apiKey: secret(),
      spaceKey: secret(),
      modelId: text(),
      baseUrl: baseUrl({ default: 'https://otlp.arize.com' }),
    },
    url: ({ baseUrl }) => under(baseUrl!, '/v1/traces'),
    // The names of the documentation, and the earlier ones.
    headers: ({ apiKey, spaceKey }) => ({
      'arize-api-key': apiKey!,
      'arize-space-id': spaceKey!,
      api_key: apiKey!,
      space_id: spaceKey!,
    }),
    payload: ({ modelId }) => ({
      resource: { model_id: modelId, 'openinference.project.name': modelId },
      span: openInference,
    }),
  }),
  // braintrust.dev/docs/integrations/sdk-integrations/opentelemetry
  otlpKind({
    type: 'braintrust',
    fields: {
      apiKey: secret(),
      projectId: headerText(),
      baseUrl: baseUrl({ default: 'https://api.braintrust.dev' }),
    },
    url: ({ baseUrl }) => under(baseUrl!, '/otel/v1/traces'),
    headers: ({ apiKey, projectId }) => ({
      authorization: `Bearer ${apiKey}`,
      'x-bt-parent': `project_id:${projectId}`,
    }),
    payload: () => ({ span: braintrust }),
  }),
  // docs.langchain.com/langsmith/trace-with-opentelemetry: the exporters that it names send Protocol Buffers
  otlpKind({
    type: 'langsmith',
    encoding: PROTOBUF_TRACES,
    fields: {
      apiKey: secret(),
      endpoint: baseUrl({ default: 'https://api.smith.langchain.com' }),
      project: headerText({ default: 'main' }),
      workspaceId: headerText({ optional: true }),
    },
    url: ({ endpoint }) => under(endpoint!, '/otel/v1/traces'),
    headers: ({ apiKey, project, workspaceId }) => ({
      'x-api-key': apiKey!,
      'langsmith-project': project!,
      ...(workspaceId !== undefined && { 'x-tenant-id': workspaceId }),
    }),
    payload: () => ({ span: langsmith }),
  }),
  // docs.wandb.ai/weave/guides/tracking/otel
  otlpKind({
    type: 'weave',
    encoding: PROTOBUF_TRACES,
    fields: {
      apiKey: secret(),
      entity: text(),
      project: text(),
      baseUrl: baseUrl({ default: 'https://trace.wandb.ai' }),
    },
    url: ({ baseUrl }) => under(baseUrl!, '/otel/v1/traces'),
    headers: ({ apiKey }) => ({ 'wandb-api-key': apiKey! }),
    payload: ({ entity, project }) => ({
      resource: { 'wandb.entity': entity, 'wandb.project': project },
      span: (record) => ({ ...contents(record), 'wandb.thread_id': record.sessionId }),
    }),
  }),
  // docs.newrelic.com/docs/opentelemetry/best-practices/opentelemetry-otlp: Protocol Buffers are recommended; values of
  // attributes have at most 4,095 characters, and a request at most 1 MB
  otlpKind({
    type: 'newrelic',
    encoding: PROTOBUF_TRACES,
    batchUnits: NEW_RELIC_BATCH_UNITS,
    payload: () => ({ longestValue: NEW_RELIC_VALUE }),
    fields: { licenseKey: secret(), region: choice(['us', 'eu'], 'us') },
    url: ({ region }) => `https://otlp.${region === 'eu' ? 'eu01.' : ''}nr-data.net/v1/traces`,
    headers: ({ licenseKey }) => ({ 'api-key': licenseKey! }),
  }),
  // comet.com/docs/opik/tracing/opentelemetry/overview: the exporters that it names send Protocol Buffers
  otlpKind({
    type: 'opik',
    encoding: PROTOBUF_TRACES,
    fields: { apiKey: secret(), workspace: headerText(), projectName: headerText() },
    url: () => 'https://www.comet.com/opik/api/v1/private/otel/v1/traces',
    headers: ({ apiKey, workspace, projectName }) => ({
      authorization: apiKey!,
      'comet-workspace': workspace!,
      projectname: projectName!,
    }),
  }),
  // docs.sentry.io/concepts/otlp/direct/traces
  otlpKind({
    type: 'sentry',
    fields: {
      dsn: secret({
        pattern: {
          matches: /^https?:\/\/[0-9a-z]+@[^/@\s]+\/\S*\d$/i,
          says: 'must be a DSN: https://<key>@<host>/<project>',
        },
      }),
      otlpEndpoint: url(),
    },
    url: ({ otlpEndpoint }) => otlpEndpoint!,
    headers: ({ dsn }) => ({
      'x-sentry-auth': `sentry sentry_key=${dsn!.slice(dsn!.indexOf('//') + 2, dsn!.indexOf('@'))}`,
    }),
  }),
];

/** Contents by the names that GenAI conventions had before messages, which LangSmith and Weave read. */
function contents({ input, output }: GenerationRecord): Attributes {
  return { 'gen_ai.prompt': input, 'gen_ai.completion': output };
}

/** Each member of the metadata as an attribute with this prefix. */
function prefixed(prefix: string, { metadata }: GenerationRecord): Attributes {
  const texts = Object.entries(metadata).map(([name, value]) => [
    prefix + name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return Object.fromEntries(texts);
}

/** Metadata under this prefix can be filtered. */
function langfuse(record: GenerationRecord): Attributes {
  return { 'langfuse.trace.name': record.traceName, ...prefixed('langfuse.trace.metadata.', record) };
}

/** Contents and metadata are what Braintrust shows of a span. */
function braintrust({ input, output, finishReason, metadata }: GenerationRecord): Attributes {
  return {
    'braintrust.span_attributes': '{"type":"llm"}',
    'braintrust.input_json': input === null ? undefined : JSON.stringify(plainMessages(inputMessages(input))),
    'braintrust.output_json':
      output === null ? undefined : JSON.stringify(plainMessages(outputMessages(output, finishReason))),
    'braintrust.metadata': Object.keys(metadata).length === 0 ? undefined : JSON.stringify(metadata),
  };
}

/** Runs with the same `session_id` in their metadata are a thread (docs.langchain.com/langsmith/threads). */
function langsmith(record: GenerationRecord): Attributes {
  return {
    ...contents(record),
    'langsmith.span.kind': record.operation === 'embeddings' ? 'embedding' : 'llm',
    'langsmith.trace.name': record.traceName,
    ...prefixed('langsmith.metadata.', record),
    ...(record.sessionId !== null && { 'langsmith.metadata.session_id': record.sessionId }),
  };
}

/** Attributes of OpenInference, the conventions of Arize. */
function openInference({ model, usage, input, output, metadata }: GenerationRecord): Attributes {
  return {
    'openinference.span.kind': 'LLM',
    'llm.model_name': model,
    'llm.token_count.prompt': usage?.prompt,
    'llm.token_count.completion': usage?.completion,
    'llm.token_count.total': usage && usage.prompt + usage.completion,
    'input.value': input,
    'input.mime_type': input === null ? undefined : 'application/json',
    'output.value': output,
    'output.mime_type': output === null ? undefined : 'application/json',
    metadata: Object.keys(metadata).length === 0 ? undefined : JSON.stringify(metadata),
  };
}
