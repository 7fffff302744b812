/** Replies that an operation with a single public format cannot use, or whose end is not as it should be. */
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { FrameReader } from '../../providers/index.ts';
import { strayError } from './empty-answer.ts';

/** What a stream that ended without its end marker left: an event without its blank line, and a bare error. */
export function lastEvents(reader: FrameReader): [name: string, data: string][] {
  const events: [string, string][] = [];
  const unfinished = reader.end();
  if (unfinished !== null) events.push([unfinished.name, unfinished.data]);
  const stray = strayError(reader.stray, 'utf8');
  if (stray !== undefined) events.push(['error', stray]);
  return events;
}

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
