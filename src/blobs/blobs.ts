/** Writes, reads and removes blobs. */
import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { unavailable } from '../storage/unavailable.ts';
import { type BackendKind, type BlobBackend, BlobMissing, BlobUnavailable } from './backend.ts';
import * as store from './store.ts';

/** A blob that nothing keeps by then belongs to a request that failed or a process that died. */
const ABANDONED_MS = 24 * 3_600_000;
/** A write that seems to have failed may still take effect in a distant storage. */
const UNSETTLED_MS = 3_600_000;
const CLEAN_MS = 600_000;
const ROWS_AT_ONCE = 100;
const REMOVED_AT_ONCE = 10;

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
  /** For new blobs. */
  backend: BlobBackend;
  /** Those that may have older ones. */
  others?: readonly BlobBackend[];
}

export interface Blobs {
  /** Where the bytes are, for messages to an operator. */
  readonly location: string;
  /**
   * Stores the content durably. It is removed again after a day unless something keeps it. Rejects as `content` does, and
   * with GatewayError 503 when there is no space or the storage is away.
   */
  write(content: AsyncIterable<Buffer>): Promise<Blob>;
  /** In the transaction that makes the blob part of something. Throws when it is gone. */
  keep(tx: Queryable, id: string): Promise<void>;
  /** In the transaction after which nothing needs the blob any more. */
  drop(tx: Queryable, id: string): Promise<void>;
  /** What is known of its content. @throws GatewayError 500 if it is gone */
  find(id: string): Promise<Blob>;
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
  readonly #backends: ReadonlyMap<BackendKind, BlobBackend>;

  constructor(options: BlobOptions) {
    this.#options = options;
    this.#backends = new Map([...(options.others ?? []), options.backend].map((backend) => [backend.kind, backend]));
  }

  get location(): string {
    return this.#options.backend.location;
  }

  async write(content: AsyncIterable<Buffer>): Promise<Blob> {
    const { database, clock, backend } = this.#options;
    const id = uuidv7(clock.now());
    await store.insertBlob(database, id, backend.kind, new Date(clock.now()));
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
    // Its row is gone when it took longer than a day: nothing else would remove its bytes.
    if (!(await store.completeBlob(database, blob))) {
      await backend.remove(id);
      throw unavailable('the content took too long to arrive');
    }
    return blob;
  }

  async keep(tx: Queryable, id: string): Promise<void> {
    if (!(await store.keepBlob(tx, id))) throw new Error(`blob ${id} is gone`);
  }

  drop(tx: Queryable, id: string): Promise<void> {
    return store.dropBlob(tx, id);
  }

  async find(id: string): Promise<Blob & store.RemovableBlob> {
    const blob = await store.findBlob(this.#options.database, id);
    if (blob === undefined) throw this.#failed(id, new BlobMissing(id, this.location));
    return blob;
  }

  async read(id: string, range?: { start: number; end: number }): Promise<AsyncIterable<Buffer>> {
    const blob = await this.find(id);
    try {
      const content = presented(await this.#backendOf(blob).read(id, range));
      return range === undefined ? verified(content, blob) : content;
    } catch (error) {
      throw this.#failed(id, error);
    }
  }

  async clean(): Promise<void> {
    const { database, clock } = this.#options;
    const now = clock.now();
    const abandonedBefore = new Date(now - ABANDONED_MS);
    const removable = {
      kinds: [...this.#backends.keys()],
      abandonedBefore,
      settledBefore: new Date(now - UNSETTLED_MS),
      limit: ROWS_AT_ONCE,
    };
    for (let found = ROWS_AT_ONCE; found === ROWS_AT_ONCE; ) {
      const { count, failures } = await database.transaction(async (tx) => {
        const blobs = await store.removableBlobs(tx, removable);
        const failures = await this.#removeBytes(tx, blobs);
        return { count: blobs.length, failures };
      });
      if (failures.length > 0) throw failures[0];
      found = count;
    }
    for (const backend of this.#backends.values()) await backend.sweep?.(abandonedBefore);
  }

  async close(): Promise<void> {
    for (const backend of this.#backends.values()) await backend.close();
  }

  #failed(id: string, error: unknown): unknown {
    if (error instanceof BlobMissing) this.#options.log.error('the content of a blob is missing', { blob: id, error });
    return presentable(error);
  }

  /** Rows whose bytes could not be removed stay. */
  async #removeBytes(tx: Queryable, blobs: readonly store.RemovableBlob[]): Promise<unknown[]> {
    const [removed, failures]: [string[], unknown[]] = [[], []];
    for (let at = 0; at < blobs.length && failures.length === 0; at += REMOVED_AT_ONCE) {
      const some = blobs.slice(at, at + REMOVED_AT_ONCE);
      const outcomes = await Promise.allSettled(some.map((blob) => this.#backendOf(blob).remove(blob.id)));
      for (const [n, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') removed.push(some[n]!.id);
        else failures.push(outcome.reason);
      }
    }
    await store.deleteBlobs(tx, removed);
    return failures;
  }

  #backendOf({ id, backend }: store.RemovableBlob): BlobBackend {
    const found = this.#backends.get(backend);
    if (found === undefined) throw new BlobUnavailable(`blob ${id} is stored in ${backend}, which is not configured`);
    return found;
  }
}

async function* each(content: AsyncIterable<Buffer>, see: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    see(chunk);
    yield chunk;
  }
}

/** A storage may also fail after it has begun to answer. */
async function* presented(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* content;
  } catch (error) {
    throw presentable(error);
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
