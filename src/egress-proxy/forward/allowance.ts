/** A limit on memory that many holders share. */
export class Allowance {
  #left: number;

  /** @param bytes the most that is held at once */
  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** Takes `bytes`, if they are left. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  give(bytes: number): void {
    this.#left += bytes;
  }
}
