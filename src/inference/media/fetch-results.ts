/** Pictures that a provider made and only names by address: fetched through the checked egress, like a user's own. */
import { sniffMediaType } from '../../base/media-type.ts';
import { type Egress, EgressError } from '../../egress/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { FetchedMedium } from '../../formats/single/index.ts';

/** More than any answer has. */
const MOST_RESULTS = 32;

/**
 * @param maxBytes of all of them together; @param timeoutMs for all of them
 * @returns what stands at the addresses, or why the answer is none; undefined when it was cancelled
 */
export async function fetchResults(
  egress: Egress,
  urls: readonly string[],
  { maxBytes, timeoutMs, signal }: { maxBytes: number; timeoutMs: number; signal: AbortSignal },
): Promise<ReadonlyMap<string, FetchedMedium> | { failure: UpstreamFailure } | undefined> {
  const distinct = [...new Set(urls)];
  if (distinct.length > MOST_RESULTS) return broken('more pictures than were asked for');
  const fetched = new Map<string, FetchedMedium>();
  let left = maxBytes;
  try {
    // One after the other: what they may hold in memory is one limit for all.
    for (const url of distinct) {
      const { status, body } = await egress.request({ url, maxBytes: left, timeoutMs, signal });
      if (status >= 300) return broken(`a picture whose address answered ${status}`);
      const mediaType = sniffMediaType(body);
      if (!mediaType?.startsWith('image/')) return broken('a picture whose address leads to something else');
      left -= body.length;
      fetched.set(url, { mediaType, data: body.toString('base64') });
    }
  } catch (error) {
    if (signal.aborted) return undefined;
    return broken(`a picture whose address ${error instanceof EgressError ? error.message : 'could not be fetched'}`);
  }
  return fetched;
}

function broken(what: string): { failure: UpstreamFailure } {
  return { failure: { kind: 'malformed', status: null, message: `the upstream answered with ${what}` } };
}
