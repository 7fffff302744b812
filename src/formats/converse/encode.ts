/**
 * Encodes a conversation as a Converse request body; the model is in the path. The encoding depends only on its
 * arguments, and an added turn leaves earlier bytes unchanged, so the upstream's prompt cache stays valid.
 */
import { type BreakpointLimit, withBreakpoints, withinLimit } from '../conversation/cache-breakpoints.ts';
import type { Conversation, Message } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { fieldsOf, isFields, textOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { resultsFirst } from '../conversation/result-order.ts';
import { calledTools } from '../conversation/tool-ids.ts';
import { begunText, type Generation, generationOf } from '../messages/index.ts';
import { CachePoints } from './cache-points.ts';
import { BlockEncoder, LONGEST_NAME } from './encode-blocks.ts';
import { encodeInference, encodeOutput, encodeTier, encodeTools } from './encode-settings.ts';
import { withoutCalls } from './told-calls.ts';
import { vendorOf } from './vendor.ts';

const DEFAULT_CACHE_POINTS = 4;

/** Members of this format that a client of any format may pass through: no other format uses these names. */
const OWN_MEMBERS = [
  'additionalModelRequestFields',
  'additionalModelResponseFieldPaths',
  'guardrailConfig',
  'performanceConfig',
  'promptVariables',
  'requestMetadata',
];

interface Row {
  role: 'user' | 'assistant';
  content: Fields[];
}

/**
 * Throws `Uncarried` for content or features that this format cannot express. Reports dropped parameters to `losses`.
 */
export function encode(conversation: Conversation, target: EncodeTarget, losses: Losses): Fields {
  refuseUncarried(conversation);
  const vendor = vendorOf(target.model);
  const limit = target.dialect.converse?.maxCachePoints ?? DEFAULT_CACHE_POINTS;
  const forbids =
    conversation.toolChoice?.mode === 'none' && calledTools(conversation.messages, LONGEST_NAME).length > 0;
  if (forbids) losses.drop('tool_choice', 'calls are forbidden by sending earlier calls as text');
  const allowed = forbids ? withoutCalls(conversation) : conversation;
  // Models of other vendors reject cache points, and Amazon's accept none among the tools.
  const caches = target.promptCaching !== undefined && (vendor === 'anthropic' || vendor === 'amazon');
  const marked = caches ? withBreakpoints(allowed, limit, vendor === 'anthropic') : allowed;
  // A top-level mark uses one cache point, at the end of the prompt.
  const left = marked.cache === undefined ? limit : limit - 1;
  return withinLimit(left, losses, (breakpoints, counted) => encodeBody(marked, target, breakpoints, counted));
}

function encodeBody(
  conversation: Conversation,
  target: EncodeTarget,
  breakpoints: BreakpointLimit,
  losses: Losses,
): Fields {
  const vendor = vendorOf(target.model);
  const points = new CachePoints(breakpoints, vendor, losses);
  const claude = vendor === 'anthropic' ? generationOf(target.model) : undefined;
  const called = calledTools(conversation.messages, LONGEST_NAME);
  const toolConfig = encodeTools(conversation, called, { points, claude, losses });
  const { system, messages } = encodeMessages(resultsFirst(conversation.messages), target, vendor, points, losses);
  messages.at(-1)!.content.push(...points.atEnd(conversation.cache));
  const choice = fieldsOf(toolConfig?.['toolChoice']);
  const forced = 'any' in choice || 'tool' in choice;
  const prefilled = claude !== undefined && endPrefill(messages, claude, losses);
  const context = { vendor, forced, prefilled, unsignedCall: continuesUnsignedCall(messages) };
  const { inferenceConfig, additional } = encodeInference(conversation, target, context, losses);
  if (conversation.settings.parallelToolCalls === false && toolConfig !== undefined) {
    if (vendor !== 'anthropic') losses.drop('parallel_tool_calls', 'the model cannot limit parallel calls');
    else additional['tool_choice'] = { ...claudeChoice(choice), disable_parallel_tool_use: true };
  }
  if (vendor === 'anthropic' && target.betas !== undefined) additional['anthropic_beta'] = target.betas;
  const outputConfig = encodeOutput(conversation.output, claude, losses);
  const own = ownMembers(conversation, losses);
  const given = withoutCaps(fieldsOf(own['additionalModelRequestFields']), 'additionalModelRequestFields', losses);
  const additionalFields = { ...additional, ...given };
  return {
    ...(system.length > 0 && { system }),
    messages,
    ...(Object.keys(inferenceConfig).length > 0 && { inferenceConfig }),
    ...(toolConfig !== undefined && { toolConfig }),
    ...(outputConfig !== undefined && { outputConfig }),
    ...encodeTier(conversation.settings.serviceTier, losses),
    // Without this the service does not report which stop sequence matched.
    ...(vendor === 'anthropic' &&
      inferenceConfig['stopSequences'] !== undefined && { additionalModelResponseFieldPaths: ['/stop_sequence'] }),
    ...own,
    ...(Object.keys(additionalFields).length > 0 && { additionalModelRequestFields: additionalFields }),
  };
}

/** Names under which models take an output cap or a number of answers, in lower case without separators. */
const CAPS =
  /^(?:max(?:completion|output|new)?tokens(?:tosample)?|max(?:gen|output|completion)len(?:gth)?|maxlength|n|numgenerations|numberofresults|candidatecount)$/;

/** The reservation depends on the output cap, so vendors' own members cannot set another cap. */
function withoutCaps(given: Fields, at: string, losses: Losses): Fields {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      const path = `${at}.${name}`;
      if (!CAPS.test(name.replaceAll(/[-_]/g, '').toLowerCase())) {
        return [[name, isFields(value) ? withoutCaps(value, path, losses) : value]];
      }
      losses.drop(path, 'it must be given as max_tokens or n');
      return [];
    }),
  );
}

