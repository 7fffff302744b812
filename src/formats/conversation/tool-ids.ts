/**
 * Tool call ids for formats that allow only letters, digits, `_` and `-`, without duplicates (maximhq/bifrost#5097).
 * The mapping is one-to-one and depends only on earlier calls, so the same history always gets the same ids and cached
 * prefixes stay valid.
 */
import { createHash } from 'node:crypto';
import type { Message } from './conversation.ts';

const VALID = /^[a-zA-Z0-9_-]+$/;
const PREFIX = 'enc_';
const HASHED = 'call_';

/**
 * LiteLLM's separator for a Gemini thought signature in a call id (docs.litellm.ai/docs/providers/gemini, "Thought
 * Signatures").
 */
const THOUGHT_MARK = '__thought__';

/**
 * A call id of at most `longest` characters. Longer ids become a deterministic hash, so calls and results still match.
 * Unless the service is `strict`, ids with an embedded thought signature are not shortened.
 */
export function boundedId(id: string, longest: number, strict: boolean): string {
  if (id.length <= longest || (!strict && id.includes(THOUGHT_MARK))) return id;
  return `${HASHED}${createHash('sha256').update(id, 'utf8').digest('base64url')}`.slice(0, longest);
}

/**
 * The name of a called tool in the same alphabet; models also call tools that were never declared, under arbitrary
 * names.
 */
export function toolName(name: string, maxLength: number): string {
  if (name.length <= maxLength && VALID.test(name)) return name;
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, maxLength) || '_';
}

/** The distinct names of the tools that a history calls. */
export function calledTools(messages: readonly Message[], maxLength: number): string[] {
  const names = new Set<string>();
  for (const { parts } of messages)
    for (const part of parts) if (part.type === 'toolCall') names.add(toolName(part.name, maxLength));
  return [...names];
}

/** Whether the id fits the restricted alphabet. */
export function isPlainId(id: string): boolean {
  return VALID.test(id);
}

export class ToolIds {
  /** Number of calls with each id so far. */
  readonly #calls = new Map<string, number>();
  readonly #maxLength: number;

  /** `maxLength`: the format's limit, at least 64; longer ids become a hash. */
  constructor(maxLength = Number.POSITIVE_INFINITY) {
    this.#maxLength = maxLength;
  }

  /** The id of the next call in the history. Repeated ids are made distinct. */
  call(id: string): string {
    const count = (this.#calls.get(id) ?? 0) + 1;
    this.#calls.set(id, count);
    return this.#encode(id, count);
  }

  /** The id of a result: that of the latest call with this id. */
  result(id: string): string {
    return this.#encode(id, this.#calls.get(id) ?? 1);
  }

  /** Ids that start with the prefix of rewritten ids are rewritten too, so that no two ids collide. */
  #encode(id: string, count: number): string {
    if (count === 1 && id.length <= this.#maxLength && VALID.test(id) && !id.startsWith(PREFIX)) return id;
    const text = count === 1 ? id : `${id}\u0000${count}`;
    const encoded = PREFIX + Buffer.from(text, 'utf8').toString('base64url');
    if (encoded.length <= this.#maxLength) return encoded;
    return PREFIX + createHash('sha256').update(text, 'utf8').digest('base64url');
  }
}
