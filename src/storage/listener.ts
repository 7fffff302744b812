/** The connection that notifications arrive on: one for the process, kept open, opened again when it is lost. */
import pg from 'pg';
import { type Clock, sleep, type Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { clientConfig, type Target } from './connection.ts';
import { holdProcess } from './hold.ts';

export interface ListenerOptions {
  target: Target;
  clock: Clock;
  log: Log;
  /** The connection's `application_name`; set once it listens, so that who sees it there may count on it. */
  name: string;
  /** Identifiers that need no quotes. */
  channels: readonly string[];
  heard(channel: string, payload: string): void;
  /** It listens again, and has missed what was sent in between. Called before the name is set. */
  reconnected(): void;
  /** It listens and has its name, for the first time or again. */
  named(): void;
}

/** A peer that vanished without a word is noticed within twice this time. */
const CHECK_INTERVAL_MS = 5_000;
const RECONNECT_DELAY_MS = 20;
const RECONNECT_DELAY_LIMIT_MS = 1_000;

export class Listener {
  readonly #options: ListenerOptions;
  #client: pg.Client | undefined;
  #check: Timer | undefined;
  #closed = false;
  #last: Promise<unknown> = Promise.resolve();
  #waiting: (() => void)[] = [];

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  get up(): boolean {
    return this.#client !== undefined;
  }

  start(): Promise<void> {
    return holdProcess(() => this.#connect(() => {}));
  }

  /** Resolves when the connection listens, at once if it does; never once it is closed. */
  connected(): Promise<void> {
    if (this.up) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Resolves when it is sent or the connection is lost; in the latter case `reconnected` tells. */
  async notify(channel: string, payload: string): Promise<void> {
    const client = this.#client;
    if (!client) return;
    try {
      await this.#query(client, 'select pg_notify($1, $2)', [channel, payload]);
    } catch (error) {
      this.#lost(client, error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#check?.cancel();
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }

  async #connect(listening: () => void): Promise<void> {
    const { target, name, channels, heard, named } = this.#options;
    const client = new pg.Client({
      ...clientConfig(target),
      application_name: 'gatehouse/connecting',
      query_timeout: CHECK_INTERVAL_MS,
    });
    client.on('error', (error) => this.#lost(client, error));
    client.on('end', () => this.#lost(client, new Error('the connection has ended')));
    client.on('notification', ({ channel, payload = '' }) => heard(channel, payload));
    try {
      await client.connect();
      // What is sent here may be lost with a crash, and must not wait for the disk.
      await client.query('set synchronous_commit = off');
      for (const channel of channels) await client.query(`listen ${channel}`);
      listening();
      await client.query("select set_config('application_name', $1, false)", [name]);
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    if (this.#closed) return client.end();
    this.#client = client;
    named();
    for (const connected of this.#waiting.splice(0)) connected();
    this.#check = this.#options.clock.timer(CHECK_INTERVAL_MS, () => this.#ask(client));
  }

  #ask(client: pg.Client): void {
    this.#query(client, 'select 1').then(
      () => this.#client === client && this.#check?.refresh(),
      (error) => this.#lost(client, error),
    );
  }

  /** One after another: pg wants it so. */
  #query(client: pg.Client, text: string, values?: unknown[]): Promise<unknown> {
    const result = this.#last.then(() => client.query(text, values));
    this.#last = result.catch(() => {});
    return result;
  }

  #lost(client: pg.Client, error: unknown): void {
    if (this.#closed || this.#client !== client) return;
    this.#client = undefined;
    this.#check?.cancel();
    this.#options.log.warn('the connection for changes is lost', { reason: (error as Error).message });
    void client.end().catch(() => {});
    void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    const { clock, log, reconnected } = this.#options;
    for (let delayMs = RECONNECT_DELAY_MS; !this.#closed; delayMs = Math.min(delayMs * 2, RECONNECT_DELAY_LIMIT_MS)) {
      try {
        await this.#connect(reconnected);
        log.info('the connection for changes is back');
        return;
      } catch {
        await sleep(clock, delayMs);
      }
    }
  }
}
