/** Collects the whole body of a response outside the request path: size-limited, with a readable reason on failure. */
import type { UpstreamCall, UpstreamReceiver } from '../../providers/index.ts';

/** The fetch failed. The message is for the operator and contains nothing of the response body. */
export class FetchError extends Error {}

/**
 * Starts a call with a receiver and resolves with the response body.
 *
 * @throws FetchError for a failure, a status other than 200, or a body of more than `maxBytes`
 */
export function collect(start: (receiver: UpstreamReceiver) => UpstreamCall, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const call = start({
      head(status, headers) {
        if (status === 200) return;
        const where = headers['location'] === undefined ? '' : `, which leads to ${headers['location'].slice(0, 200)}`;
        reject(new FetchError(`answered with status ${status}${where}`));
        call.abort();
      },
      data(chunk) {
        size += chunk.length;
        if (size <= maxBytes) {
          chunks.push(chunk);
          return;
        }
        reject(new FetchError(`answered with more than ${maxBytes} bytes`));
        call.abort();
      },
      end: () => resolve(Buffer.concat(chunks)),
      failed: (failure) => reject(new FetchError(`could not be reached: ${failure.message}`)),
    });
  });
}

/** @throws FetchError */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new FetchError('answered with a body that is not JSON');
  }
}
