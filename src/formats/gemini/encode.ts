/**
 * Encodes a conversation as the body of `generateContent` and `streamGenerateContent`; model and streaming are in the
 * path. The encoding depends only on its arguments, and an added turn leaves earlier bytes unchanged, so the service's
 * prompt cache stays valid.
 */
import type { Conversation, Message, ToolResultPart } from '../conversation/conversation.ts';
import { type Fields, isFields } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { resultsFirst } from '../conversation/result-order.ts';
import { encodeGeneration } from './encode-generation.ts';
import { PartEncoder } from './encode-parts.ts';
import { encodeTools } from './encode-tools.ts';
import { familyOf } from './family.ts';

interface Content extends Fields {
  role: 'user' | 'model';
  parts: Fields[];
}

/**
 * Throws `Uncarried` for content or features that this format cannot express. Reports dropped parameters to `losses`.
 */
export function encode(conversation: Conversation, target: EncodeTarget, losses: Losses): Fields {
  const family = familyOf(target.model);
  const { system, contents } = encodeMessages(
    resultsFirst(conversation.messages),
    new PartEncoder(target, family, losses),
    losses,
  );
  if (contents.length === 0) {
    throw new Uncarried('messages', 'the gemini format requires a non-empty message besides the system prompt');
  }
  const generation = encodeGeneration(conversation, target, family, losses);
  const extras = encodeExtras(conversation, target, losses);
  reportCache(conversation, losses);
  const tier = serviceTier(conversation.settings.serviceTier, losses);
  const config = { ...generation, ...withinBounds(extras.generation, target, losses, generation['maxOutputTokens']) };
  return {
    ...(system.length > 0 && { systemInstruction: { parts: system } }),
    ...encodeTools(conversation, family.third, losses),
    contents,
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
    ...(tier !== undefined && { serviceTier: tier }),
    ...extras.body,
  };
}

/**
 * Leading instructions become the system instruction. The format has no position for later ones, so they become user
 * messages.
 */
function encodeMessages(
  messages: readonly Message[],
  parts: PartEncoder,
  losses: Losses,
): { system: Fields[]; contents: Content[] } {
  const system: Fields[] = [];
  const contents: Content[] = [];
  let named = false;
  let late = false;
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    named ||= message.name !== undefined && message.role !== 'tool';
    switch (message.role) {
      case 'assistant':
        add(contents, 'model', parts.encodeModel(message.parts));
        break;
      case 'tool': {
        // All results of a turn go into one content, because the service compares their number with the calls.
        const last = lastOfRun(messages, at);
        addResults(contents, messages.slice(at, last + 1), parts);
        at = last;
        break;
      }
      case 'user':
        add(contents, 'user', parts.encodeUser(message.parts));
        break;
      default:
        if (contents.length === 0) system.push(...parts.encodeTexts(message.parts));
        else {
          late = true;
          add(contents, 'user', parts.encodeTexts(message.parts));
        }
    }
  }
  if (named) losses.drop('messages[].name', 'the gemini format has no participant names');
  if (late) losses.drop('messages[].role', 'instructions after the first message are sent as user messages');
  return { system, contents };
}

/**
 * Merges consecutive contents of one role: some endpoints reject two in a row ("ensure that multiturn requests
 * alternate between user and model"), and a call must follow a user content. User text is never merged with results,
 * because the service would count it as one of them.
 */
function add(contents: Content[], role: Content['role'], parts: Fields[]): void {
  if (parts.length === 0) return;
  const before = contents.at(-1);
  if (before?.role === role && (role === 'model' || !(hasResult(before.parts) || hasResult(parts)))) {
    before.parts.push(...parts);
  } else contents.push({ role, parts });
}

function hasResult(parts: readonly Fields[]): boolean {
  return parts.some((part) => part['functionResponse'] !== undefined);
}

function lastOfRun(messages: readonly Message[], first: number): number {
  let last = first;
  while (messages[last + 1]?.role === 'tool') last += 1;
  return last;
}

