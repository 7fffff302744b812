/**
 * Ids of tool calls as forms with a narrow alphabet take them: letters, digits, `_` and `-`, and no id twice (bug 28). The
 * rewriting is one-to-one and depends on nothing behind the call, so the same history always gets the same ids and a
 * cached prefix stays one.
 */
import { createHash } from 'node:crypto';
import type { Message } from './conversation.ts';

const VALID = /^[a-zA-Z0-9_-]+$/;
const PREFIX = 'enc_';
const HASHED = 'call_';

/** Where LiteLLM keeps a thought signature of Gemini in a call id (docs.litellm.ai/docs/providers/gemini, "Thought Signatures"). */
const THOUGHT_MARK = '__thought__';

/**
 * A call id of at most `longest` characters. A longer id becomes a hash, always the same one, so calls and results still
 * match. Unless the service is `strict`, an id with an embedded thought signature stays whole.
 */
export function boundedId(id: string, longest: number, strict: boolean): string {
  if (id.length <= longest || (!strict && id.includes(THOUGHT_MARK))) return id;
  return `${HASHED}${createHash('sha256').update(id, 'utf8').digest('base64url')}`.slice(0, longest);
}

/** The name of a tool that a history calls, in the same alphabet; models call tools that nobody has under any name. */
export function toolName(name: string, maxLength: number): string {
  if (name.length <= maxLength && VALID.test(name)) return name;
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, maxLength) || '_';
}

/** The names of the tools that a history calls, each once. */
export function calledTools(messages: readonly Message[], maxLength: number): string[] {
  const names = new Set<string>();
  for (const { parts } of messages)
    for (const part of parts) if (part.type === 'toolCall') names.add(toolName(part.name, maxLength));
  return [...names];
}

/** Whether a service with the narrow alphabet takes this id. */
export function isPlainId(id: string): boolean {
  return VALID.test(id);
}

export class ToolIds {
  /** How many calls had the id so far. */
  private readonly calls = new Map<string, number>();
  private readonly maxLength: number;

  /** `maxLength`: what the form takes at most, 64 or more; longer ids become a hash. */
  constructor(maxLength = Number.POSITIVE_INFINITY) {
    this.maxLength = maxLength;
  }

  /** The id of the next call in the history. An id that stands for a second call gets another name. */
  call(id: string): string {
    const count = (this.calls.get(id) ?? 0) + 1;
    this.calls.set(id, count);
    return this.encode(id, count);
  }

  /** The id of a result: that of the latest call with this id. */
  result(id: string): string {
    return this.encode(id, this.calls.get(id) ?? 1);
  }

  /** Ids that begin like a rewritten one are rewritten too, so no two ids can meet. */
  private encode(id: string, count: number): string {
    if (count === 1 && id.length <= this.maxLength && VALID.test(id) && !id.startsWith(PREFIX)) return id;
    const text = count === 1 ? id : `${id}\u0000${count}`;
    const encoded = PREFIX + Buffer.from(text, 'utf8').toString('base64url');
    if (encoded.length <= this.maxLength) return encoded;
    return PREFIX + createHash('sha256').update(text, 'utf8').digest('base64url');
  }
}
