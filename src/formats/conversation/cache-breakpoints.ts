/**
 * Prompt cache breakpoints: which of the client's are kept where a provider accepts only a few, and where the gateway
 * places its own when the client sets none. Pure.
 */
import type { PromptCachingMode } from '../../base/config.ts';
import type { Conversation, Message, Part, Tool } from './conversation.ts';
import { Losses } from './losses.ts';

/** Which requests get breakpoints from the gateway. */
export type PromptCaching = Exclude<PromptCachingMode, 'off'>;

/** No provider caches prompts below 1,024 tokens, and a token is at least one byte. */
export const SHORTEST_CACHED_BYTES = 1024;

/**
 * Grants the breakpoints of one request, in prompt order. When there are too many, it keeps the first half, which stays
 * the same as a conversation grows, and the last half, which covers the longest prefix.
 */
export class BreakpointLimit {
  readonly #limit: number;
  /** Number of breakpoints in the request; undefined during the counting pass. */
  readonly #total: number | undefined;
  count = 0;

  constructor(limit: number, total?: number) {
    this.#limit = limit;
    this.#total = total;
  }

  /** Whether to keep the next breakpoint. */
  take(): boolean {
    const at = this.count;
    this.count += 1;
    if (this.#total === undefined || this.#total <= this.#limit) return true;
    return at < Math.floor(this.#limit / 2) || at >= this.#total - Math.ceil(this.#limit / 2);
  }
}

/** Encodes a request, and encodes it again if it produced more breakpoints than `limit`. */
export function withinLimit<Body>(
  limit: number,
  losses: Losses,
  encode: (breakpoints: BreakpointLimit, losses: Losses) => Body,
): Body {
  const counting = new BreakpointLimit(limit);
  const counted = new Losses();
  const body = encode(counting, counted);
  if (counting.count > limit) return encode(new BreakpointLimit(limit, counting.count), losses);
  losses.dropped.push(...counted.dropped);
  return body;
}

/**
 * Adds breakpoints after the tools, the system prompt and the last two client turns, at most `limit`; returns the
 * conversation unchanged when the client set any. The second to last turn ended the previous request, so its cache
 * entry is read there. A single question without tools gets no breakpoint after its turn: that prompt is never sent
 * again, and cache writes cost more than uncached input.
 */
export function withBreakpoints(conversation: Conversation, limit: number, onTools = true): Conversation {
  const { messages, tools } = conversation;
  if (hasBreakpoint(conversation)) return conversation;
  const marked = [...messages];
  let left = limit;
  const mark = (at: number | undefined) => {
    if (at === undefined || at < 0 || left <= 0) return;
    left -= 1;
    marked[at] = { ...marked[at]!, cache: {} };
  };
  const [last, beforeLast] = turnEnds(
    messages.map(({ role }) => role),
    tools !== undefined,
  );
  mark(last);
  // The last of the leading system messages.
  mark(messages.findIndex(({ role }) => !isSystem(role)) - 1);
  mark(beforeLast);
  const toolAt = onTools && left > 0 ? lastMarkable(tools) : -1;
  return {
    ...conversation,
    messages: marked,
    ...(toolAt >= 0 && { tools: tools!.with(toolAt, { ...tools![toolAt]!, cache: {} } as Tool) }),
  };
}

/**
 * Indexes of the messages that end the last two client turns, the later one first. Empty for a single question without
 * tools.
 */
export function turnEnds(roles: readonly string[], hasTools: boolean): number[] {
  if (!hasTools && !roles.includes('assistant')) return [];
  const ends: number[] = [];
  let inClientTurn = false;
  for (let at = roles.length - 1; at >= 0 && ends.length < 2; at -= 1) {
    if (roles[at] === 'assistant') inClientTurn = false;
    else if (!inClientTurn && !isSystem(roles[at]!)) {
      ends.push(at);
      inClientTurn = true;
    }
  }
  return ends;
}

function isSystem(role: string): boolean {
  return role === 'system' || role === 'developer';
}

/** A deferred tool cannot end a cached prefix: the model sees it only after a search. */
function lastMarkable(tools: readonly Tool[] | undefined): number {
  return (tools ?? []).findLastIndex((tool) => tool.type === 'function' && tool.deferred !== true);
}

function hasBreakpoint({ cache, messages, tools = [] }: Conversation): boolean {
  return (
    cache !== undefined ||
    tools.some((tool) => (tool.type === 'opaque' ? hasNative(tool.value) : tool.cache !== undefined)) ||
    messages.some((message: Message) => message.cache !== undefined || message.parts.some(isMarked))
  );
}

function isMarked(part: Part): boolean {
  if (part.cache !== undefined) return true;
  if (part.type === 'opaque') return hasNative(part.value);
  return part.type === 'toolResult' && part.parts.some(isMarked);
}

function hasNative(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('cache_control' in value || 'cachePoint' in value);
}
