/** Where the bytes of blobs are. */

/** As the row of a blob names it. */
export type BackendKind = 'disk' | 's3';

export interface BlobBackend {
  readonly kind: BackendKind;
  /** For messages: the folder or the bucket. */
  readonly location: string;
  /**
   * Stores all of `content` under a new key, durably, or nothing: when it rejects, what was written is removed or is
   * found again by its key.
   */
  write(key: string, content: AsyncIterable<Buffer>): Promise<void>;
  /** @param range first byte and the one after the last; all of it without. Rejects with `BlobMissing`. */
  read(key: string, range?: { start: number; end: number }): Promise<AsyncIterable<Buffer>>;
  /** Does nothing for what is not there. */
  remove(key: string): Promise<void>;
  /** Removes what writes that began before this time left behind and `remove` cannot find. */
  sweep?(before: Date): Promise<void>;
  close(): Promise<void>;
}

/** The row is there, the bytes are not. */
export class BlobMissing extends Error {
  constructor(key: string, location: string, cause?: unknown) {
    super(`blob ${key} is missing from ${location}`, { cause });
  }
}

/** The disk is full, the bucket cannot be reached: try again later. */
export class BlobUnavailable extends Error {}
