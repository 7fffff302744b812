import { createHash, createHmac } from 'node:crypto';

/** SHA-256 for AWS's signing library: Node's, because the vendor's is plain JavaScript and bodies may contain images. */
export class SigningHash {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    const key = ArrayBuffer.isView(secret) ? Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength) : secret;
    this.#hash =
      key === undefined
        ? createHash('sha256')
        : createHmac('sha256', key instanceof ArrayBuffer ? Buffer.from(key) : key);
  }

  update(chunk: Uint8Array): void {
    this.#hash.update(chunk);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('a hash is used once');
  }
}
