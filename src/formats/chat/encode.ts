/**
 * The conversation as a request to a service that speaks chat completions, in the service's dialect. Messages are encoded
 * one by one in order, so one more turn keeps the earlier ones byte for byte (except for `strictTemplate`, which merges).
 */
import { withBreakpoints } from '../conversation/cache-breakpoints.ts';
import type { Conversation, OutputFormat, Tool, ToolChoice } from '../conversation/conversation.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { namedProperties } from '../conversation/plain-schema.ts';
import { adaptMessages } from './adapt-messages.ts';
import { adaptParameters } from './adapt-parameters.ts';
import { encodeCache } from './content.ts';
import type { ChatDialect } from './dialect.ts';
import { encodeMessages } from './encode-message.ts';
import { encodeReasoning } from './encode-reasoning.ts';
import { PLAIN_SETTINGS } from './fields.ts';
import type { JsonObject } from './read.ts';
import { withRequiredThinking } from './required-thinking.ts';

/** Models behind a chat completions service whose vendor caches only what is marked, and how many marks it accepts. */
const CACHED_BY_MARK = /^~?anthropic\//;
const MOST_CACHE_MARKS = 4;

/** More would go on writing where the client wants an end, or be refused. */
const MOST_STOPS = 4;

export function encode(given: Conversation, target: EncodeTarget, losses: Losses): JsonObject {
  const dialect = target.dialect.chat ?? {};
  const marks = target.promptCaching !== undefined && dialect.cacheControl && CACHED_BY_MARK.test(target.model);
  const conversation = marks ? withBreakpoints(given, MOST_CACHE_MARKS) : given;
  const body: JsonObject = {
    model: target.model,
    messages: adaptMessages(
      encodeMessages(conversation.messages, { dialect, losses, origin: target.origin }),
      dialect,
      losses,
    ),
  };
  encodeTools(body, conversation, dialect, losses);
  const cap = outputCap(conversation.settings.maxOutputTokens, target);
  if (cap !== undefined) body[dialect.maxTokens ?? 'max_tokens'] = cap;
  encodeReasoning(
    body,
    conversation.reasoning,
    { cap: cap ?? target.maxOutputTokens, model: target.model },
    dialect,
    losses,
  );
  if (conversation.output !== undefined) body['response_format'] = encodeOutput(conversation.output);
  encodeSettings(body, conversation);
  if (target.stream) Object.assign(body, streamFields(dialect));
  const userField = dialect.userField ?? 'user';
  if (userField !== 'none') body[userField] = target.user;
  if (conversation.cache !== undefined && dialect.cacheControl) body['cache_control'] = encodeCache(conversation.cache);
  encodeExtras(body, conversation, losses);
  const changes = adaptParameters({ has: (key) => key in body, read: (key) => body[key] }, target, losses);
  for (const [key, value] of changes) {
    if (value === undefined) delete body[key];
    else body[key] = value;
  }
  const messages = body['messages'] as JsonObject[];
  body['messages'] = withRequiredThinking(messages, (key) => body[key], dialect, target.model);
  return body;
}

/** The output cap to send, in the upstream's bounds; undefined when nobody gave one. */
export function outputCap(asked: number | undefined, target: EncodeTarget): number | undefined {
  const { capOutputTokens, maxOutputTokens } = target;
  if (asked === undefined && capOutputTokens === undefined) return undefined;
  const cap = Math.min(asked ?? Infinity, capOutputTokens ?? Infinity, maxOutputTokens ?? Infinity);
  return Math.max(cap, target.dialect.chat?.minMaxTokens ?? 1);
}

export function streamFields(dialect: ChatDialect): JsonObject {
  return dialect.streamUsage === false ? { stream: true } : { stream: true, stream_options: { include_usage: true } };
}

