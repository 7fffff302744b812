/**
 * Remembers the reasoning that precedes tool calls, for clients that cannot carry it
 * (`formats/adapters/kept-thinking.ts`). Entries are in this process's memory for an hour, separate for each key
 * and bounded in size. Without an entry (expired, or in another process) the request is sent without the reasoning.
 */
import type { Clock } from '../../base/clock.ts';
import type { KeptThinking, ThinkingMemory } from '../../formats/adapters/index.ts';

/** In UTF-16 units. */
const MAX_SIZE = 16 * 1024 * 1024;
/** Overhead of one entry. */
const ENTRY_SIZE = 256;
const KEPT_MS = 60 * 60_000;

interface Entry {
  thinking: KeptThinking;
  size: number;
  keptAt: number;
}

export class RememberedThinking {
  readonly #clock: Clock;
  /** By key and call, the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  #size = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The memory of one key; it contains no other key's calls. */
  of(keyId: string): ThinkingMemory {
    const nameOf = (callId: string): string => `${keyId} ${callId}`;
    return {
      keep: (thinking) => {
        for (const callId of thinking.names.keys()) this.#set(nameOf(callId), thinking);
      },
      recall: (callId) => this.#get(nameOf(callId)),
    };
  }

  /** In UTF-16 units, roughly. */
  get size(): number {
    return this.#size;
  }

  #set(name: string, thinking: KeptThinking): void {
    this.#delete(name);
    const size = thinking.size + name.length + ENTRY_SIZE;
    this.#entries.set(name, { thinking, size, keptAt: this.#clock.monotonic() });
    this.#size += size;
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= MAX_SIZE) break;
      this.#delete(oldest);
    }
  }

  #get(name: string): KeptThinking | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    if (this.#clock.monotonic() - entry.keptAt > KEPT_MS) {
      this.#delete(name);
      return undefined;
    }
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    return entry.thinking;
  }

  #delete(name: string): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#entries.delete(name);
    this.#size -= entry.size;
  }
}
