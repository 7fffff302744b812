/**
 * Prompt cache breakpoints: which of a client's are kept where a provider accepts only a few, and where the gateway
 * places its own for a client that sets none. Pure.
 */
import type { PromptCachingMode } from '../../base/config.ts';
import type { Conversation, Message, Part, Tool } from './conversation.ts';
import { Losses } from './losses.ts';

/** In which requests the gateway places breakpoints. */
export type PromptCaching = Exclude<PromptCachingMode, 'off'>;

/** The shortest prompt that any provider caches has 1,024 tokens, and no token is shorter than a byte. */
export const SHORTEST_CACHED_BYTES = 1024;

/**
 * Hands out the breakpoints of one request, in the order of the prompt. Of too many, the first half stays, which a
 * growing conversation keeps sharing, and the last half, which covers the longest prefix.
 */
export class BreakpointLimit {
  readonly #limit: number;
  /** How many the request has; unknown while they are counted. */
  readonly #total: number | undefined;
  count = 0;

  constructor(limit: number, total?: number) {
    this.#limit = limit;
    this.#total = total;
  }

  /** Whether the next breakpoint stays. */
  take(): boolean {
    const at = this.count;
    this.count += 1;
    if (this.#total === undefined || this.#total <= this.#limit) return true;
    return at < Math.floor(this.#limit / 2) || at >= this.#total - Math.ceil(this.#limit / 2);
  }
}

/** Encodes a request; encodes it a second time when more breakpoints came out than `limit` allows. */
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
 * The conversation with breakpoints after the tools, after the system prompt and after the last two turns of the client,
 * at most `limit` of them; unchanged when the client set any itself. The second to last turn was the end of the request
 * before, whose cache entry is read there. A single question without tools gets none after its turn: nothing will read
 * that prompt again, and writing a cache costs more than not caching.
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
 * Where the last two turns of the client end, the later one first: indexes of the messages with these roles. Empty for a
 * single question without tools.
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

/** A tool that is shown to the model only when it searches for it cannot end a cached prefix. */
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
