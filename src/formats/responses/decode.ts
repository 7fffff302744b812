/** Decodes a checked `POST /responses` body into the conversation. */

import { readDeferral } from '../adapters/deferred-tools/index.ts';
import type {
  Conversation,
  FunctionTool,
  Message,
  OutputFormat,
  Part,
  ReasoningSettings,
  Settings,
  Tool,
  ToolChoice,
} from '../conversation/conversation.ts';
import { isEffort } from '../conversation/effort.ts';
import { type Fields, fieldsOf, isFields, listOf, restOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { withoutNullKeywords } from '../conversation/plain-schema.ts';
import { decodeCache, decodeContent } from './decode-content.ts';
import { decodeItems } from './decode-item.ts';
import {
  CONVERSATION_FIELDS,
  INCLUDE_ENCRYPTED,
  INCLUDE_LOGPROBS,
  OWN_FIELDS,
  PLAIN_SETTINGS,
  serviceTier,
} from './fields.ts';

/** Marks the message that came from `instructions`. */
export const INSTRUCTIONS = 'instructions';
/** Type of the opaque part that holds `prompt`, a template stored at the vendor. */
export const PROMPT = 'prompt_template';

/** Type of the input item that changes the effort from its place on; services of this format get it as it is. */
const CONFIGURATION_UPDATE = 'configuration_update';

const ALL_FIELDS = [...OWN_FIELDS, ...CONVERSATION_FIELDS, 'include'];

export function decode(body: unknown): Conversation {
  const request = fieldsOf(body);
  const conversation: Conversation = { messages: decodeMessages(request), settings: decodeSettings(request) };
  const tools = listOf(request['tools']).map((tool) => decodeTool(fieldsOf(tool)));
  if (tools.length > 0) conversation.tools = tools;
  const deferred = readDeferral(request);
  if (deferred !== undefined) {
    conversation.deferred = deferred;
    for (const tool of conversation.tools ?? []) takeMark(tool);
  }
  const choice = decodeToolChoice(request['tool_choice']);
  if (choice !== undefined) conversation.toolChoice = choice;
  const reasoning = decodeReasoningSettings(currentReasoning(request));
  if (reasoning !== undefined) conversation.reasoning = reasoning;
  const output = decodeOutput(fieldsOf(fieldsOf(request['text'])['format']));
  if (output !== undefined) conversation.output = output;
  const modalities = listOf(request['modalities']).filter((kind) => typeof kind === 'string');
  if (modalities.length > 0) conversation.modalities = modalities;
  if (present(request['image_config'])) conversation.imageConfig = request['image_config'];
  const cache = decodeCache({ cache_control: request['cache_control'] });
  if (cache !== undefined) conversation.cache = cache;
  const extras = decodeExtras(request);
  if (extras !== undefined) conversation.extras = { responses: extras };
  return conversation;
}

/** Under the deferral protocol the mark is for the gateway; otherwise it passes through to the vendor. */
function takeMark(tool: Tool): void {
  if (tool.type !== 'function' || tool.extras?.responses?.['defer_loading'] === undefined) return;
  const { defer_loading: mark, ...others } = tool.extras.responses;
  if (mark === true) tool.deferred = true;
  tool.extras = { ...tool.extras, responses: others };
}

function present(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function decodeMessages(request: Fields): Message[] {
  const messages: Message[] = [];
  const instructions = request['instructions'];
  if (typeof instructions === 'string' && instructions !== '') {
    const parts: Part[] = [{ type: 'text', text: instructions }];
    messages.push({ role: 'system', parts, extras: { responses: { [INSTRUCTIONS]: true } } });
  }
  if (isFields(request['prompt'])) {
    messages.push({ role: 'developer', parts: [opaque({ ...request['prompt'], type: PROMPT })] });
  }
  const { input } = request;
  if (typeof input === 'string') messages.push({ role: 'user', parts: [{ type: 'text', text: input }] });
  else messages.push(...decodeInput(listOf(input)));
  return messages;
}

function opaque(value: Fields): Part {
  return { type: 'opaque', origin: 'responses', value };
}

/** Consecutive model items become one message, as do consecutive tool results. */
function decodeInput(input: readonly unknown[]): Message[] {
  const messages: Message[] = [];
  let run: Fields[] = [];
  const flush = () => {
    if (run.length > 0) messages.push({ role: 'assistant', parts: decodeItems(run, 'openai-responses-v1') });
    run = [];
  };
  for (const entry of input) {
    const item = fieldsOf(entry);
    if (isModelItem(item)) {
      run.push(item);
      continue;
    }
    flush();
    const type = item['type'];
    if (type === CONFIGURATION_UPDATE) continue;
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      const last = messages.at(-1);
      if (last?.role === 'tool') last.parts.push(decodeResult(item));
      else messages.push({ role: 'tool', parts: [decodeResult(item)] });
    } else if (isMessage(item)) messages.push(decodeMessage(item));
    else messages.push({ role: 'user', parts: [opaque(item)] });
  }
  flush();
  return messages.filter(({ parts }) => parts.length > 0);
}

function isMessage(item: Fields): boolean {
  return item['type'] === undefined || item['type'] === null || item['type'] === 'message';
}

const MODEL_ITEMS = new Set<unknown>(['mcp_approval_request', 'mcp_list_tools', 'reasoning']);

/** Whether the model produced the item: messages, reasoning, calls and results of vendor-run tools. */
function isModelItem(item: Fields): boolean {
  if (isMessage(item)) return item['role'] === 'assistant';
  const type = textOf(item['type']);
  return MODEL_ITEMS.has(type) || type.endsWith('_call') || type.includes(':');
}

function decodeMessage(item: Fields): Message {
  const message: Message = { role: item['role'] as Message['role'], parts: decodeContent(item['content']) };
  const rest = restOf(item, ['type', 'role', 'content']);
  if (rest !== undefined) message.extras = { responses: rest };
  return message;
}

function decodeResult(item: Fields): Part {
  const rest = restOf(item, ['type', 'call_id', 'output']);
  const output = item['output'];
  return {
    type: 'toolResult',
    callId: textOf(item['call_id']),
    parts: isFields(output) ? [{ type: 'text', text: JSON.stringify(output) }] : decodeContent(output),
    ...(rest !== undefined && { extras: { responses: rest } }),
  };
}

function decodeSettings(request: Fields): Settings {
  const settings: Record<string, unknown> = {};
  for (const [field, name] of PLAIN_SETTINGS) if (present(request[field])) settings[name] = request[field];
  const asked = settings['topLogprobs'] !== undefined && settings['topLogprobs'] !== 0;
  if (asked || listOf(request['include']).includes(INCLUDE_LOGPROBS)) settings['logprobs'] = true;
  const { verbosity } = fieldsOf(request['text']);
  if (present(verbosity)) settings['verbosity'] = verbosity;
  const tier = textOrUndefined(request['service_tier']);
  if (tier !== undefined) settings['serviceTier'] = serviceTier(tier);
  return settings as Settings;
}

/**
 * Custom tools are kept in chat's spelling, so the chat format can send them unchanged. Other non-function tools exist
 * only in this format.
 */
export function decodeTool(tool: Fields): Tool {
  const { type, ...members } = tool;
  if (type === 'custom') {
    const { format, ...custom } = members;
    const spelled = isFields(format) ? { format: chatFormat(format) } : {};
    return { type: 'opaque', origin: 'chat', value: { type, custom: { ...custom, ...spelled } } };
  }
  if (type !== 'function') return { type: 'opaque', origin: 'responses', value: tool };
  const decoded: FunctionTool = { type, name: textOf(tool['name']) };
  if (typeof tool['description'] === 'string') decoded.description = tool['description'];
  if (present(tool['parameters'])) decoded.parameters = withoutNullKeywords(tool['parameters']);
  const { strict } = tool;
  if (typeof strict === 'boolean' || strict === null) decoded.strict = strict;
  const cache = decodeCache(tool);
  if (cache !== undefined) decoded.cache = cache;
  const known = ['type', 'name', 'description', 'parameters', 'strict', 'cache_control', 'prompt_cache_breakpoint'];
  const rest = restOf(tool, known);
  if (rest !== undefined) decoded.extras = { responses: rest };
  return decoded;
}

/** Chat nests the grammar in its own member. */
function chatFormat(format: Fields): Fields {
  if (format['type'] !== 'grammar') return format;
  const { type, ...grammar } = format;
  return { type, grammar };
}

function decodeToolChoice(value: unknown): ToolChoice | undefined {
  if (value === 'auto' || value === 'none' || value === 'required') return { mode: value };
  if (!isFields(value)) return undefined;
  const name = textOf(value['name']);
  if (value['type'] === 'function') {
    return { mode: 'tool', name, ...(typeof value['namespace'] === 'string' && { namespace: value['namespace'] }) };
  }
  if (value['type'] === 'custom') {
    return { mode: 'opaque', origin: 'chat', value: { type: 'custom', custom: { name } } };
  }
  const tools = listOf(value['tools']).map(fieldsOf);
  if (value['type'] === 'allowed_tools' && tools.every(({ type }) => type === 'function' || type === 'custom')) {
    const named = tools.map(({ type, ...members }) => ({ type, [textOf(type)]: members }));
    const allowed = { mode: value['mode'] ?? 'auto', tools: named };
    return { mode: 'opaque', origin: 'chat', value: { type: 'allowed_tools', allowed_tools: allowed } };
  }
  return { mode: 'opaque', origin: 'responses', value };
}

/** `reasoning` with the effort that the last item of its kind in the input sets. */
function currentReasoning(request: Fields): Fields {
  const reasoning = fieldsOf(request['reasoning']);
  const last = listOf(request['input']).findLast((item) => fieldsOf(item)['type'] === CONFIGURATION_UPDATE);
  const effort = fieldsOf(fieldsOf(last)['reasoning'])['effort'];
  if (!isEffort(effort)) return reasoning;
  const { max_tokens: _, enabled: __, ...others } = reasoning;
  return { ...others, effort };
}

/** The relay also uses this, because its upstreams accept only effort and summary. */
export function decodeReasoningSettings(reasoning: Fields): ReasoningSettings | undefined {
  const settings: ReasoningSettings = {};
  const { effort, summary } = reasoning;
  if (isEffort(effort)) settings.effort = effort;
  if (typeof reasoning['max_tokens'] === 'number') settings.budgetTokens = reasoning['max_tokens'];
  if (typeof reasoning['enabled'] === 'boolean') settings.enabled = reasoning['enabled'];
  if (summary === 'auto' || summary === 'concise' || summary === 'detailed') settings.summary = summary;
  const rest = restOf(reasoning, ['effort', 'enabled', 'max_tokens', 'summary']);
  if (rest !== undefined) settings.extras = { responses: rest };
  return Object.keys(settings).length === 0 ? undefined : settings;
}

function decodeOutput(format: Fields): OutputFormat | undefined {
  switch (format['type']) {
    case 'text':
      return { type: 'text' };
    case 'json_object':
      return { type: 'json' };
    case 'json_schema': {
      const output: OutputFormat = { type: 'schema' };
      if (typeof format['name'] === 'string') output.name = format['name'];
      if (typeof format['description'] === 'string') output.description = format['description'];
      if (present(format['schema'])) output.schema = withoutNullKeywords(format['schema']);
      if (typeof format['strict'] === 'boolean' || format['strict'] === null) output.strict = format['strict'];
      return output;
    }
    default:
      return undefined;
  }
}

function decodeExtras(request: Fields): Fields | undefined {
  const extras = restOf(request, ALL_FIELDS) ?? {};
  const include = listOf(request['include']).filter((name) => name !== INCLUDE_ENCRYPTED && name !== INCLUDE_LOGPROBS);
  if (include.length > 0) extras['include'] = include;
  const text = restOf(fieldsOf(request['text']), ['format', 'verbosity']);
  if (text !== undefined) extras['text'] = text;
  // Values that request nothing must not count as a loss when another format cannot carry them.
  for (const [key, value] of Object.entries(extras)) if (value === null) delete extras[key];
  if (extras['truncation'] === 'disabled') delete extras['truncation'];
  return Object.keys(extras).length === 0 ? undefined : extras;
}
