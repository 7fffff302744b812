/**
 * A set of members that are added and removed with every request. Not a Set: when V8 rebuilds a Set's table, the old table keeps
 * pointing to the new one, so once a table is in the old generation, everything that its successors ever held is retained
 * until a major collection. This structure retains nothing.
 */
export class Roster<T extends object> {
  readonly #seats: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#seats.length - this.#free.length;
  }

  /** Returns the seat, which `delete` needs. */
  add(member: T): number {
    const seat = this.#free.pop() ?? this.#seats.length;
    this.#seats[seat] = member;
    return seat;
  }

  /** Does nothing if the seat is empty or taken by another member. */
  delete(member: T, seat: number): void {
    if (this.#seats[seat] !== member) return;
    this.#seats[seat] = undefined;
    this.#free.push(seat);
  }

  *[Symbol.iterator](): Generator<T> {
    for (const member of this.#seats) if (member !== undefined) yield member;
  }
}
