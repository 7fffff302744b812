/** A bound that many share: what one of them takes the others cannot have until it is given back. */
export class Room {
  #left: number;

  constructor(size: number) {
    this.#left = size;
  }

  /** False, and nothing taken, when there is not so much left. */
  take(size: number): boolean {
    if (size > this.#left) return false;
    this.#left -= size;
    return true;
  }

  give(size: number): void {
    this.#left += size;
  }
}
