/**
 * The events of one running background response: numbered, and written to the database in the background, several at once, so
 * that any process can send them to a client.
 */
import { type Clock, Pause } from '../../base/clock.ts';
import { scanMembers, stringifyJson } from '../../base/json.ts';
import { patchMembers } from '../../base/json-edits.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import type { DataKey } from '../sealed.ts';
import { type EventRow, insertEvents } from './events.sql.ts';

/** Announced with the id of a response that has new events, or has ended. */
export const EVENTS_TOPIC = 'responses.events';

/** Between two writes. */
const WRITE_MS = 150;

interface EventParts {
  database: Database;
  changes: Changes;
  clock: Clock;
}

/** One event as JSON text, with the sequence number that clients see. */
export interface StoredEvent {
  number: number;
  type: string;
  data: string;
}

/** Those that a client gets before the response begins. @param response JSON of it */
export function firstEvents(response: string): StoredEvent[] {
  return ['response.created', 'response.queued'].map((type, number) => ({
    number,
    type,
    data: `{"type":"${type}","response":${response},"sequence_number":${number}}`,
  }));
}

export function sealedEvents(key: DataKey, events: readonly StoredEvent[]): EventRow {
  const [first, last] = [events[0]!.number, events.at(-1)!.number];
  return { first, last, sealed: key.seal(partOf(first), stringifyJson(events.map(({ data }) => data))) };
}

/** @throws SealingError */
export function openedEvents(key: DataKey, { first, sealed }: EventRow): StoredEvent[] {
  const list = JSON.parse(key.open(partOf(first), sealed)) as string[];
  return list.map((data) => {
    const { type, sequence_number: number } = JSON.parse(data) as { type: string; sequence_number: number };
    return { number, type, data };
  });
}

function partOf(first: number): string {
  return `events ${first}`;
}

export class EventLog {
  readonly #id: string;
  readonly #key: DataKey;
  readonly #parts: EventParts;
  /** Follows `firstEvents`. */
  #last = 1;
  #waiting: StoredEvent[] = [];
  #writing: Promise<void> | undefined;
  #ended = false;
  readonly #pause: Pause;

  constructor(id: string, key: DataKey, parts: EventParts) {
    this.#id = id;
    this.#key = key;
    this.#parts = parts;
    this.#pause = new Pause(parts.clock);
  }

  /** @param data JSON of an event of the run, which numbers its own from 0 */
  add(data: string, { type, sequence_number: own }: Fields): void {
    // Clients got this event when the response was queued. Others, such as debug events, do not belong to the format.
    if (type === 'response.created' || typeof type !== 'string' || typeof own !== 'number') return;
    const number = Math.max(this.#last + 1, own + 1);
    this.#last = number;
    const edits = [{ key: 'sequence_number', json: String(number) }];
    this.#waiting.push({ number, type, data: patchMembers(data, scanMembers(data), edits) });
    this.#writing ??= this.#write();
  }

  /** Writes the remaining events in the transaction that ends the response. */
  async end(tx: Queryable): Promise<void> {
    if (this.#waiting.length > 0) await insertEvents(tx, this.#id, sealedEvents(this.#key, this.#waiting));
    await this.#parts.changes.announce(tx, EVENTS_TOPIC, this.#id);
  }

  /** No further write begins. Resolves when the running one is over. */
  async stop(): Promise<void> {
    this.#ended = true;
    this.#pause.end();
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { database, changes } = this.#parts;
    while (this.#waiting.length > 0 && !this.#ended) {
      // A copy: more may arrive while these are written.
      const events = [...this.#waiting];
      try {
        await database.transaction(async (tx) => {
          await insertEvents(tx, this.#id, sealedEvents(this.#key, events));
          await changes.announce(tx, EVENTS_TOPIC, this.#id);
        });
        this.#waiting = this.#waiting.slice(events.length);
      } catch {
        // They are written with the next ones.
      }
      if (!this.#ended) await this.#pause.wait(WRITE_MS);
    }
    this.#writing = undefined;
  }
}
