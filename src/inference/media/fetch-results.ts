/** Fetches generated images that a provider returns as URLs, through the checked egress like the URLs of users. */
import { sniffMediaType } from '../../base/media-type.ts';
import { type Egress, EgressError } from '../../egress/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { FetchedMedium } from '../../formats/direct/index.ts';

/** More images than any answer has. */
const MAX_RESULTS = 32;

/**
 * @param maxBytes of all images together; @param timeoutMs for each image
 * @returns the images by URL, or the failure; undefined when cancelled
 */
export async function fetchResults(
  egress: Egress,
  urls: readonly string[],
  { maxBytes, timeoutMs, signal }: { maxBytes: number; timeoutMs: number; signal: AbortSignal },
): Promise<ReadonlyMap<string, FetchedMedium> | { failure: UpstreamFailure } | undefined> {
  const distinct = [...new Set(urls)];
  if (distinct.length > MAX_RESULTS) return broken(`more than ${MAX_RESULTS} images`);
  const fetched = new Map<string, FetchedMedium>();
  let left = maxBytes;
  try {
    // Sequential, so that one limit bounds the memory of all images.
    for (const url of distinct) {
      const { status, body } = await egress.request({ url, maxBytes: left, timeoutMs, signal });
      if (status >= 300) return broken(`an image URL that answered ${status}`);
      const mediaType = sniffMediaType(body);
      if (!mediaType?.startsWith('image/')) return broken('an image URL that does not point to an image');
      left -= body.length;
      fetched.set(url, { mediaType, data: body.toString('base64') });
    }
  } catch (error) {
    if (signal.aborted) return undefined;
    return broken(`an image URL that ${error instanceof EgressError ? error.message : 'could not be fetched'}`);
  }
  return fetched;
}

function broken(what: string): { failure: UpstreamFailure } {
  return { failure: { kind: 'malformed', status: null, message: `the upstream answered with ${what}` } };
}
