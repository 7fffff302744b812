/** Decodes the validated body of `POST /chat/completions` into a conversation. */

import { readDeferral } from '../adapters/deferred-tools/index.ts';
import type {
  Conversation,
  FunctionTool,
  OutputFormat,
  ReasoningSettings,
  Settings,
  Tool,
  ToolChoice,
} from '../conversation/conversation.ts';
import { isEffort } from '../conversation/effort.ts';
import {
  type Fields,
  fieldsOf,
  fieldsOrUndefined,
  listOf,
  nonEmptyText,
  restOf,
  textOf,
} from '../conversation/fields.ts';
import { withoutNullKeywords } from '../conversation/plain-schema.ts';
import { decodeCache } from './content.ts';
import { decodeMessages } from './decode-message.ts';
import { CONVERSATION_FIELDS, GATEWAY_FIELDS, PLAIN_SETTINGS, serviceTier } from './fields.ts';

const ALL_FIELDS: ReadonlySet<string> = new Set([...GATEWAY_FIELDS, ...CONVERSATION_FIELDS]);

export function decode(value: unknown): Conversation {
  const body = fieldsOf(value);
  const conversation: Conversation = {
    messages: decodeMessages(listOf(body['messages'])),
    settings: decodeSettings(body),
  };
  const tools = [
    ...listOf(body['tools']),
    ...listOf(body['functions']).map((fn) => ({ type: 'function', function: fn })),
  ];
  if (tools.length > 0) conversation.tools = tools.map(decodeTool);
  const choice = decodeToolChoice(body['tool_choice'] ?? body['function_call']);
  if (choice !== undefined) conversation.toolChoice = choice;
  const deferred = readDeferral(body);
  if (deferred !== undefined) conversation.deferred = deferred;
  const reasoning = decodeReasoningSettings(body);
  if (reasoning !== undefined) conversation.reasoning = reasoning;
  const output = decodeOutput(fieldsOrUndefined(body['response_format']));
  if (output !== undefined) conversation.output = output;
  if (typeof body['n'] === 'number' && body['n'] > 1) conversation.choices = body['n'];
  const modalities = listOf(body['modalities']).filter((kind) => typeof kind === 'string');
  if (modalities.length > 0) conversation.modalities = modalities;
  if (present(body['audio'])) conversation.audio = body['audio'];
  if (present(body['image_config'])) conversation.imageConfig = body['image_config'];
  if (present(body['web_search_options'])) conversation.webSearch = body['web_search_options'];
  const cache = decodeCache({ cache_control: body['cache_control'] });
  if (cache !== undefined) conversation.cache = cache;
  const others = restOf(body, ALL_FIELDS);
  if (others !== undefined) conversation.extras = { chat: others };
  return conversation;
}

function present(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The client's output cap; `max_completion_tokens` wins over the older `max_tokens` (envoyproxy/ai-gateway#893). */
export function outputCap(body: Fields): number | undefined {
  const cap = body['max_completion_tokens'] ?? body['max_tokens'];
  return typeof cap === 'number' ? cap : undefined;
}

function decodeSettings(body: Fields): Settings {
  const settings: Record<string, unknown> = {};
  const cap = outputCap(body);
  if (cap !== undefined) settings['maxOutputTokens'] = cap;
  for (const [field, name] of PLAIN_SETTINGS) if (present(body[field])) settings[name] = body[field];
  const stop = body['stop'];
  if (typeof stop === 'string') settings['stop'] = [stop];
  else if (listOf(stop).length > 0) settings['stop'] = [...listOf(stop)];
  const tier = nonEmptyText(body['service_tier']);
  if (tier !== undefined) settings['serviceTier'] = serviceTier(tier);
  return settings as Settings;
}

const FUNCTION_TOOL: ReadonlySet<string> = new Set([
  'type',
  'function',
  'cache_control',
  'prompt_cache_breakpoint',
  'defer_loading',
]);

function decodeTool(value: unknown): Tool {
  const tool = fieldsOf(value);
  const definition = fieldsOrUndefined(tool['function']);
  if (tool['type'] !== 'function' || definition === undefined) return { type: 'opaque', origin: 'chat', value };
  const decoded: FunctionTool = { type: 'function', name: textOf(definition['name']) };
  const description = definition['description'];
  if (typeof description === 'string') decoded.description = description;
  if (present(definition['parameters'])) decoded.parameters = withoutNullKeywords(definition['parameters']);
  const { strict } = definition;
  if (typeof strict === 'boolean' || strict === null) decoded.strict = strict;
  if (tool['defer_loading'] === true) decoded.deferred = true;
  const cache = decodeCache(tool) ?? decodeCache(definition);
  if (cache !== undefined) decoded.cache = cache;
  const others = restOf(tool, FUNCTION_TOOL);
  if (others !== undefined) decoded.extras = { chat: others };
  return decoded;
}

function decodeToolChoice(value: unknown): ToolChoice | undefined {
  if (value === 'auto' || value === 'none' || value === 'required') return { mode: value };
  const choice = fieldsOrUndefined(value);
  if (choice === undefined) return undefined;
  const name =
    textOf(fieldsOrUndefined(choice['function'])?.['name']) ||
    (choice['type'] === undefined ? textOf(choice['name']) : '');
  return name === '' ? { mode: 'opaque', origin: 'chat', value } : { mode: 'tool', name };
}

const REASONING: ReadonlySet<string> = new Set(['enabled', 'effort', 'max_tokens', 'exclude', 'summary']);

/** Decodes `reasoning`, its shorthand `reasoning_effort` and the older `include_reasoning`. */
export function decodeReasoningSettings(body: Fields): ReasoningSettings | undefined {
  const reasoning = fieldsOf(body['reasoning']);
  const settings: ReasoningSettings = {};
  const effort = reasoning['effort'] ?? body['reasoning_effort'];
  if (isEffort(effort)) settings.effort = effort;
  if (typeof reasoning['max_tokens'] === 'number') settings.budgetTokens = reasoning['max_tokens'];
  if (typeof reasoning['enabled'] === 'boolean') settings.enabled = reasoning['enabled'];
  if (typeof reasoning['exclude'] === 'boolean') settings.exclude = reasoning['exclude'];
  else if (body['include_reasoning'] === false) settings.exclude = true;
  const { summary } = reasoning;
  if (summary === 'auto' || summary === 'concise' || summary === 'detailed') settings.summary = summary;
  const others = restOf(reasoning, REASONING);
  if (others !== undefined) settings.extras = { chat: others };
  return Object.keys(settings).length === 0 ? undefined : settings;
}

function decodeOutput(format: Fields | undefined): OutputFormat | undefined {
  switch (format?.['type']) {
    case 'text':
      return { type: 'text' };
    case 'json_object':
      return { type: 'json' };
    case 'python':
      return { type: 'python' };
    case 'grammar':
      return { type: 'grammar', grammar: textOf(format['grammar']) };
    case 'json_schema': {
      const given = fieldsOf(format['json_schema']);
      const output: OutputFormat = { type: 'schema' };
      if (typeof given['name'] === 'string') output.name = given['name'];
      if (typeof given['description'] === 'string') output.description = given['description'];
      if (present(given['schema'])) output.schema = withoutNullKeywords(given['schema']);
      if (typeof given['strict'] === 'boolean' || given['strict'] === null) output.strict = given['strict'];
      return output;
    }
    default:
      return undefined;
  }
}
