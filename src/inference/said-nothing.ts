/** Answers that say nothing, or say it outside of their form. */
import type { Finish, Turn } from '../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import { unifiedWord } from '../formats/conversation/finish-words.ts';
import { isVisible } from './visible.ts';

/**
 * The failure that a 200 without visible content is: it ended in an error, or it says nothing and no output was paid for.
 * A refusal says something. Undefined for an answer that only hides what it says.
 */
export function unseenFailure(finish: Finish | undefined, billed: boolean): UpstreamFailure | undefined {
  if (finish?.unified === 'error' || isUnknownEnd(finish)) {
    const word = finish.native === null ? '' : `: ${finish.native.slice(0, LONGEST_WORD)}`;
    const message = `the upstream ended its answer without content${word}`;
    return { kind: 'server', status: 200, message, code: finish.native };
  }
  if (billed || isRefusal(finish)) return undefined;
  return { kind: 'empty', status: 200, message: 'the upstream answered without any content' };
}

const LONGEST_WORD = 100;

function isUnknownEnd(finish: Finish | undefined): finish is Finish {
  return finish?.unified === 'stop' && finish.native !== null && unifiedWord(finish.native) === undefined;
}

/** The same of a whole answer, for which the first choice speaks; one that reached its limit says that. */
export function turnFailure({ choices, usage }: Turn): UpstreamFailure | undefined {
  const silent = choices.every(({ parts, finish }) => finish.unified !== 'length' && !parts.some(isVisible));
  if (!silent || choices.some(({ finish }) => isRefusal(finish))) return undefined;
  return unseenFailure(choices[0]?.finish, (usage?.output ?? 0) > 0);
}

export function isRefusal(finish: Finish | undefined): boolean {
  return finish?.unified === 'content_filter';
}

/** Some upstreams break into a stream with a bare JSON error object: one text that the decoder can read. */
export function strayError(stray: string): string | undefined {
  if (!stray.includes('"error"')) return undefined;
  try {
    const value: unknown = JSON.parse(stray);
    return JSON.stringify(Array.isArray(value) ? value[0] : value);
  } catch {
    // Cut off in the middle of it.
    return /^\s*[[{]/.test(stray) ? '{"error":{"message":"the upstream broke off within an error"}}' : undefined;
  }
}
