/** The header `Idempotency-Key`: a batch that is submitted again with the same key and body is the first one. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, invalidField } from '../../base/errors.ts';
import type { Batch } from '../batch.ts';

const LONGEST = 255;

/** @throws GatewayError 400 for an empty or too long key */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || key === '' || key.length > LONGEST) {
    throw invalidField('Idempotency-Key', `must have 1 to ${LONGEST} characters`);
  }
  return key;
}

/** A body that is hashed while it is read. */
export class HashedBody implements AsyncIterable<Buffer> {
  readonly #content: AsyncIterable<Buffer>;
  readonly #hash = createHash('sha256');

  constructor(content: AsyncIterable<Buffer>) {
    this.#content = content;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of this.#content) {
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** Of the whole body, once it has been read. */
  sha256(): Buffer {
    return this.#hash.copy().digest();
  }
}

/** @throws GatewayError 422 if the key belongs to a batch with another body */
export function refuseOtherBody({ bodySha256 }: Batch, sha256: Buffer): void {
  if (bodySha256?.equals(sha256)) return;
  throw new GatewayError('unprocessable', 'this Idempotency-Key was used for a batch with another body');
}