function refuseUncarried(conversation: Conversation): void {
  if ((conversation.choices ?? 1) > 1) throw new Uncarried('n', 'the converse format returns one choice');
  const modality = conversation.modalities?.find((name) => name !== 'text');
  if (modality !== undefined) throw new Uncarried('modalities', `the converse format has no ${modality} output`);
  if (conversation.imageConfig !== undefined)
    throw new Uncarried('image_config', 'the converse format cannot generate images');
  if (conversation.webSearch !== undefined) {
    throw new Uncarried('web_search_options', 'the converse format has no web search');
  }
}

/**
 * Leading system messages become the system prompt. Later ones have no position of their own and go into user turns.
 */
function encodeMessages(
  messages: readonly Message[],
  target: EncodeTarget,
  vendor: string | undefined,
  points: CachePoints,
  losses: Losses,
): { system: Fields[]; messages: Row[] } {
  const blocks = new BlockEncoder(target, vendor, points, losses);
  const system: Fields[] = [];
  const rows: Row[] = [];
  let named = false;
  for (const message of messages) {
    named ||= message.name !== undefined;
    const isSystem = message.role === 'system' || message.role === 'developer';
    const assistant = message.role === 'assistant';
    const content = isSystem ? blocks.encodeTexts(message.parts) : blocks.encode(message.parts, assistant);
    if (message.cache !== undefined) mark(content, points.after(message.cache, 'content'));
    if (content.length === 0) continue;
    const role = assistant ? 'assistant' : 'user';
    const before = rows.at(-1);
    if (isSystem && before === undefined) system.push(...content);
    // Roles must alternate, so consecutive messages of one role (results and text, two turns of one side) are merged.
    else if (before?.role === role) before.content.push(...content);
    else rows.push({ role, content });
  }
  if (named) losses.drop('messages[].name', 'the converse format has no participant names');
  refuseUnfit(rows);
  return { system, messages: rows };
}

/** Refuses requests that the service would reject and only the client can correct. */
function refuseUnfit(rows: readonly Row[]): void {
  if (rows.length === 0) throw new Uncarried('messages', 'the converse format requires a non-empty message');
  if (rows[0]!.role !== 'user')
    throw new Uncarried('messages', 'the first message must be a user message in the converse format');
  for (const { content } of rows) {
    const lonely = content.some((block) => 'document' in block) && !content.some((block) => 'text' in block);
    if (lonely) throw new Uncarried('file', 'the converse format requires text next to a document');
  }
}

/** Inserts the cache point of a message mark after its last block that accepts one; reasoning blocks do not. */
function mark(content: Fields[], point: Fields[]): void {
  const at = content.findLastIndex((block) => !('reasoningContent' in block));
  if (at >= 0 && !('cachePoint' in content[at]!)) content.splice(at + 1, 0, ...point);
}

/** Prepares an assistant message that Claude is to continue. */
function endPrefill(rows: Row[], generation: Generation, losses: Losses): boolean {
  const last = rows.at(-1)!;
  const at = last.content.findLastIndex((block) => !('cachePoint' in block));
  const text = textOf(last.content[at]?.['text']);
  if (last.role !== 'assistant' || text === '') return false;
  const begun = begunText(text, generation, losses);
  if (begun !== text) last.content[at] = { text: begun };
  return true;
}

/**
 * Whether the request continues after tool results whose call came from another model, so that its assistant message
 * does not start with thinking: Claude then refuses to think.
 */
function continuesUnsignedCall(rows: readonly Row[]): boolean {
  const last = rows.at(-1);
  if (last?.role !== 'user' || !last.content.some((block) => 'toolResult' in block)) return false;
  const first = rows.at(-2)?.content[0];
  return first !== undefined && !('reasoningContent' in first);
}

/** The tool choice in Anthropic's own spelling. */
function claudeChoice(choice: Fields): Fields {
  if ('any' in choice) return { type: 'any' };
  return 'tool' in choice ? { type: 'tool', ...fieldsOf(choice['tool']) } : { type: 'auto' };
}

function ownMembers(conversation: Conversation, losses: Losses): Fields {
  const own: Fields = {};
  for (const members of Object.values(conversation.extras ?? {})) {
    for (const [name, value] of Object.entries(members)) {
      if (OWN_MEMBERS.includes(name)) own[name] = value;
      else losses.drop(name, 'the converse format has no such field');
    }
  }
  return own;
}
