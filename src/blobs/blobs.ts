/** Writes, reads and removes blobs. */
import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { unavailable } from '../storage/unavailable.ts';
import { type BlobBackend, BlobMissing, BlobUnavailable } from './backend.ts';
import * as store from './store.ts';

/** A blob that nothing keeps by then belongs to a request that failed or a process that died. */
const ABANDONED_MS = 24 * 3_600_000;
const CLEAN_MS = 600_000;
const REMOVED_AT_ONCE = 100;

export interface Blob {
  readonly id: string;
  readonly bytes: number;
  /** Of the content. */
  readonly sha256: Buffer;
}

export interface BlobOptions {
  database: Database;
  clock: Clock;
  log: Log;
  backend: BlobBackend;
}

export interface Blobs {
  /** Where the bytes are, for messages to an operator. */
  readonly place: string;
  /**
   * Stores the content durably. It is removed again after a day unless something keeps it. Rejects as `content` does, and
   * with GatewayError 503 when there is no space or the storage is away.
   */
  write(content: AsyncIterable<Buffer>): Promise<Blob>;
  /** In the transaction that makes the blob part of something. Throws when it is gone. */
  keep(tx: Queryable, id: string): Promise<void>;
  /** In the transaction after which nothing needs the blob any more. */
  drop(tx: Queryable, id: string): Promise<void>;
  /**
   * The content. Reading all of it fails at the end when it is not what was stored.
   * @param range first byte and the one after the last
   */
  read(id: string, range?: { start: number; end: number }): Promise<AsyncIterable<Buffer>>;
  /** Removes what nothing needs, now. */
  clean(): Promise<void>;
  close(): Promise<void>;
}

export function createBlobs(options: BlobOptions): Blobs {
  return new StoredBlobs(options);
}

/** Removes the bytes of dropped blobs and of abandoned ones. */
export function cleanBlobsJob(blobs: Pick<Blobs, 'clean'>): JobKind {
  return { name: 'blobs.clean', runs: 'one', retries: 0, everyMs: CLEAN_MS, run: () => blobs.clean() };
}

class StoredBlobs implements Blobs {
  readonly #options: BlobOptions;

  constructor(options: BlobOptions) {
    this.#options = options;
  }

  get place(): string {
    return this.#options.backend.place;
  }

  async write(content: AsyncIterable<Buffer>): Promise<Blob> {
    const { database, clock, backend } = this.#options;
    const id = uuidv7(clock.now());
    await store.insertBlob(database, id, new Date(clock.now()));
    const hash = createHash('sha256');
    let bytes = 0;
    try {
      await backend.write(
        id,
        each(content, (chunk) => {
          hash.update(chunk);
          bytes += chunk.length;
        }),
      );
    } catch (error) {
      await store.dropBlob(database, id).catch(() => {});
      throw presentable(error);
    }
    const blob = { id, bytes, sha256: hash.digest() };
    await store.completeBlob(database, blob);
    return blob;
  }

  async keep(tx: Queryable, id: string): Promise<void> {
    if (!(await store.keepBlob(tx, id))) throw new Error(`blob ${id} is gone`);
  }

  drop(tx: Queryable, id: string): Promise<void> {
    return store.dropBlob(tx, id);
  }

  async read(id: string, range?: { start: number; end: number }): Promise<AsyncIterable<Buffer>> {
    const { database, backend, log } = this.#options;
    const blob = await store.findBlob(database, id);
    try {
      if (blob === undefined) throw new BlobMissing(id, backend.place);
      const content = await backend.read(id, range);
      return range === undefined ? verified(content, blob) : content;
    } catch (error) {
      if (error instanceof BlobMissing)
        log.error('the content of a blob is missing', { blob: id, place: backend.place });
      throw presentable(error);
    }
  }

  async clean(): Promise<void> {
    const { database, clock, backend } = this.#options;
    const abandonedBefore = new Date(clock.now() - ABANDONED_MS);
    for (;;) {
      const removed = await database.transaction(async (tx) => {
        const ids = await store.removableBlobs(tx, abandonedBefore, REMOVED_AT_ONCE);
        for (const id of ids) await backend.remove(id);
        await store.deleteBlobs(tx, ids);
        return ids.length;
      });
      if (removed < REMOVED_AT_ONCE) return;
    }
  }

  close(): Promise<void> {
    return this.#options.backend.close();
  }
}

async function* each(content: AsyncIterable<Buffer>, see: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    see(chunk);
    yield chunk;
  }
}

/** Storage that lost or changed bytes must not pass for what was stored. */
async function* verified(content: AsyncIterable<Buffer>, { id, bytes, sha256 }: Blob): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  let seen = 0;
  for await (const chunk of content) {
    hash.update(chunk);
    seen += chunk.length;
    yield chunk;
  }
  if (seen !== bytes || !hash.digest().equals(sha256)) throw new Error(`the content of blob ${id} is damaged`);
}

/** What a caller may be told; the cause is for the log. */
function presentable(error: unknown): unknown {
  if (error instanceof BlobUnavailable) return unavailable('the storage for files cannot be used now', error);
  if (error instanceof BlobMissing) {
    return new GatewayError('server', 'the content is missing from the storage for files', { cause: error });
  }
  return error;
}
