/** Replies that an operation with a single public format cannot use. */
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';

export function tooLarge(status: number): UpstreamFailure {
  return { kind: 'malformed', status, message: 'the upstream response is too large' };
}

export function cut(): UpstreamFailure {
  return { kind: 'cut', status: null, message: 'the upstream ended its stream without an end marker' };
}

export function endless(status: number): UpstreamFailure {
  return { kind: 'malformed', status, message: 'the upstream answered with bytes of unknown length' };
}

export function empty(): UpstreamFailure {
  return { kind: 'empty', status: 502, message: 'the upstream answered without a byte' };
}
