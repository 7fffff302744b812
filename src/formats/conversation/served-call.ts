/**
 * Calls of tools that an upstream has run itself. Its own format gets its blocks unchanged; clients of other formats see
 * the call in their format's words, next to the sealed block that returns to the upstream. What is only shown carries a
 * marked id, by which it is left out of later requests.
 */
import type { OpaquePart } from './conversation.ts';
import { textOf } from './fields.ts';

export interface ServedCall {
  /** The upstream's id of the call. */
  readonly id: string;
  readonly tool: 'web_search' | 'web_fetch' | 'code_execution';
  /** The query, the URL, or the code. */
  readonly input: string;
  /** Absent in a part that is the call alone; the part with the result repeats the call. */
  readonly result?: ServedResult;
}

export interface ServedResult {
  readonly failed: boolean;
  /** Of a search. */
  readonly pages?: readonly { readonly url: string; readonly title: string; readonly published?: string }[];
  /** What code has printed. */
  readonly text?: string;
}

/** A call with its result. */
export type EndedCall = ServedCall & { readonly result: ServedResult };

const SHOWN = /^(?:ws|ci|srvtoolu)_shown_/;

/** The id of a call that is only shown. @param prefix of the client's format */
export function shownId(prefix: 'ws' | 'ci' | 'srvtoolu', { id }: ServedCall): string {
  return `${prefix}_shown_${id.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`;
}

/** Whether an id in a history marks a call that was only shown. */
export function isShownId(id: unknown): boolean {
  return SHOWN.test(textOf(id));
}

/** The call and result in a part of another format; undefined where there is nothing to show. */
export function endedCall({ served }: OpaquePart): EndedCall | undefined {
  return served?.result === undefined ? undefined : (served as EndedCall);
}

/** Name and members of an event about a running tool, in the responses format. */
export interface ToolReport {
  event: string;
  members: Record<string, unknown>;
}
