/** A limit that many holders share. */
export class Allowance {
  #left: number;

  /** @param most that is held at once, bytes or others */
  constructor(most: number) {
    this.#left = most;
  }

  /** Takes some, if they are left. */
  take(some: number): boolean {
    if (some > this.#left) return false;
    this.#left -= some;
    return true;
  }

  give(some: number): void {
    this.#left += some;
  }
}
