/** Sends the events of a background response to a client: those that are stored, then new ones, whatever process runs it. */
import type { Clock, Timer } from '../../base/clock.ts';
import { stringifyJson } from '../../base/json.ts';
import type { HttpSink } from '../../inference/index.ts';
import type { Changes, Database } from '../../storage/database.ts';
import type { Claims } from '../claims.ts';
import { isLost, isOver, shown } from '../response.ts';
import { type DataKey, presented } from '../sealed.ts';
import { findResponse, findRow, type Viewer } from '../store.ts';
import { eventsAfter, lastEvents } from './events.sql.ts';
import { EVENTS_TOPIC, openedEvents, type StoredEvent } from './events.ts';

/** How often a silent stream gets a keep-alive, and the database is read although nothing was announced. */
const QUIET_MS = 5_000;
const ROWS_AT_ONCE = 50;
const TERMINAL: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'error',
]);

interface FollowParts {
  database: Database;
  clock: Clock;
  announcements: EventAnnouncements;
  claims: Claims;
  keepAliveComment: string;
}

interface Followed {
  id: string;
  workspaceId: string;
  key: DataKey;
  /** The last sequence number that the client has seen; -1 for none. */
  after: number;
  /** Of the response to the client. */
  headers: Record<string, string>;
}

/** The readers of this process that wait for a response, by its id. */
export class EventAnnouncements {
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(changes: Pick<Changes, 'subscribe'>) {
    changes.subscribe(EVENTS_TOPIC, (id) => {
      const ids = id === null ? [...this.#waiting.keys()] : [id];
      for (const each of ids) for (const wake of this.#waiting.get(each) ?? []) wake();
    });
  }

  /** Calls `wake` on each announcement until the returned function is called. */
  listen(id: string, wake: () => void): () => void {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(wake));
    return () => {
      waiting.delete(wake);
      if (waiting.size === 0) this.#waiting.delete(id);
    };
  }
}

/** Resolves when the stream is at its end or the client has left. The client gets the head with the first text. */
export async function follow(sink: HttpSink, followed: Followed, parts: FollowParts): Promise<void> {
  const news = new Signal(parts.clock);
  const drained = new Signal(parts.clock);
  const silence = parts.announcements.listen(followed.id, () => news.raise());
  sink.onClose(() => {
    news.raise();
    drained.raise();
  });
  sink.onDrain(() => drained.raise());
  sink.open(followed.headers);
  try {
    await new Follower(sink, followed, parts, { news, drained }).run();
  } finally {
    silence();
  }
}

class Follower {
  readonly #sink: HttpSink;
  readonly #followed: Followed;
  readonly #parts: FollowParts;
  /** New events, or the end. */
  readonly #news: Signal;
  readonly #drained: Signal;
  #last: number;
  #ended = false;

  constructor(
    sink: HttpSink,
    followed: Followed,
    parts: FollowParts,
    { news, drained }: { news: Signal; drained: Signal },
  ) {
    this.#sink = sink;
    this.#followed = followed;
    this.#parts = parts;
    this.#news = news;
    this.#drained = drained;
    this.#last = followed.after;
  }

  async run(): Promise<void> {
    while (!this.#sink.closed) {
      // Read before the events: if the response is over, all of its events are stored.
      const over = await this.#isOver();
      await this.#sendStored();
      if (this.#sink.closed) return;
      if (over !== undefined) return this.#end(over);
      if (!(await this.#news.wait(QUIET_MS))) this.#sink.write(this.#parts.keepAliveComment, 'utf8');
    }
  }

  /** JSON of a response that is over, or was deleted. */
  async #isOver(): Promise<{ answer: string } | undefined> {
    const { database, clock, claims } = this.#parts;
    const { id, workspaceId, key } = this.#followed;
    const viewer: Viewer = { workspaceId, now: new Date(clock.now()) };
    const found = await findRow(database, id, viewer);
    if (found !== undefined && !isOver(found) && !isLost(found, claims.now())) return undefined;
    const row = found && (await findResponse(database, id, viewer));
    if (row === undefined)
      return { answer: stringifyJson({ id, object: 'response', status: 'cancelled', output: [] }) };
    const answer = await presented(() => key.open('answer', row.answer));
    return { answer: stringifyJson(shown(row, answer, claims.now())) };
  }

  async #sendStored(): Promise<void> {
    const { database } = this.#parts;
    const { id, key } = this.#followed;
    for (;;) {
      const rows = await eventsAfter(database, id, this.#last, ROWS_AT_ONCE);
      for (const row of rows) {
        for (const event of await presented(() => openedEvents(key, row))) {
          if (event.number > this.#last) await this.#send(event);
          if (this.#sink.closed) return;
        }
      }
      if (rows.length < ROWS_AT_ONCE) return;
    }
  }

  async #send({ number, type, data }: StoredEvent): Promise<void> {
    this.#last = number;
    this.#ended ||= TERMINAL.has(type);
    this.#drained.lower();
    const flows = this.#sink.write(`event: ${type}\ndata: ${data.replaceAll('\n', '\ndata: ')}\n\n`, 'utf8');
    // A client that reads slowly gets no further events until it has taken these.
    while (!flows && !this.#sink.closed) if (await this.#drained.wait(QUIET_MS)) break;
  }

  /** A response that was cancelled, or whose process died, has no last event of its own. */
  async #end({ answer }: { answer: string }): Promise<void> {
    const { status } = JSON.parse(answer) as { status: string };
    const sentNothing = this.#last === this.#followed.after;
    if (!this.#ended && !(sentNothing && (await this.#hasSeenEnd()))) {
      const type = status === 'failed' || status === 'completed' ? `response.${status}` : 'response.incomplete';
      const number = this.#last + 1;
      await this.#send({ number, type, data: `{"type":"${type}","response":${answer},"sequence_number":${number}}` });
    }
    this.#sink.write('data: [DONE]\n\n', 'utf8');
    this.#sink.end();
  }

  /** Whether the client has seen the last event already. The one that is missing in `#end` has the next number. */
  async #hasSeenEnd(): Promise<boolean> {
    const { id, key, after } = this.#followed;
    const row = await lastEvents(this.#parts.database, id);
    if (row === undefined) return false;
    const { number, type } = (await presented(() => openedEvents(key, row))).at(-1)!;
    return after >= (TERMINAL.has(type) ? number : number + 1);
  }
}

/** Something has happened, at most once for each wait. */
class Signal {
  readonly #clock: Clock;
  #raised = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  raise(): void {
    this.#raised = true;
    this.#wake?.();
  }

  /** Forgets what has happened so far. */
  lower(): void {
    this.#raised = false;
  }

  /** True if it was raised, false after `mostMs`. */
  async wait(mostMs: number): Promise<boolean> {
    let timer: Timer | undefined;
    if (!this.#raised) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = this.#clock.timer(mostMs, resolve);
      });
    }
    timer?.cancel();
    const raised = this.#raised;
    this.#raised = false;
    return raised;
  }
}
