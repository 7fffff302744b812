/** The whole body of an answer, for what is asked for at leisure: bounded, and with a reason in words when there is none. */
import type { UpstreamCall, UpstreamReceiver } from '../../providers/index.ts';

/** What was asked for did not come; the message is for the operator and holds nothing of the answer's body. */
export class FetchError extends Error {}

/**
 * Starts a call with a receiver and resolves with the body of its answer.
 *
 * @throws FetchError for a failure, another status than 200, or a body of more than `maxBytes`
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
      failed: (failure) => reject(new FetchError(`could not be asked: ${failure.message}`)),
    });
  });
}

/** @throws FetchError */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new FetchError('answered with something that is not JSON');
  }
}
