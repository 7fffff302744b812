/**
 * Writes one object from a stream of unknown length: small content with one request, larger content in parts of equal
 * size. An object that exists is never overwritten.
 */
import { createHash, randomUUID } from 'node:crypto';
import type * as S3 from '@aws-sdk/client-s3';
import type { Allowance } from '../../base/allowance.ts';
import { BlobUnavailable } from '../backend.ts';
import { type S3Connection, S3Refusal } from './connection.ts';

/** The smallest that S3 takes. All parts but the last have it, which some services require. */
export const PART_BYTES = 5 * 1024 * 1024;
/** Metadata that shows whose write an object is. */
const WRITER = 'writer';

export class ObjectWriter {
  readonly #s3: S3Connection;
  readonly #target: { Bucket: string; Key: string };
  readonly #memory: Allowance;
  readonly #writer = randomUUID();
  readonly #parts: S3.CompletedPart[] = [];
  #chunks: Buffer[] = [];
  #buffered = 0;
  #uploadId: string | undefined;

  /** @param memory bounds what all writers together keep in memory */
  constructor(s3: S3Connection, key: string, memory: Allowance) {
    this.#s3 = s3;
    this.#target = { Bucket: s3.bucket, Key: key };
    this.#memory = memory;
  }

  async add(chunk: Buffer): Promise<void> {
    let rest = chunk;
    while (this.#buffered + rest.length > PART_BYTES) {
      const fits = PART_BYTES - this.#buffered;
      this.#keep(rest.subarray(0, fits));
      rest = rest.subarray(fits);
      await this.#sendPart();
    }
    this.#keep(rest);
  }

  async finish(): Promise<void> {
    if (this.#uploadId === undefined) return this.#exclusively(this.#put(this.#take()));
    await this.#sendPart();
    await this.#exclusively(
      this.#s3.send((client) =>
        client.completeMultipartUpload({
          ...this.#target,
          UploadId: this.#uploadId,
          MultipartUpload: { Parts: this.#parts },
          IfNoneMatch: '*',
        }),
      ),
    );
  }

  /** Frees memory. Parts that stay are found by `sweepUploads`. */
  async abandon({ removeParts }: { removeParts: boolean }): Promise<void> {
    this.#memory.release(this.#buffered);
    this.#chunks = [];
    this.#buffered = 0;
    if (this.#uploadId === undefined || !removeParts) return;
    const upload = { ...this.#target, UploadId: this.#uploadId };
    await this.#s3.send((client) => client.abortMultipartUpload(upload)).catch(() => undefined);
  }

  #keep(chunk: Buffer): void {
    if (!this.#memory.take(chunk.length)) throw new BlobUnavailable('too much content is being written at once');
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
  }

  #take(): Buffer {
    const bytes = Buffer.concat(this.#chunks, this.#buffered);
    this.#chunks = [];
    return bytes;
  }

  #free(): void {
    this.#memory.release(this.#buffered);
    this.#buffered = 0;
  }

  async #put(bytes: Buffer): Promise<void> {
    try {
      await this.#s3.send((client) =>
        client.putObject({
          ...this.#target,
          Body: bytes,
          ChecksumSHA256: sha256(bytes),
          IfNoneMatch: '*',
          Metadata: { [WRITER]: this.#writer },
        }),
      );
    } finally {
      this.#free();
    }
  }

  async #sendPart(): Promise<void> {
    const bytes = this.#take();
    try {
      this.#uploadId ??= await this.#begin();
      const part = { PartNumber: this.#parts.length + 1, ChecksumSHA256: sha256(bytes) };
      const { ETag } = await this.#s3.send((client) =>
        client.uploadPart({ ...this.#target, ...part, UploadId: this.#uploadId, Body: bytes }),
      );
      this.#parts.push({ ...part, ETag });
    } finally {
      this.#free();
    }
  }

  async #begin(): Promise<string> {
    const { UploadId } = await this.#s3.send((client) =>
      client.createMultipartUpload({
        ...this.#target,
        ChecksumAlgorithm: 'SHA256',
        Metadata: { [WRITER]: this.#writer },
      }),
    );
    if (UploadId === undefined) throw new BlobUnavailable(`${this.#s3.location} began an upload without an id`);
    return UploadId;
  }

  /**
   * A request whose response was lost is repeated by the client, and its second try is refused because the first one
   * has written the object: whose write is there decides.
   */
  async #exclusively(writing: Promise<unknown>): Promise<void> {
    try {
      await writing;
    } catch (error) {
      if (!(error instanceof S3Refusal)) throw error;
      if ((await this.#writerOf()) === this.#writer) return;
      const message =
        error.status === 412
          ? `an object ${this.#target.Key} is there already`
          : `the write was refused: ${error.code}`;
      throw new BlobUnavailable(`${this.#s3.location}: ${message}`, { cause: error });
    }
  }

  async #writerOf(): Promise<string | undefined> {
    try {
      const { Metadata } = await this.#s3.send((client) => client.headObject(this.#target));
      return Metadata?.[WRITER];
    } catch (error) {
      if (error instanceof S3Refusal) return undefined;
      throw error;
    }
  }
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64');
}
