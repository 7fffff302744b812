/** Decrypted vectors of files, kept for the next search. The vectors of a file never change; a new version of it has another id. */

const MOST_BYTES = 64 * 1024 * 1024;
const LOADED_AT_ONCE = 32;
/** Bytes of vectors after which other work gets its turn: a few milliseconds of comparing. */
const TURN_BYTES = 2 * 1024 * 1024;

type Load = (ids: readonly string[]) => Promise<ReadonlyMap<string, Buffer>>;

export class VectorMemory {
  /** The least recently used first. */
  readonly #kept = new Map<string, Buffer>();
  #bytes = 0;

  /** The vectors of the files that have any. Other work gets its turn in between. */
  async *each(ids: readonly string[], load: Load): AsyncGenerator<readonly [string, Buffer]> {
    let bytes = 0;
    for (let first = 0; first < ids.length; first += LOADED_AT_ONCE) {
      const some = ids.slice(first, first + LOADED_AT_ONCE);
      const missing = some.filter((id) => !this.#kept.has(id));
      const loaded = missing.length === 0 ? new Map<string, Buffer>() : await load(missing);
      for (const id of some) {
        const vectors = loaded.get(id) ?? this.#kept.get(id);
        if (vectors === undefined) continue;
        this.#keep(id, vectors);
        yield [id, vectors];
        bytes += vectors.length;
        if (bytes < TURN_BYTES) continue;
        bytes = 0;
        await new Promise(setImmediate);
      }
      await new Promise(setImmediate);
    }
  }

  #keep(id: string, vectors: Buffer): void {
    if (!this.#kept.delete(id)) this.#bytes += vectors.length;
    this.#kept.set(id, vectors);
    for (const [oldest, { length }] of this.#kept) {
      if (this.#bytes <= MOST_BYTES) return;
      this.#kept.delete(oldest);
      this.#bytes -= length;
    }
  }
}
