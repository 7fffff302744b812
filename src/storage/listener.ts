/**
 * The connection that notifications arrive on, and the one that they are sent through: two for the process, kept open, opened
 * again together when either is lost.
 *
 * They are two because of poolers in transaction mode (PgBouncer). Such a pooler may run LISTEN and NOTIFY of one client on
 * the same server connection, where the notification arrives, and still drop every notification of other processes.
 */
import pg from 'pg';
import { type Clock, sleep, type Timer, waitAtMost } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { clientConfig, describeTarget, type Target } from './connection.ts';
import { HEARTBEAT_MS, type Moment, type ProvenFreshness, TRUST_MS } from './freshness.ts';
import { keepAlive } from './keep-alive.ts';

interface ListenerOptions {
  target: Target;
  clock: Clock;
  log: Log;
  freshness: ProvenFreshness;
  /** `application_name` of the listening connection; set once it listens, so that others can count on it. */
  name: string;
  /** `application_name` of the sending connection. */
  senderName: string;
  /** Identifiers that need no quotes. The last one belongs to this process alone. */
  channels: readonly [...string[], string];
  received(channel: string, payload: string): void;
  /** Notifications were missed: it listens again (called before the name is set), or still cannot. */
  missed(): void;
  /** It listens and has its name, for the first time or again. */
  named(): void;
}

/** No notification arrives through this target. */
export class NotificationsError extends Error {}

const QUERY_TIMEOUT_MS = 5_000;
/** A connection whose proofs stay away for this long is replaced. */
const SILENCE_LIMIT_MS = 2 * TRUST_MS;
const END_TIMEOUT_MS = 1_000;
const RECONNECT_DELAY_MS = 20;
const RECONNECT_DELAY_LIMIT_MS = 1_000;
/** How often subscribers look for themselves while nothing can be heard. */
const POLL_MS = 10_000;
const BEAT = 'beat ';

interface Link {
  listening: pg.Client;
  sending: pg.Client;
  /** Proofs that were sent and have not arrived, the oldest first. */
  beats: Map<string, Moment>;
  /** Waits for a proof. */
  onBeat?: (() => void) | undefined;
  /** The last statement of `sending`: pg wants them one after another. */
  last: Promise<unknown>;
}

export class Listener {
  readonly #options: ListenerOptions;
  #link: Link | undefined;
  #heartbeat: Timer | undefined;
  #beats = 0;
  #closed = false;
  #waiting: (() => void)[] = [];

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  get up(): boolean {
    return this.#link !== undefined;
  }

