/**
 * Encodes a conversation as a request body of the messages format. The encoding depends only on its arguments, and a
 * further turn changes nothing before it, so cached prefixes stay valid.
 */
import { type BreakpointLimit, withBreakpoints, withinLimit } from '../conversation/cache-breakpoints.ts';
import type { Conversation, Message, Tool } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, textOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { resultsFirst } from '../conversation/result-order.ts';
import { calledTools } from '../conversation/tool-ids.ts';
import { CacheMarks } from './cache-marks.ts';
import { BlockEncoder, LONGEST_NAME } from './encode-parts.ts';
import {
  begunText,
  encodeMaxTokens,
  encodeSampling,
  encodeThinking,
  encodeToolChoice,
  encodeTools,
  hostedMembers,
} from './encode-settings.ts';
import { type Generation, generationOf } from './generation.ts';
import { structuredSchema } from './structured-schema.ts';
import { upstreamIds } from './thread.ts';

/** Cache breakpoints that the provider accepts per request. */
export const DEFAULT_CACHE_MARKS = 4;

interface Row extends Fields {
  role: 'user' | 'assistant' | 'system';
  content: Fields[];
}

/**
 * Throws `Uncarried` for content or features that this format cannot express; reports dropped parameters to `losses`.
 */
export function encode(conversation: Conversation, target: EncodeTarget, losses: Losses): Fields {
  refuseUncarried(conversation, target);
  const limit = target.dialect.messages?.maxCacheMarks ?? DEFAULT_CACHE_MARKS;
  const marked = target.promptCaching === undefined ? conversation : withBreakpoints(conversation, limit);
  // The top-level `cache_control` counts as one of the breakpoints.
  const left = marked.cache === undefined ? limit : limit - 1;
  return withinLimit(left, losses, (breakpoints, counted) => encodeBody(marked, target, breakpoints, counted));
}