function encodeTools(body: JsonObject, conversation: Conversation, dialect: ChatDialect, losses: Losses): void {
  const { tools, toolChoice, settings } = conversation;
  if (tools === undefined || tools.length === 0) {
    // Services refuse a choice among no tools; asking for none or for the default says nothing then.
    if (toolChoice !== undefined && toolChoice.mode !== 'none' && toolChoice.mode !== 'auto') {
      losses.drop('tool_choice', 'there are no tools to choose from');
    }
    return;
  }
  body['tools'] = tools.map((tool) => encodeTool(tool, dialect));
  if (toolChoice !== undefined) body['tool_choice'] = encodeToolChoice(toolChoice);
  if (settings.parallelToolCalls !== undefined) body['parallel_tool_calls'] = settings.parallelToolCalls;
}

function encodeTool(tool: Tool, dialect: ChatDialect): unknown {
  if (tool.type === 'opaque') {
    if (tool.origin !== 'chat') throw new Uncarried('tools', `a tool of the ${tool.origin} form has no place in chat`);
    return tool.value;
  }
  return {
    type: 'function',
    function: {
      name: tool.name,
      ...(tool.description !== undefined && { description: tool.description }),
      ...(tool.parameters !== undefined && { parameters: namedProperties(tool.parameters) }),
      ...(tool.strict !== undefined && { strict: tool.strict }),
    },
    ...(tool.cache !== undefined && dialect.cacheControl && { cache_control: encodeCache(tool.cache) }),
    ...tool.extras?.chat,
  };
}

function encodeToolChoice(choice: ToolChoice): unknown {
  if (choice.mode === 'tool') return { type: 'function', function: { name: choice.name } };
  if (choice.mode !== 'opaque') return choice.mode;
  if (choice.origin !== 'chat') throw new Uncarried('tool_choice', `a choice of the ${choice.origin} form`);
  return choice.value;
}

function encodeOutput(output: OutputFormat): JsonObject {
  switch (output.type) {
    case 'json':
      return { type: 'json_object' };
    case 'grammar':
      return { type: 'grammar', grammar: output.grammar };
    case 'schema':
      return {
        type: 'json_schema',
        json_schema: {
          // The form asks for a name; the other forms have none.
          name: output.name ?? 'answer',
          ...(output.description !== undefined && { description: output.description }),
          ...(output.schema !== undefined && { schema: output.schema }),
          ...(output.strict !== undefined && { strict: output.strict }),
        },
      };
    default:
      return { type: output.type };
  }
}

function encodeSettings(body: JsonObject, conversation: Conversation): void {
  const { settings } = conversation;
  for (const [field, name] of PLAIN_SETTINGS) {
    if (settings[name] !== undefined && name !== 'parallelToolCalls') body[field] = settings[name];
  }
  if (settings.stop !== undefined && settings.stop.length > 0) {
    if (settings.stop.length > MOST_STOPS) {
      throw new Uncarried('stop_sequences', `chat completions take ${MOST_STOPS} stop texts at most`);
    }
    body['stop'] = settings.stop;
  }
  if (settings.serviceTier !== undefined) body['service_tier'] = settings.serviceTier;
  if (conversation.choices !== undefined) body['n'] = conversation.choices;
  if (conversation.modalities !== undefined) body['modalities'] = conversation.modalities;
  if (conversation.audio !== undefined) body['audio'] = conversation.audio;
  if (conversation.imageConfig !== undefined) body['image_config'] = conversation.imageConfig;
  if (conversation.webSearch !== undefined) body['web_search_options'] = conversation.webSearch;
}

function encodeExtras(body: JsonObject, conversation: Conversation, losses: Losses): void {
  for (const [format, extras] of Object.entries(conversation.extras ?? {})) {
    if (format === 'chat') {
      for (const [key, value] of Object.entries(extras)) if (!(key in body)) body[key] = value;
    } else {
      for (const key of Object.keys(extras)) losses.drop(key, 'chat completions have no such field');
    }
  }
}
