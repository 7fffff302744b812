/** Answers without visible content, and errors outside of the wire format. */
import { byteText, type TextEncoding } from '../../base/byte-text.ts';
import type { Finish, Turn } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { unifiedWord } from '../../formats/conversation/finish-words.ts';
import { isVisible } from './visible-output.ts';

/**
 * The failure for a 200 without visible content: it ended in an error, or nothing was output and nothing billed. A
 * refusal counts as content. Undefined for an answer whose output is merely hidden.
 */
export function emptyFailure(finish: Finish | undefined, billed: boolean): UpstreamFailure | undefined {
  if (finish?.unified === 'error' || isUnknownEnd(finish)) {
    const word = finish.native === null ? '' : `: ${finish.native.slice(0, MAX_WORD_LENGTH)}`;
    const message = `the upstream ended its answer without content${word}`;
    return { kind: 'server', status: 200, message, code: finish.native };
  }
  if (billed || isRefusal(finish)) return undefined;
  return { kind: 'empty', status: 200, message: 'the upstream answered without any content' };
}

const MAX_WORD_LENGTH = 100;

function isUnknownEnd(finish: Finish | undefined): finish is Finish {
  return finish?.unified === 'stop' && finish.native !== null && unifiedWord(finish.native) === undefined;
}

/**
 * The same for a whole answer, judged by its first choice. An answer that reached its output limit is not a failure.
 */
export function turnFailure({ choices, usage }: Turn): UpstreamFailure | undefined {
  const silent = choices.every(({ parts, finish }) => finish.unified !== 'length' && !parts.some(isVisible));
  if (!silent || choices.some(({ finish }) => isRefusal(finish))) return undefined;
  return emptyFailure(choices[0]?.finish, (usage?.output ?? 0) > 0);
}

export function isRefusal(finish: Finish | undefined): boolean {
  return finish?.unified === 'content_filter';
}

/** Some upstreams put a bare JSON error object into a stream. Returns it as text that the decoder can read. */
export function strayError(stray: string, encoding: TextEncoding): string | undefined {
  if (!stray.includes('"error"')) return undefined;
  try {
    const value: unknown = JSON.parse(stray);
    const error = JSON.stringify(Array.isArray(value) ? value[0] : value);
    return encoding === 'utf8' ? error : byteText(error);
  } catch {
    // The object was cut off.
    return /^\s*[[{]/.test(stray) ? '{"error":{"message":"the upstream broke off within an error"}}' : undefined;
  }
}