function addResults(contents: Content[], messages: readonly Message[], parts: PartEncoder): void {
  const results: ToolResultPart[] = [];
  const others: Message['parts'] = [];
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type === 'toolResult') results.push(part);
      else others.push(part);
    }
  }
  add(contents, 'user', parts.encodeResults(results));
  add(contents, 'user', parts.encodeUser(others));
}

/** Body members that a client may pass through, in camelCase or snake_case. */
const BODY: Record<string, string> = {
  safetySettings: 'safetySettings',
  safety_settings: 'safetySettings',
  cachedContent: 'cachedContent',
  cached_content: 'cachedContent',
};

const GENERATION: Record<string, string> = {
  mediaResolution: 'mediaResolution',
  media_resolution: 'mediaResolution',
  speechConfig: 'speechConfig',
  speech_config: 'speechConfig',
  enableEnhancedCivicAnswers: 'enableEnhancedCivicAnswers',
  audioTimestamp: 'audioTimestamp',
};

/** Members meant for this service, at the top level or under `google`. The others are dropped and reported. */
function encodeExtras({ extras = {} }: Conversation, target: EncodeTarget, losses: Losses) {
  const body: Fields = {};
  const generation: Fields = {};
  const take = (members: Fields, prefix: string) => {
    for (const [name, value] of Object.entries(members)) {
      const generationName = GENERATION[name];
      if (BODY[name] !== undefined) body[BODY[name]] = value;
      else if (generationName !== undefined) generation[generationName] = value;
      else if ((name === 'generationConfig' || name === 'generation_config') && isFields(value)) {
        Object.assign(generation, value);
      } else if (name === 'labels' && target.dialect.gemini?.labels) body['labels'] = value;
      else if ((name === 'google' || name === 'extra_body') && isFields(value)) take(value, `${prefix}${name}.`);
      else losses.drop(prefix + name, 'the gemini format has no such field');
    }
  };
  for (const members of Object.values(extras)) take(members, '');
  return { body, generation };
}

/** The reservation depends on these, so members of the client cannot raise them. */
const BOUNDED = new Set(['maxoutputtokens', 'candidatecount']);

/** The client's own `generationConfig`; an output cap in it can only lower the one that is sent. */
function withinBounds(given: Fields, { maxOutputTokens }: EncodeTarget, losses: Losses, sent: unknown): Fields {
  const config: Fields = {};
  for (const [name, value] of Object.entries(given)) {
    const plain = name.replaceAll('_', '').toLowerCase();
    if (!BOUNDED.has(plain)) config[name] = value;
    else if (plain === 'maxoutputtokens' && typeof value === 'number' && value >= 1) {
      const cap = Math.min(value, typeof sent === 'number' ? sent : (maxOutputTokens ?? Number.POSITIVE_INFINITY));
      config['maxOutputTokens'] = Math.min(cap, (config['maxOutputTokens'] as number | undefined) ?? cap);
    } else losses.drop(`generationConfig.${name}`, 'it must be given as max_tokens or n');
  }
  return config;
}

function reportCache({ cache, messages, tools }: Conversation, losses: Losses): void {
  const marked =
    cache !== undefined ||
    tools?.some((tool) => tool.type === 'function' && tool.cache !== undefined) ||
    messages.some((message) => message.cache !== undefined || message.parts.some((part) => part.cache !== undefined));
  if (marked) losses.drop('cache_control', 'the provider caches prefixes automatically');
}

function serviceTier(tier: string | undefined, losses: Losses): string | undefined {
  switch (tier) {
    case undefined:
    case 'auto':
      return undefined;
    case 'default':
    case 'standard':
    case 'standard_only':
      return 'standard';
    case 'flex':
    case 'priority':
      return tier;
    default:
      losses.drop('service_tier', `the provider has no tier ${tier}`);
      return undefined;
  }
}
