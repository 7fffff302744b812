/** Decodes a client's request in the messages format. */

import { readDeferral } from '../adapters/deferred-tools/index.ts';
import type {
  Conversation,
  Message,
  Part,
  ReasoningSettings,
  Settings,
  Tool,
  ToolChoice,
} from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, restOf, textOf } from '../conversation/fields.ts';
import { withoutNullKeywords } from '../conversation/plain-schema.ts';
import { decodeBlocks, decodeCache } from './decode-blocks.ts';
import { wantedTier } from './tier.ts';

/** The gateway's own request members, never forwarded. The relay removes the same ones. */
export const OWN_MEMBERS: readonly string[] = [
  'deferred_tools',
  'fallbacks',
  'max_tool_calls',
  'models',
  'plugins',
  'preset',
  'provider',
  'route',
  'session_id',
  'stop_server_tools_when',
  'trace',
  'user',
];

const NAMED_MEMBERS = [
  ...OWN_MEMBERS,
  'cache_control',
  'max_tokens',
  'messages',
  'metadata',
  'model',
  'output_config',
  'service_tier',
  'speed',
  'stop_sequences',
  'stream',
  'system',
  'temperature',
  'thinking',
  'tool_choice',
  'tools',
  'top_k',
  'top_p',
];

/** `body` must have passed the schema and `check`. Raw numbers in it (`JsonDocument.exact`) keep their digits. */
export function decode(body: unknown): Conversation {
  const request = fieldsOf(body);
  const conversation: Conversation = { messages: decodeMessages(request), settings: decodeSettings(request) };
  const tools = listOf(request['tools']).map((tool) => decodeTool(fieldsOf(tool)));
  if (tools.length > 0) conversation.tools = tools;
  const deferred = readDeferral(request);
  if (deferred !== undefined) {
    conversation.deferred = deferred;
    for (const tool of tools) takeMark(tool);
  }
  const choice = request['tool_choice'];
  if (isFields(choice)) {
    conversation.toolChoice = decodeToolChoice(choice);
    const single = choice['disable_parallel_tool_use'];
    if (typeof single === 'boolean') conversation.settings.parallelToolCalls = !single;
  }
  const cache = decodeCache(request['cache_control']);
  if (cache !== undefined) conversation.cache = cache;
  decodeOutput(request, conversation);
  return conversation;
}

function decodeMessages(request: Fields): Message[] {
  const messages: Message[] = [];
  const system = decodeBlocks(request['system']);
  if (system.length > 0) messages.push({ role: 'system', parts: system });
  for (const entry of listOf(request['messages'])) {
    const message = fieldsOf(entry);
    const parts = decodeBlocks(message['content']);
    const role = message['role'];
    const turns: Message[] = role === 'assistant' || role === 'system' ? [{ role, parts }] : splitUserTurn(parts);
    const rest = restOf(message, ['content', 'role']);
    if (rest !== undefined && turns[0] !== undefined) turns[0].extras = { messages: rest };
    messages.push(...turns);
  }
  return messages;
}

/**
 * Splits a user turn of tool results and content: first the results, which must directly follow their calls in every
 * format, then the rest, both in order.
 */
function splitUserTurn(parts: Part[]): Message[] {
  const results = parts.filter((part) => part.type === 'toolResult');
  if (results.length === 0) return [{ role: 'user', parts }];
  const others = parts.filter((part) => part.type !== 'toolResult');
  const turns: Message[] = [{ role: 'tool', parts: results }];
  if (others.length > 0) turns.push({ role: 'user', parts: others });
  return turns;
}

function decodeTool(tool: Fields): Tool {
  const type = tool['type'];
  if (type !== undefined && type !== null && type !== 'custom')
    return { type: 'opaque', origin: 'messages', value: tool };
  const decoded: Tool = { type: 'function', name: textOf(tool['name']) };
  if (typeof tool['description'] === 'string') decoded.description = tool['description'];
  if (tool['input_schema'] !== undefined) decoded.parameters = withoutNullKeywords(tool['input_schema']);
  if (typeof tool['strict'] === 'boolean') decoded.strict = tool['strict'];
  const cache = decodeCache(tool['cache_control']);
  if (cache !== undefined) decoded.cache = cache;
  const rest = restOf(tool, ['cache_control', 'description', 'input_schema', 'name', 'strict', 'type']);
  if (rest !== undefined) decoded.extras = { messages: rest };
  return decoded;
}

