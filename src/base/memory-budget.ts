/** A bound shared by many users: what one takes is unavailable to others until it is returned. */
export class MemoryBudget {
  #left: number;

  constructor(size: number) {
    this.#left = size;
  }

  /** Returns false and takes nothing if there is not enough left. */
  take(size: number): boolean {
    if (size > this.#left) return false;
    this.#left -= size;
    return true;
  }

  give(size: number): void {
    this.#left += size;
  }
}
