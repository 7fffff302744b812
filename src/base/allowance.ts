/** A limit that many holders share, such as bytes or connections: what one takes is unavailable to others until it is released. */
export class Allowance {
  #free: number;

  constructor(size: number) {
    this.#free = size;
  }

  /** Returns false and takes nothing if there is not enough left. */
  take(size: number): boolean {
    if (size > this.#free) return false;
    this.#free -= size;
    return true;
  }

  release(size: number): void {
    this.#free += size;
  }
}
