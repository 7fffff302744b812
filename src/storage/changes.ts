/**
 * Notifies every process of the installation of changes, over LISTEN/NOTIFY, and the writer when all have handled them.
 *
 * The server says which processes have to know: each listens on a connection that carries its name. A process whose
 * connection was lost may be about to return, so a write waits for it once, for `LEASE_MS`. The connection of a process that
 * does not answer for as long is cut; it forgets everything when it listens again. Meanwhile it does not rely on its memory
 * (`freshness.ts`). So no table of processes has to be kept and swept.
 */
import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Target } from './connection.ts';
import type { Changed, Changes, Database, Queryable } from './database.ts';
import { ProvenFreshness, TRUST_MS } from './freshness.ts';
import { Listener } from './listener.ts';

interface ChangesOptions {
  target: Target;
  database: Database;
  clock: Clock;
  log: Log;
}

/**
 * The longest that a write waits. A process that has not acknowledged the change by then no longer uses what it holds in
 * memory (`freshness.ts`), and its connection is cut, so that the next write does not wait for it again.
 */
export const LEASE_MS = TRUST_MS;

const CHANNEL = 'gatehouse_changes';
const NAME_PREFIX = 'gatehouse/listener/';
const SENDER_PREFIX = 'gatehouse/sender/';
const MAX_ID_LENGTH = 1_000;
const ASK_ATTEMPTS = 3;

/**
 * What goes over the channel. Notifications reach every listener in the order of their commits, so a process that answers a `sync`
 * has handled every change that was committed before it.
 */
type Message =
  | ['change', topic: string, id: string]
  | ['sync', replyChannel: string, round: number]
  /** A process listens, for the first time or again. */
  | ['hello', name: string]
  /** A process ends. */
  | ['bye', name: string];

/** Connects; a process must do this before it fills any cache that follows changes. */
export async function openChanges(options: ChangesOptions): Promise<Changes> {
  const changes = new NotifiedChanges(options);
  await changes.start();
  return changes;
}

/** A pending write. Answers may arrive before the list of processes that must answer. */
interface Round {
  answered: Set<string>;
  expected: Set<string> | undefined;
  timer: Timer;
  finish(): void;
}

class NotifiedChanges implements Changes {
  readonly freshness: ProvenFreshness;
  readonly #options: ChangesOptions;
  readonly #listener: Listener;
  readonly #name: string;
  readonly #replyChannel: string;
  readonly #subscribers = new Map<string, Changed[]>();
  /** What subscribers are still busy with. */
  readonly #handling = new Set<Promise<void>>();
  readonly #rounds = new Map<number, Round>();
  /** Names of the processes that are known to live, or were a lease ago. */
  readonly #members = new Set<string>();
  #lastRound = 0;

