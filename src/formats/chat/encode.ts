/**
 * Encodes a conversation as a chat completions request in the service's dialect. Messages are encoded one by one in
 * order, so adding a turn leaves earlier messages byte for byte (except with `strictTemplate`, which merges them).
 */
import { withBreakpoints } from '../conversation/cache-breakpoints.ts';
import type { Conversation, OutputFormat, Tool, ToolChoice } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { namedProperties } from '../conversation/plain-schema.ts';
import { resultsFirst } from '../conversation/result-order.ts';
import { adaptMessages } from './adapt-messages.ts';
import { adaptParameters } from './adapt-parameters.ts';
import { encodeCache } from './content.ts';
import type { ChatDialect } from './dialect.ts';
import { encodeMessages } from './encode-message.ts';
import { encodeReasoning } from './encode-reasoning.ts';
import { PLAIN_SETTINGS } from './fields.ts';
import { withRequiredThinking } from './required-thinking.ts';

/** Models whose vendor caches only up to explicit breakpoints, and the number of breakpoints it accepts. */
const CACHED_BY_MARK = /^~?anthropic\//;
const MOST_CACHE_MARKS = 4;

/** Dropping a stop sequence would make the model write on; sending more would be rejected. */
const MOST_STOPS = 4;

export function encode(given: Conversation, target: EncodeTarget, losses: Losses): Fields {
  const dialect = target.dialect.chat ?? {};
  const marks = target.promptCaching !== undefined && dialect.cacheControl && CACHED_BY_MARK.test(target.model);
  const conversation = marks ? withBreakpoints(given, MOST_CACHE_MARKS) : given;
  const body: Fields = {
    model: target.model,
    messages: adaptMessages(
      encodeMessages(resultsFirst(conversation.messages), { dialect, losses, origin: target.origin }),
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
  const messages = body['messages'] as Fields[];
  body['messages'] = withRequiredThinking(messages, (key) => body[key], dialect, target.model);
  return body;
}

/** The output cap to send, within the upstream's bounds; undefined when there is none. */
export function outputCap(asked: number | undefined, target: EncodeTarget): number | undefined {
  const { capOutputTokens, maxOutputTokens } = target;
  if (asked === undefined && capOutputTokens === undefined) return undefined;
  const cap = Math.min(asked ?? Infinity, capOutputTokens ?? Infinity, maxOutputTokens ?? Infinity);
  return Math.max(cap, target.dialect.chat?.minMaxTokens ?? 1);
}

function streamFields(dialect: ChatDialect): Fields {
  return dialect.streamUsage === false ? { stream: true } : { stream: true, stream_options: { include_usage: true } };
}

function encodeTools(body: Fields, conversation: Conversation, dialect: ChatDialect, losses: Losses): void {
  const { tools, toolChoice, settings } = conversation;
  if (tools === undefined || tools.length === 0) {
    // Services reject a tool choice without tools; `none` and `auto` are then redundant.
    if (toolChoice !== undefined && toolChoice.mode !== 'none' && toolChoice.mode !== 'auto') {
      losses.drop('tool_choice', 'the request has no tools');
    }
    return;
  }
  body['tools'] = tools.map((tool) => encodeTool(tool, dialect));
  if (toolChoice !== undefined) body['tool_choice'] = encodeToolChoice(toolChoice);
  if (settings.parallelToolCalls !== undefined) body['parallel_tool_calls'] = settings.parallelToolCalls;
}

function encodeTool(tool: Tool, dialect: ChatDialect): unknown {
  if (tool.type === 'opaque') {
    if (tool.origin !== 'chat')
      throw new Uncarried('tools', `chat does not support tools of the ${tool.origin} format`);
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

/** Services of this format speak only along with a text. */
function withText(modalities: readonly string[]): readonly string[] {
  return modalities.includes('audio') && !modalities.includes('text') ? ['text', ...modalities] : modalities;
}

function encodeToolChoice(choice: ToolChoice): unknown {
  if (choice.mode === 'tool') return { type: 'function', function: { name: choice.name } };
  if (choice.mode !== 'opaque') return choice.mode;
  if (choice.origin !== 'chat')
    throw new Uncarried('tool_choice', `chat does not support a choice of the ${choice.origin} format`);
  return choice.value;
}

function encodeOutput(output: OutputFormat): Fields {
  switch (output.type) {
    case 'json':
      return { type: 'json_object' };
    case 'grammar':
      return { type: 'grammar', grammar: output.grammar };
    case 'schema':
      return {
        type: 'json_schema',
        json_schema: {
          // The chat format requires a name; the other formats have none.
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

function encodeSettings(body: Fields, conversation: Conversation): void {
  const { settings } = conversation;
  for (const [field, name] of PLAIN_SETTINGS) {
    if (settings[name] !== undefined && name !== 'parallelToolCalls') body[field] = settings[name];
  }
  if (settings.stop !== undefined && settings.stop.length > 0) {
    if (settings.stop.length > MOST_STOPS) {
      throw new Uncarried('stop_sequences', `chat completions accept at most ${MOST_STOPS} stop sequences`);
    }
    body['stop'] = settings.stop;
  }
  if (settings.serviceTier !== undefined) body['service_tier'] = settings.serviceTier;
  if (conversation.choices !== undefined) body['n'] = conversation.choices;
  if (conversation.modalities !== undefined) body['modalities'] = withText(conversation.modalities);
  if (conversation.audio !== undefined) body['audio'] = conversation.audio;
  if (conversation.imageConfig !== undefined) body['image_config'] = conversation.imageConfig;
  if (conversation.webSearch !== undefined) body['web_search_options'] = conversation.webSearch;
}

function encodeExtras(body: Fields, conversation: Conversation, losses: Losses): void {
  for (const [format, extras] of Object.entries(conversation.extras ?? {})) {
    if (format === 'chat') {
      for (const [key, value] of Object.entries(extras)) if (!(key in body)) body[key] = value;
    } else {
      for (const key of Object.keys(extras)) losses.drop(key, 'chat completions do not support it');
    }
  }
}
