/**
 * The messages of a session, kept in a file of the workspace's home, one JSON line each, so that the session continues after
 * a restart of the agent. A line that was being written when it ended is dropped.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Message } from './message.ts';

/** Messages at the end that are never shortened. */
const KEPT_WHOLE = 6;
/** Results of tools above this many characters are the first to go. */
const LONG_RESULT = 500;
const CHARACTERS_PER_TOKEN = 4;

export class History {
  #messages: Message[];
  readonly #file: string;

  /** @param folder that holds the files of all sessions */
  constructor(folder: string, sessionId: string) {
    mkdirSync(folder, { recursive: true });
    this.#file = path.join(folder, `${sessionId}.jsonl`);
    const stored = existsSync(this.#file) ? readLines(this.#file) : [];
    this.#messages = withResults(stored);
    if (stored.length > 0) this.#rewrite();
  }

  static exists(folder: string, sessionId: string): boolean {
    return /^[\w-]{1,64}$/.test(sessionId) && existsSync(path.join(folder, `${sessionId}.jsonl`));
  }

  get messages(): readonly Message[] {
    return this.#messages;
  }

  add(message: Message): void {
    this.#messages.push(message);
    appendFileSync(this.#file, `${JSON.stringify(message)}\n`);
  }

  /**
   * Drops old content until about `tokens` are left: first long results of tools, then whole steps, but never the first message
   * and the latest ones. Returns whether anything was dropped.
   */
  shorten(tokens: number): boolean {
    const limit = tokens * CHARACTERS_PER_TOKEN;
    const before = this.#messages;
    if (lengthOf(before) <= limit) return false;
    this.#messages = withoutOldSteps(withoutLongResults(before, limit), limit);
    if (lengthOf(this.#messages) === lengthOf(before)) return false;
    this.#rewrite();
    return true;
  }

  #rewrite(): void {
    writeFileSync(this.#file, this.#messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
  }
}

/** Each message is measured once. */
const lengths = new WeakMap<Message, number>();

function lengthOf(messages: readonly Message[]): number {
  return messages.reduce((total, message) => total + lengthOfOne(message), 0);
}

function lengthOfOne(message: Message): number {
  const length = lengths.get(message) ?? JSON.stringify(message).length;
  lengths.set(message, length);
  return length;
}

function readLines(file: string): Message[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return line === '' ? [] : [JSON.parse(line) as Message];
      } catch {
        return [];
      }
    });
}

/** Calls that have no result, since the agent was stopped, get one: models refuse a history without. */
function withResults(messages: readonly Message[]): Message[] {
  const answered = new Set(messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])));
  return messages.flatMap((message) => {
    const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : [];
    const open = calls.filter(({ id }) => !answered.has(id));
    return [
      message,
      ...open.map(
        ({ id }): Message => ({ role: 'tool', tool_call_id: id, content: 'interrupted: its effects are unknown' }),
      ),
    ];
  });
}

function withoutLongResults(messages: readonly Message[], limit: number): Message[] {
  let excess = lengthOf(messages) - limit;
  return messages.map((message, at) => {
    const isLong = message.role === 'tool' && message.content.length > LONG_RESULT;
    if (excess <= 0 || !isLong || at >= messages.length - KEPT_WHOLE) return message;
    const content = `[${message.content.length} characters, removed to save space]`;
    excess -= message.content.length - content.length;
    return { ...message, content };
  });
}

/** A step is a message with the results of its calls; they leave together. */
function withoutOldSteps(messages: readonly Message[], limit: number): Message[] {
  const [first, ...rest] = messages;
  if (first === undefined) return [];
  let length = lengthOf(messages);
  let dropped = 0;
  while (length > limit && dropped < rest.length - KEPT_WHOLE) {
    do length -= lengthOfOne(rest[dropped++]!);
    while (rest[dropped]?.role === 'tool');
  }
  return [first, ...rest.slice(dropped)];
}
