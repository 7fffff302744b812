/** Answers that say nothing, or say it outside of their form. */
import type { Finish, Turn } from '../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import { isVisible } from './visible.ts';

/** A 200 that says nothing: no content and no output that was paid for. A refusal says something. */
export function isEmpty(turn: Turn): boolean {
  if ((turn.usage?.output ?? 0) > 0) return false;
  return turn.choices.every(
    ({ parts, finish }) => !isRefusal(finish) && finish.unified !== 'length' && !parts.some(isVisible),
  );
}

export function isRefusal(finish: Finish | undefined): boolean {
  return finish?.unified === 'content_filter';
}

export function emptyAnswer(): UpstreamFailure {
  return { kind: 'empty', status: 200, message: 'the upstream answered without any content' };
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