function encodeBody(
  conversation: Conversation,
  target: EncodeTarget,
  breakpoints: BreakpointLimit,
  losses: Losses,
): Fields {
  const { settings } = conversation;
  const marks = new CacheMarks(breakpoints, losses);
  const generation = generationOf(target.model);
  const tools = encodeTools(declaredTools(conversation, losses), marks, generation, losses);
  const { system, messages } = encodeMessages(
    resultsFirst(conversation.messages),
    new BlockEncoder(target, marks, losses),
    marks,
    {
      generation,
      losses,
    },
  );
  if (!messages.some(({ role }) => role !== 'system')) {
    throw new Uncarried('messages', 'the messages format requires a non-empty message besides the system prompt');
  }
  const prefilled = endPrefill(messages, generation, losses);
  const maxTokens = encodeMaxTokens(settings.maxOutputTokens, target, losses);
  const toolChoice =
    tools !== undefined && !conversation.tools?.length && conversation.webSearch === undefined
      ? { type: 'none' }
      : encodeToolChoice(conversation);
  const forced = toolChoice?.['type'] === 'any' || toolChoice?.['type'] === 'tool';
  const context = { forced, prefilled, unsignedCall: continuesUnsignedCall(messages) };
  const { thinking, config } = encodeThinking(conversation, target, maxTokens, context, losses);
  const format = encodeOutput(conversation, generation, losses);
  if (format !== undefined) config['format'] = format;
  const { output_config: _, metadata, ...extras } = conversation.extras?.messages ?? {};
  const { hosted } = target.dialect.messages ?? {};
  const body: Fields = {
    ...(hosted === undefined && { model: target.model }),
    max_tokens: maxTokens,
    ...(system.length > 0 && { system }),
    ...(tools !== undefined && { tools }),
    ...(toolChoice !== undefined && { tool_choice: toolChoice }),
    ...(thinking !== undefined && { thinking }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
    ...encodeSampling(settings, thinking !== undefined && thinking['type'] !== 'disabled', generation, losses),
    ...(conversation.cache !== undefined && { cache_control: { type: 'ephemeral', ...conversation.cache } }),
    ...extras,
    ...upstreamIds(target, (name) => extras[name]),
    ...hostedMembers(target, extras['anthropic_beta']),
    metadata: { ...(metadata as Fields | undefined), user_id: target.user },
    messages,
    ...(target.stream && !hosted?.streamInPath && { stream: true }),
  };
  for (const name of target.dialect.messages?.refuses ?? []) {
    if (!(name in body)) continue;
    delete body[name];
    losses.drop(name, 'the provider does not accept it');
  }
  for (const [origin, members] of Object.entries(conversation.extras ?? {})) {
    if (origin === 'messages') continue;
    for (const name of Object.keys(members)) losses.drop(name, 'the messages format does not support it');
  }
  return body;
}

/**
 * The client's tools. The vendor rejects a history with calls if no tools are declared, so the called tools are then
 * declared by name, and the tool choice is `none`.
 */
function declaredTools(conversation: Conversation, losses: Losses): readonly Tool[] | undefined {
  const { tools = [], messages } = conversation;
  const search = searchTool(conversation, losses);
  if (search !== undefined) return [...tools, search];
  if (tools.length > 0) return tools;
  return calledTools(messages, LONGEST_NAME).map((name) => ({ type: 'function', name }));
}

/** docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool */
function searchTool({ webSearch, tools }: Conversation, losses: Losses): Tool | undefined {
  if (webSearch === undefined) return undefined;
  const { user_location: location, search_context_size: size } = fieldsOf(webSearch);
  if (tools?.some((tool) => tool.type === 'function' && tool.name === SEARCH_NAME)) {
    losses.drop('web_search', 'a tool of the client has the same name');
    return undefined;
  }
  if (size !== undefined) losses.drop('search_context_size', 'the provider has no setting for it');
  const place = fieldsOf(fieldsOf(location)['approximate']);
  const value = {
    type: 'web_search_20250305',
    name: SEARCH_NAME,
    ...(Object.keys(place).length > 0 && { user_location: { type: 'approximate', ...place } }),
  };
  return { type: 'opaque', origin: 'messages', value };
}

const SEARCH_NAME = 'web_search';

function refuseUncarried(conversation: Conversation, { dialect }: EncodeTarget): void {
  if ((conversation.choices ?? 1) > 1) throw new Uncarried('n', 'the messages format returns one answer');
  const modality = conversation.modalities?.find((name) => name !== 'text');
  if (modality !== undefined) throw new Uncarried('modalities', `the messages format has no ${modality} output`);
  if (conversation.imageConfig !== undefined)
    throw new Uncarried('image_config', 'the messages format has no image output');
  if (conversation.webSearch !== undefined && dialect.messages?.webSearch !== true) {
    throw new Uncarried('web_search_options', 'the provider does not support web search by parameter');
  }
}

function encodeOutput(conversation: Conversation, generation: Generation, losses: Losses): Fields | undefined {
  const { output } = conversation;
  if (output === undefined || output.type === 'text') return undefined;
  if (output.type !== 'schema') {
    throw new Uncarried('response_format', `the messages format does not support the type ${output.type}`);
  }
  if (output.schema === undefined) throw new Uncarried('response_format', 'the messages format requires a schema');
  if (!generation.schemas) throw new Uncarried('response_format', 'this model does not support JSON schemas');
  const schema = structuredSchema(output.schema, 'response_format', losses);
  if (schema === undefined) {
    throw new Uncarried(
      'response_format',
      'the provider does not support schemas with arbitrary members, arbitrary values or recursion',
    );
  }
  return { type: 'json_schema', schema };
}

/**
 * Leading system messages become the top-level prompt. Later ones keep their position, as system messages if the model
 * accepts them there, otherwise as text of the user turn.
 */
function encodeMessages(
  messages: readonly Message[],
  blocks: BlockEncoder,
  marks: CacheMarks,
  { generation, losses }: { generation: Generation; losses: Losses },
): { system: Fields[]; messages: Row[] } {
  const system: Fields[] = [];
  const rows: Row[] = [];
  let named = false;
  for (const message of messages) {
    named ||= message.name !== undefined;
    const own = roleOf(message);
    const content =
      own === 'system' ? blocks.encodeTexts(message.parts) : blocks.encode(message.parts, own === 'assistant');
    if (message.cache !== undefined) markLast(content, marks.member(message.cache));
    if (content.length === 0) continue;
    const extras = message.extras?.messages;
    const before = rows.at(-1);
    const late = own === 'system' && rows.length > 0;
    const role = late && !(before?.role === 'user' && generation.lateSystem) ? 'user' : own;
    if (role === 'system' && rows.length === 0 && extras === undefined) system.push(...content);
    // Roles must alternate (mlflow/mlflow#24296, etkecc/baibot#13): adjacent turns of one role, and results and text of
    // one user turn, form one message.
    else if (before?.role === role && extras === undefined) before.content.push(...content);
    else rows.push({ role, content, ...extras });
  }
  if (named) losses.drop('messages[].name', 'the messages format does not support names');
  return { system, messages: rows };
}

/** Moves a message's cache mark to its last block that accepts one; thinking does not. */
function markLast(content: Fields[], mark: Fields): void {
  const at = content.findLastIndex((block) => block['type'] !== 'thinking' && block['type'] !== 'redacted_thinking');
  if (at >= 0) content[at] = { ...content[at], ...mark };
}

function roleOf(message: Message): Row['role'] {
  if (message.role === 'assistant') return 'assistant';
  return message.role === 'user' || message.role === 'tool' ? 'user' : 'system';
}

/**
 * Whether the last message is an assistant message for the model to continue. If it contains the vendor's own blocks,
 * the client did not write it as a prefill: the vendor resumes such a turn anyway.
 */
function endPrefill(rows: Row[], generation: Generation, losses: Losses): boolean {
  const last = rows.at(-1);
  if (last?.role !== 'assistant' || !last.content.every(({ type }) => OWN_WORDS.has(type))) return false;
  const block = last.content.at(-1);
  const text = block?.['type'] === 'text' ? textOf(block['text']) : '';
  const begun = begunText(text, generation, losses);
  if (begun !== text) last.content[last.content.length - 1] = { ...block, text: begun };
  return true;
}

const OWN_WORDS = new Set<unknown>(['text', 'thinking', 'redacted_thinking']);

/**
 * Whether the request ends with tool results whose call is in an assistant message without leading thinking (from
 * another model): the vendor then refuses to think.
 */
function continuesUnsignedCall(rows: readonly Row[]): boolean {
  const last = rows.at(-1);
  if (last?.role !== 'user' || !last.content.some((block) => block['type'] === 'tool_result')) return false;
  const first = rows.at(-2)?.content[0]?.['type'];
  return first !== undefined && first !== 'thinking' && first !== 'redacted_thinking';
}