  /** @throws NotificationsError */
  start(): Promise<void> {
    return keepAlive(() => this.#connect(() => {}));
  }

  /** Resolves when the connection listens, at once if it does; never once it is closed. */
  connected(): Promise<void> {
    if (this.up) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Resolves when it is sent or the connection is lost; in the latter case `reconnected` is called later. */
  async notify(channel: string, payload: string): Promise<void> {
    const link = this.#link;
    if (!link) return;
    try {
      await send(link, channel, payload);
    } catch (error) {
      this.#lost(link, error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#heartbeat?.cancel();
    const link = this.#link;
    this.#link = undefined;
    this.#options.freshness.lost();
    if (link) await this.#end(link);
  }

  async #connect(listening: () => void): Promise<void> {
    const { channels, named } = this.#options;
    const link = this.#newLink();
    try {
      await Promise.all([link.listening.connect(), link.sending.connect()]);
      for (const channel of channels) await link.listening.query(`listen ${channel}`);
      await this.#prove(link);
      listening();
      await this.#settle(link);
    } catch (error) {
      await this.#end(link);
      throw error;
    }
    if (this.#closed) return this.#end(link);
    this.#link = link;
    named();
    for (const connected of this.#waiting.splice(0)) connected();
    this.#heartbeat = this.#options.clock.timer(HEARTBEAT_MS, () => this.#nextBeat(link));
    // The proof that counts is sent after everything is forgotten and the name can be seen.
    const { promise: proven, resolve } = Promise.withResolvers<void>();
    link.onBeat = resolve;
    this.#beat(link);
    await waitAtMost(this.#options.clock, TRUST_MS, proven);
    link.onBeat = undefined;
  }

  #newLink(): Link {
    const { target, channels, received } = this.#options;
    const connection = () =>
      new pg.Client({
        ...clientConfig(target),
        application_name: 'gatehouse/connecting',
        query_timeout: QUERY_TIMEOUT_MS,
      });
    const link: Link = { listening: connection(), sending: connection(), beats: new Map(), last: Promise.resolve() };
    for (const client of [link.listening, link.sending]) {
      client.on('error', (error) => this.#lost(link, error));
      client.on('end', () => this.#lost(link, new Error('the connection has ended')));
    }
    const own = channels.at(-1);
    link.listening.on('notification', ({ channel, payload = '' }) => {
      if (channel === own && payload.startsWith(BEAT)) this.#arrived(link, payload);
      else received(channel, payload);
    });
    return link;
  }

  /** Resolves when a first proof arrives. @throws NotificationsError when none does */
  async #prove(link: Link): Promise<void> {
    const { clock, channels, target } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timeout = clock.timer(QUERY_TIMEOUT_MS, () =>
      reject(
        new NotificationsError(
          `${describeTarget(target)}: notifications (LISTEN/NOTIFY) do not arrive, so this process would not learn of ` +
            'revoked keys. A pooler in transaction or statement mode, such as PgBouncer with pool_mode=transaction, ' +
            'drops them: use session mode, or let DATABASE_URL name the server itself',
        ),
      ),
    );
    link.onBeat = resolve;
    try {
      await Promise.all([promise, send(link, channels.at(-1)!, `${BEAT}0`)]);
    } finally {
      link.onBeat = undefined;
      timeout.cancel();
    }
  }

  /** After the proof: a pooler in transaction mode would hand these settings to other clients. */
  async #settle({ listening, sending }: Link): Promise<void> {
    const { name, senderName } = this.#options;
    // What is sent here may be lost with a crash, and must not wait for the disk.
    await sending.query('set synchronous_commit = off');
    await sending.query("select set_config('application_name', $1, false)", [senderName]);
    await listening.query("select set_config('application_name', $1, false)", [name]);
  }

  #nextBeat(link: Link): void {
    const [oldest] = link.beats.values();
    const silentMs = oldest === undefined ? 0 : this.#options.clock.monotonic() - oldest.monotonic;
    if (silentMs > SILENCE_LIMIT_MS) {
      this.#lost(link, new Error('notifications do not arrive'));
    } else {
      this.#beat(link);
      this.#heartbeat?.refresh();
    }
  }

  #beat(link: Link): void {
    const payload = `${BEAT}${++this.#beats}`;
    link.beats.set(payload, this.#options.freshness.now());
    void this.notify(this.#options.channels.at(-1)!, payload);
  }

  #arrived(link: Link, payload: string): void {
    link.onBeat?.();
    const sentAt = link.beats.get(payload);
    if (sentAt === undefined || link !== this.#link) return;
    for (const sent of link.beats.keys()) {
      link.beats.delete(sent);
      if (sent === payload) break;
    }
    this.#options.freshness.proven(sentAt);
  }

  #lost(link: Link, error: unknown): void {
    if (this.#closed || this.#link !== link) return;
    this.#link = undefined;
    this.#options.freshness.lost();
    this.#heartbeat?.cancel();
    link.onBeat?.();
    this.#options.log.warn('the connection for changes is lost', { reason: (error as Error).message });
    void this.#end(link);
    void this.#reconnect();
  }

  /** A peer that says nothing gets no more than a moment to say goodbye. */
  async #end({ listening, sending }: Link): Promise<void> {
    const clients = [listening, sending];
    const ended = Promise.all(clients.map((client) => client.end().catch(() => {})));
    await waitAtMost(this.#options.clock, END_TIMEOUT_MS, ended);
    for (const client of clients) (client as unknown as { connection: pg.Connection }).connection.stream.destroy();
  }

  async #reconnect(): Promise<void> {
    const { clock, log, missed } = this.#options;
    let polledAt = clock.monotonic();
    for (let delayMs = RECONNECT_DELAY_MS; !this.#closed; delayMs = Math.min(delayMs * 2, RECONNECT_DELAY_LIMIT_MS)) {
      try {
        await this.#connect(missed);
        log.info('the connection for changes is back');
        return;
      } catch (error) {
        if (error instanceof NotificationsError) log.warn('changes do not arrive', { reason: error.message });
      }
      await sleep(clock, delayMs);
      if (clock.monotonic() - polledAt < POLL_MS) continue;
      // Pending notifications, such as a new job, must not wait for the connection.
      polledAt = clock.monotonic();
      missed();
    }
  }
}

function send(link: Link, channel: string, payload: string): Promise<unknown> {
  const result = link.last.then(() => link.sending.query('select pg_notify($1, $2)', [channel, payload]));
  link.last = result.catch(() => {});
  return result;
}
