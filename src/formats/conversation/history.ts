/**
 * The history of a request as units that only make sense as a whole: a tool call with its result, reasoning with what
 * follows it, a question with the answer to it. Pure.
 */

import { type Fields, fieldsOf, listOf, textOf } from './fields.ts';

/** How a format writes its history. */
export interface HistoryWords {
  /** The request member that holds the items. */
  readonly root: 'messages' | 'input' | 'contents';
  /** The member of an item that holds its text or parts. */
  readonly content: 'content' | 'parts';
  /** A part that is a text. */
  textPart(text: string): Record<string, unknown>;
  item(value: unknown): HistoryItem;
  /** The request member for instructions outside of the history, and their form. Absent: they are in the history. */
  readonly instructions?: InstructionWords;
}

interface InstructionWords {
  /** The member, as a request names it. */
  member(request: Readonly<Fields>): string;
  /** The texts in a value of the member, undefined included. */
  read(value: unknown): string[];
  /** The value with another text after those that it has. */
  with(value: unknown, text: string): unknown;
  /** Answers repeat the member. */
  readonly echoed?: true;
}

export interface HistoryItem {
  /**
   * `pinned`: instructions and the like, which apply to all of the history; `user`; `assistant`; `result` of a call;
   * `prefix`: belongs to the item after it.
   */
  kind: 'pinned' | 'user' | 'assistant' | 'result' | 'prefix';
  /** Ids of the calls in it. */
  calls?: readonly string[];
  /** Ids of the calls whose results are in it. */
  results?: readonly string[];
}

/** The texts of a content: a text, or a list of parts. */
export function textsOf(content: unknown): string[] {
  return typeof content === 'string' ? [content] : listOf(content).flatMap((part) => textOf(fieldsOf(part)['text']));
}

/** Consecutive items, as positions in the history: from `start` to before `end`. */
export interface HistoryUnit {
  start: number;
  end: number;
  /** The client's question is in it. */
  asks: boolean;
  pinned: boolean;
}

/** @param values the items as the request has them */
export function unitsOf(values: readonly unknown[], words: HistoryWords): HistoryUnit[] {
  const items = values.map((value) => words.item(value));
  const answered = new Set(items.flatMap(({ results = [] }) => results));
  const open = new Set<string>();
  const units: HistoryUnit[] = [];
  let unit: HistoryUnit | undefined;
  let answers = false;
  items.forEach((item, index) => {
    const { kind, calls = [], results = [] } = item;
    const before = items[index - 1]?.kind;
    // The first answer after a question stays with it, so that what is left alternates as before.
    const continues = open.size > 0 || kind === 'result' || before === 'prefix' || (isAnswer(kind) && !answers);
    const isPinned = kind === 'pinned' && open.size === 0;
    if (unit === undefined || !continues || isPinned || unit.pinned) {
      unit = { start: index, end: index, asks: false, pinned: isPinned };
      units.push(unit);
      answers = false;
    }
    unit.end = index + 1;
    if (kind === 'user') unit.asks = true;
    if (isAnswer(kind)) answers = true;
    // A call without a result in the history waits for nothing.
    for (const id of calls) if (answered.has(id)) open.add(id);
    for (const id of results) open.delete(id);
  });
  return units;
}

function isAnswer(kind: HistoryItem['kind']): boolean {
  return kind === 'assistant' || kind === 'prefix';
}