/**
 * With `deferred_tools`, `defer_loading` is the gateway's own mark; otherwise it belongs to the vendor and is
 * forwarded.
 */
function takeMark(tool: Tool): void {
  if (tool.type !== 'function' || tool.extras?.messages?.['defer_loading'] === undefined) return;
  const { defer_loading: mark, ...others } = tool.extras.messages;
  if (mark === true) tool.deferred = true;
  tool.extras = { ...tool.extras, messages: others };
}

function decodeToolChoice(choice: Fields): ToolChoice {
  switch (choice['type']) {
    case 'auto':
    case 'none':
      return { mode: choice['type'] };
    case 'any':
      return { mode: 'required' };
    case 'tool':
      return { mode: 'tool', name: textOf(choice['name']) };
    default:
      return { mode: 'opaque', origin: 'messages', value: choice };
  }
}

function decodeSettings(request: Fields): Settings {
  const settings: Settings = {};
  const numbers = { max_tokens: 'maxOutputTokens', temperature: 'temperature', top_k: 'topK', top_p: 'topP' } as const;
  for (const [member, name] of Object.entries(numbers)) {
    const value = request[member];
    if (typeof value === 'number') settings[name] = value;
  }
  const stop = listOf(request['stop_sequences']).filter((text) => typeof text === 'string');
  if (stop.length > 0) settings.stop = stop;
  const tier = wantedTier(request);
  if (tier !== undefined) settings.serviceTier = tier;
  return settings;
}

/** Decodes thinking, effort, structured output and members that only this format has. */
function decodeOutput(request: Fields, conversation: Conversation): void {
  const config = fieldsOf(request['output_config']);
  const thinking = fieldsOf(request['thinking']);
  const reasoning = decodeThinking(thinking);
  const extras = restOf(request, NAMED_MEMBERS) ?? {};
  let rest = restOf(config, ['effort', 'format']);
  const effort = config['effort'];
  if (isEffortWord(effort)) {
    if (thinking['type'] === 'adaptive') reasoning.effort = effort;
    else if (thinking['type'] === undefined) {
      reasoning.effort = effort;
      reasoning.extras = { messages: { effort } };
    } else rest = { ...rest, effort };
  }
  if (Object.keys(reasoning).length > 0) conversation.reasoning = reasoning;
  const format = fieldsOf(config['format']);
  if (format['type'] === 'json_schema') conversation.output = { type: 'schema', schema: format['schema'] };
  if (rest !== undefined) extras['output_config'] = rest;
  const metadata = restOf(fieldsOf(request['metadata']), ['user_id']);
  if (metadata !== undefined) extras['metadata'] = metadata;
  if (Object.keys(extras).length > 0) conversation.extras = { messages: extras };
}

function decodeThinking(thinking: Fields): ReasoningSettings {
  const settings: ReasoningSettings = {};
  switch (thinking['type']) {
    case undefined:
      return settings;
    case 'disabled':
      settings.enabled = false;
      break;
    case 'enabled':
      settings.enabled = true;
      if (typeof thinking['budget_tokens'] === 'number') settings.budgetTokens = thinking['budget_tokens'];
      break;
    case 'adaptive':
      settings.enabled = true;
      settings.adaptive = true;
  }
  if (thinking['display'] === 'omitted') settings.exclude = true;
  const rest = restOf(thinking, ['budget_tokens', 'type']);
  if (rest !== undefined) settings.extras = { messages: rest };
  return settings;
}

type EffortWord = 'low' | 'medium' | 'high' | 'xhigh' | 'max';

function isEffortWord(value: unknown): value is EffortWord {
  return value === 'low' || value === 'medium' || value === 'high' || value === 'xhigh' || value === 'max';
}
