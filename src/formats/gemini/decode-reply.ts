/**
 * Decodes a complete reply of `generateContent`. A streaming method called without `alt=sse` returns a list of such
 * replies.
 */

import type { Turn } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { collect } from '../conversation/replay.ts';
import { GeminiDecoder } from './decoder.ts';

export function decodeReply(value: unknown, seed?: string): { turn: Turn } | { failure: UpstreamFailure } {
  const decoder = new GeminiDecoder(seed);
  const replies: unknown[] = Array.isArray(value) ? value : [value];
  const events = [...replies.flatMap((reply) => decoder.read('', 'whole', reply)), ...decoder.closeWhole()];
  const failed = events.find((event) => event.type === 'failure');
  return failed === undefined ? { turn: collect(events) } : { failure: failed.failure };
}
