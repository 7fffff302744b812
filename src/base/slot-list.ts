/**
 * A set of members that are added and removed with every request. Not a Set: when V8 rebuilds a Set's table, the old table keeps
 * pointing to the new one, so once a table is in the old generation, everything that its successors ever held is retained
 * until a major collection. This structure retains nothing.
 */
export class SlotList<T extends object> {
  readonly #slots: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#slots.length - this.#free.length;
  }

  /** Returns the slot, which `delete` needs. */
  add(member: T): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = member;
    return slot;
  }

  /** Does nothing if the slot is empty or taken by another member. */
  delete(member: T, slot: number): void {
    if (this.#slots[slot] !== member) return;
    this.#slots[slot] = undefined;
    this.#free.push(slot);
  }

  *[Symbol.iterator](): Generator<T> {
    for (const member of this.#slots) if (member !== undefined) yield member;
  }
}
