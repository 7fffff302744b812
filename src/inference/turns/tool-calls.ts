/**
 * Counts whether a client could run the tool calls of an answer: each must name a declared tool, with a JSON object (or
 * an empty text) as arguments. The sort metric `exacto` uses the counts; nothing is refused because of them.
 */
import { byteText, type TextEncoding } from '../../base/byte-text.ts';
import { parseJson } from '../../base/json.ts';
import type { Part, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';

export interface ToolCallCounts {
  made: number;
  invalid: number;
}

/** Calls with longer arguments are not counted. */
const MAX_ARGUMENTS_LENGTH = 1024 * 1024;
/** The most calls of one answer that are counted. */
const MAX_CALLS = 1_000;

interface OpenCall {
  name: string;
  arguments: string;
  custom: boolean;
}

export class ToolCallJudge {
  readonly counts: ToolCallCounts = { made: 0, invalid: 0 };
  readonly #declared: ReadonlySet<string>;
  readonly #open = new Map<string, OpenCall>();

  /** @param encoding of the answer's texts */
  constructor(declared: readonly string[], encoding: TextEncoding = 'utf8') {
    this.#declared = new Set(encoding === 'utf8' ? declared : declared.map(byteText));
  }

  event(event: TurnEvent): void {
    if (event.type === 'partStart') {
      if (event.part.type !== 'toolCall' || this.#open.size >= MAX_CALLS) return;
      const { name, arguments: text, custom = false } = event.part;
      this.#open.set(`${event.choice} ${event.index}`, { name, arguments: text, custom });
    } else if (event.type === 'partDelta') {
      const { arguments: more } = event.delta as { arguments?: string };
      if (more === undefined || this.#open.size === 0) return;
      const call = this.#open.get(`${event.choice} ${event.index}`);
      if (call !== undefined && call.arguments.length <= MAX_ARGUMENTS_LENGTH) call.arguments += more;
    } else if (event.type === 'partStop' && this.#open.size > 0) {
      const key = `${event.choice} ${event.index}`;
      const call = this.#open.get(key);
      this.#open.delete(key);
      if (call !== undefined) this.#judge(call);
    }
  }

  turn({ choices }: Turn): void {
    for (const { parts } of choices) for (const part of parts) this.#part(part);
  }

  #part(part: Part): void {
    if (part.type === 'toolCall') this.#judge({ ...part, custom: part.custom === true });
  }

  #judge({ name, arguments: text, custom }: OpenCall): void {
    if (text.length > MAX_ARGUMENTS_LENGTH || this.counts.made >= MAX_CALLS) return;
    this.counts.made += 1;
    if (!this.#declared.has(name) || !(custom || text.trim() === '' || isObject(text))) this.counts.invalid += 1;
  }
}

function isObject(text: string): boolean {
  try {
    const value = parseJson(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
