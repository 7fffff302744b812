/**
 * Members that come and go with every request. A Set would do, but whenever V8 makes a Set's table anew, the old table
 * goes on pointing to the new one: as soon as one of them has grown too old for the frequent collections, everything that
 * its successors ever held is kept until the rare one comes. Here nothing is left behind.
 */
export class Roster<T extends object> {
  readonly #seats: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#seats.length - this.#free.length;
  }

  /** Its seat, which `delete` wants to know. */
  add(member: T): number {
    const seat = this.#free.pop() ?? this.#seats.length;
    this.#seats[seat] = member;
    return seat;
  }

  /** Does nothing when somebody else, or nobody, has the seat. */
  delete(member: T, seat: number): void {
    if (this.#seats[seat] !== member) return;
    this.#seats[seat] = undefined;
    this.#free.push(seat);
  }

  *[Symbol.iterator](): Generator<T> {
    for (const member of this.#seats) if (member !== undefined) yield member;
  }
}
