/** The response object of replies and of the events around them. */
import type { GatewayError } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { messageOf } from '../chat/encode-failure.ts';
import type { Finish } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf } from '../conversation/fields.ts';
import type { Closing, Stamp } from '../conversation/format.ts';
import { type Renewal, renewed } from '../conversation/renewal.ts';
import { serverToolName } from '../server-tools/index.ts';
import { encodeUsage } from './usage.ts';

/**
 * Request members that the response repeats, with defaults for absent ones. Our own members are not repeated, because
 * strict clients know only the vendor's.
 */
export const ECHOED: Readonly<Record<string, unknown>> = {
  background: false,
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
};

/** Objects merged with their defaults, so that a client that parses strictly finds every member. */
const OBJECTS = ['reasoning', 'text'];

export function echo(document: JsonDocument): Record<string, unknown> {
  const repeated: Fields = { ...ECHOED };
  for (const { key } of document.members) {
    if (!(key in ECHOED)) continue;
    const value = document.member(key);
    if (value === null || value === undefined) continue;
    repeated[key] = OBJECTS.includes(key) ? { ...fieldsOf(ECHOED[key]), ...fieldsOf(value) } : value;
  }
  repeated['tools'] = listOf(repeated['tools']).map(withoutSecrets);
  return repeated;
}

/**
 * Credentials that the client sends to an MCP server. Answers are stored and forwarded, so they do not repeat these.
 */
function withoutSecrets(tool: unknown): unknown {
  const { type, parameters, ...members } = fieldsOf(tool);
  if (type !== 'mcp' && serverToolName(tool, 'responses') !== 'svc:mcp') return tool;
  const { authorization: _, headers: _headers, ...shown } = members;
  if (!isFields(parameters)) return { type, ...shown };
  const { authorization: _token, headers: _more, ...settings } = parameters;
  return { type, ...shown, parameters: settings };
}

/** The response id derived from the generation id. */
export function responseId(generation: string): string {
  return `resp_${generation.replace(/^gen-/, '')}`;
}

/** Renews a response, or an event around one, for a cached replay. Item ids stay: events refer to them. */
export function renew(json: string, { id, created, metadataKey }: Renewal): string {
  const time = String(created);
  const members = {
    id: () => JSON.stringify(responseId(id)),
    created_at: () => time,
    completed_at: (before: string) => (before === 'null' ? before : time),
  };
  return renewed(json, { members, nested: 'response', metadataKey });
}

export interface ResponseState {
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  output: readonly unknown[];
  created: number;
  serviceTier?: string | null;
  /** Why the response is incomplete. */
  reason?: 'max_output_tokens' | 'content_filter';
  error?: GatewayError;
}

/** `closing` is set for a finished response. */
export function responseOf(stamp: Stamp, state: ResponseState, closing?: Closing): Fields {
  const { status, error, reason } = state;
  const response: Fields = {
    id: responseId(stamp.id),
    object: 'response',
    created_at: state.created,
    completed_at: status === 'completed' ? (closing?.completed ?? null) : null,
    status,
    error: error === undefined ? null : errorField(error),
    incomplete_details: reason === undefined ? null : { reason },
    model: stamp.model,
    provider: stamp.provider,
    output: state.output,
    ...(stamp.echo?.() ?? ECHOED),
    service_tier: state.serviceTier ?? null,
    usage: closing?.usage === undefined ? null : encodeUsage(closing.usage, closing.cost),
  };
  if (error !== undefined) response['error_type'] = error.type;
  if (closing?.metadata !== undefined && error?.status !== 500) {
    response[closing.metadata.key] = closing.metadata.value;
  }
  return response;
}

/** Status of a reply that did not fail. */
export function endOf(finish: Finish): Pick<ResponseState, 'status' | 'reason'> {
  if (finish.unified === 'length') return { status: 'incomplete', reason: 'max_output_tokens' };
  if (finish.unified === 'content_filter') return { status: 'incomplete', reason: 'content_filter' };
  return { status: 'completed' };
}

/** The error code of this format; a context overflow has OpenAI's code. */
export function errorCode(error: GatewayError): string {
  switch (error.type) {
    case 'rate_limit_exceeded':
      return 'rate_limit_exceeded';
    case 'context_length_exceeded':
      return 'context_length_exceeded';
    case 'invalid_request':
    case 'unprocessable':
      return 'invalid_prompt';
    case 'content_policy_violation':
      return 'image_content_policy_violation';
    default:
      return 'server_error';
  }
}

function errorField(error: GatewayError): Fields {
  return { code: errorCode(error), message: messageOf(error) };
}

const LIMITS = new Set(['context_length_exceeded', 'max_tokens_exceeded', 'token_limit_exceeded', 'string_too_long']);

/** A limit reached in the middle of a reply makes it incomplete, not failed. */
export function isLimit(error: GatewayError, output: readonly unknown[]): boolean {
  return output.length > 0 && LIMITS.has(error.type);
}