  constructor(options: ChangesOptions) {
    const unique = randomUUID().replaceAll('-', '');
    this.#options = options;
    this.freshness = new ProvenFreshness(options.clock, options.database);
    this.#name = NAME_PREFIX + unique;
    this.#replyChannel = `gatehouse_${unique}`;
    this.#listener = new Listener({
      ...options,
      freshness: this.freshness,
      name: this.#name,
      senderName: SENDER_PREFIX + unique,
      channels: [CHANNEL, this.#replyChannel],
      received: (channel, payload) => this.#received(channel, payload),
      missed: () => this.#forgetEverything(),
      named: () => void this.#send(['hello', this.#name]),
    });
  }

  async start(): Promise<void> {
    await this.#listener.start();
    for (const name of (await this.#processes()).names) this.#members.add(name);
  }

  subscribe(topic: string, changed: Changed): void {
    const subscribers = this.#subscribers.get(topic) ?? [];
    subscribers.push(changed);
    this.#subscribers.set(topic, subscribers);
  }

  async announce(tx: Queryable, topic: string, ...ids: readonly string[]): Promise<{ settled(): Promise<void> }> {
    if (ids.some(({ length }) => length > MAX_ID_LENGTH)) {
      throw new RangeError(`an announced id has at most ${MAX_ID_LENGTH} characters`);
    }
    const messages = ids.map((id) => encode(['change', topic, id]));
    await tx.query('select pg_notify($1, message) from unnest($2::text[]) as message', [CHANNEL, messages]);
    return { settled: () => this.#settled() };
  }

  async close(): Promise<void> {
    await this.#send(['bye', this.#name]);
    await this.#listener.close();
    for (const round of this.#rounds.values()) round.finish();
  }

  #settled(): Promise<void> {
    const number = ++this.#lastRound;
    return new Promise<void>((resolve) => {
      const round: Round = {
        answered: new Set(),
        expected: undefined,
        timer: this.#options.clock.timer(LEASE_MS, () => this.#expire(round)),
        finish: () => {
          this.#rounds.delete(number);
          round.timer.cancel();
          resolve();
        },
      };
      this.#rounds.set(number, round);
      this.#sync(round, number).catch((error) => {
        // The others still hear of it; the time they have for that is all there is to wait for.
        this.#options.log.warn('cannot ask which processes handled a change', { reason: (error as Error).message });
      });
    });
  }

  /** Asks again when our own listener, which the answers come to, was just away. */
  async #sync(round: Round, number: number): Promise<void> {
    for (let attempt = 0; attempt < ASK_ATTEMPTS && this.#rounds.has(number); attempt++) {
      await this.#listener.connected();
      const { names, listening } = await this.#processes(['sync', this.#replyChannel, number]);
      if (!listening.has(this.#name)) continue;
      round.expected = names.union(this.#members);
      return finishIfComplete(round);
    }
  }

  /**
   * The names of all processes, and of those that listen. A process whose listening connection was cut may not have noticed
   * yet; its sending connection shows it. The message is sent by the same statement, so every process that listens gets it.
   */
  async #processes(message?: Message): Promise<{ names: Set<string>; listening: Set<string> }> {
    const rows = await this.#options.database.query<{ name: string; listens: boolean }>(
      `with connected as materialized (
         select application_name as name, starts_with(application_name, $1) as listens from pg_stat_activity
         where datname = current_database() and (starts_with(application_name, $1) or starts_with(application_name, $4))
       ), asked as materialized (select case when $3::text is not null then pg_notify($2, $3) end)
       select name, listens from connected, asked`,
      [NAME_PREFIX, CHANNEL, message === undefined ? null : encode(message), SENDER_PREFIX],
    );
    const names = rows.map(({ name, listens }) => (listens ? name : NAME_PREFIX + name.slice(SENDER_PREFIX.length)));
    return { names: new Set(names), listening: new Set(names.filter((_, at) => rows[at]!.listens)) };
  }

  /** Drops the processes that did not answer and cuts their connections, unless the fault is in this process. */
  #expire(round: Round): void {
    round.finish();
    const silent = [...(round.expected?.difference(round.answered) ?? [])];
    if (silent.length === 0 || !this.#listener.up || !round.answered.has(this.#name)) return;
    this.#options.log.warn('a process does not receive changes', { processes: silent });
    for (const name of silent) this.#members.delete(name);
    const connections = silent.flatMap((name) => [name, SENDER_PREFIX + name.slice(NAME_PREFIX.length)]);
    this.#options.database
      .query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = any($1)', [connections])
      .catch(() => {});
  }

  #send(message: Message): Promise<void> {
    return this.#listener.notify(CHANNEL, encode(message));
  }

  #received(channel: string, payload: string): void {
    if (channel === this.#replyChannel) {
      const [number, name = ''] = payload.split(' ');
      this.#answered(Number(number), name);
    } else {
      this.#handle(JSON.parse(payload) as Message);
    }
  }

  #handle(message: Message): void {
    switch (message[0]) {
      case 'change':
        for (const changed of this.#subscribers.get(message[1]) ?? []) this.#call(changed, message[2]);
        break;
      case 'sync':
        void this.#answer(message[1], message[2]);
        break;
      case 'hello':
        this.#arrived(message[1]);
        break;
      case 'bye':
        this.#members.delete(message[1]);
        for (const number of this.#rounds.keys()) this.#answered(number, message[1]);
        break;
    }
  }

  async #answer(replyChannel: string, round: number): Promise<void> {
    if (this.#handling.size > 0) await Promise.all(this.#handling);
    await this.#listener.notify(replyChannel, `${round} ${this.#name}`);
  }

  /** What was asked while it was away has to be asked again. */
  #arrived(name: string): void {
    this.#members.add(name);
    for (const [number, { expected, answered }] of this.#rounds) {
      if (expected?.has(name) && !answered.has(name)) void this.#send(['sync', this.#replyChannel, number]);
    }
  }

  #answered(number: number, name: string): void {
    const round = this.#rounds.get(number);
    if (!round) return;
    round.answered.add(name);
    finishIfComplete(round);
  }

  #forgetEverything(): void {
    for (const subscribers of this.#subscribers.values()) for (const changed of subscribers) this.#call(changed, null);
  }

  /** A failing subscriber must not affect the others, and must be logged. */
  #call(changed: Changed, id: string | null): void {
    const failed = (error: unknown) => this.#options.log.error('a subscriber of changes failed', { error });
    try {
      const busy: unknown = changed(id);
      if (!(busy instanceof Promise)) return;
      const handled = busy.catch(failed).finally(() => this.#handling.delete(handled));
      this.#handling.add(handled);
    } catch (error) {
      failed(error);
    }
  }
}

function finishIfComplete(round: Round): void {
  if (round.expected?.isSubsetOf(round.answered)) round.finish();
}

function encode(message: Message): string {
  return JSON.stringify(message);
}
