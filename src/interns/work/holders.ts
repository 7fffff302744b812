/**
 * Makes one process at a time responsible for an intern: the one that has the pipes of the agent. A process that dies
 * loses its interns: at once if it ran on this machine, where the kernel reports its death, and otherwise after 15 s
 * without a renewal. A process that is alive but was silent notices its loss when it renews its claim.
 */
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Database } from '../../storage/database.ts';
import { processLives, RENEW_MS, thisProcess } from '../../storage/owner.ts';
import * as sql from './holders.sql.ts';

interface HolderParts {
  /** Of this process. */
  id: string;
  database: Pick<Database, 'query' | 'transaction'>;
  clock: Clock;
  log: Log;
  /** Another process may hold the intern now: everything of it that runs here must end. */
  lost(internId: string): void;
  /** Where others can reach this process, which listens when it resolves. Called once. */
  endpoint(): Promise<sql.Endpoint>;
}

export type Endpoint = sql.Endpoint;

/** Another process. */
export interface Holder extends sql.Endpoint {
  readonly id: string;
}

/** Another process holds the intern. */
export class HeldElsewhere extends Error {}

export class Holders {
  readonly id: string;
  readonly #parts: HolderParts;
  readonly #owner = thisProcess();
  /** Interns that this process took, each with a symbol that is new each time. */
  readonly #taken = new Map<string, symbol>();
  #entered: Promise<void> | undefined;
  #endpoint: sql.Endpoint | undefined;
  #timer: Timer | undefined;

  constructor(parts: HolderParts) {
    this.#parts = parts;
    this.id = parts.id;
  }

  /** Returns undefined if this process holds the intern now, and otherwise the id of the process that does. */
  async take(internId: string): Promise<string | undefined> {
    const { database } = this.#parts;
    await this.#enter();
    const holder = await sql.holderOf(database, internId);
    if (holder !== undefined && holder.id !== this.id && this.lives(holder)) return holder.id;
    if (await sql.takeIntern(database, internId, this.id, holder?.id ?? null)) {
      if (!this.#taken.has(internId)) this.#taken.set(internId, Symbol(internId));
      return undefined;
    }
    // Another process was faster.
    return this.take(internId);
  }

  /** Whether this process took the intern, and has not learned that it lost it. */
  holds(internId: string): boolean {
    return this.#taken.has(internId);
  }

  /** The process that holds the intern, if it lives. */
  async holderOf(internId: string): Promise<Holder | undefined> {
    const holder = await sql.holderOf(this.#parts.database, internId);
    return holder !== undefined && this.lives(holder) ? { id: holder.id, ...holder.endpoint } : undefined;
  }

  lives({ owner, seenAt }: sql.ProcessRow): boolean {
    return processLives(owner, () => seenAt.getTime(), this.#parts.clock);
  }

  async release(internId: string): Promise<void> {
    this.#taken.delete(internId);
    await sql.releaseIntern(this.#parts.database, internId, this.id);
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    if (this.#entered === undefined) return;
    await this.#entered.catch(() => {});
    await this.#parts.database.transaction((tx) => sql.deleteProcess(tx, this.id)).catch(() => {});
  }

  /** Before the first intern. */
  #enter(): Promise<void> {
    this.#entered ??= this.#renew().catch((error: unknown) => {
      this.#entered = undefined;
      throw error;
    });
    return this.#entered;
  }

  async #renew(): Promise<void> {
    const { database, clock, log } = this.#parts;
    this.#endpoint ??= await this.#parts.endpoint();
    const seenAt = new Date(clock.now());
    await sql.putProcess(database, { id: this.id, owner: this.#owner, seenAt, endpoint: this.#endpoint });
    this.#timer ??= clock.timer(RENEW_MS, () => {
      this.#timer?.refresh();
      this.#renew().catch((error: unknown) => log.warn('cannot renew the claim on interns', { error }));
    });
    for (const row of await sql.processes(database)) {
      if (row.id !== this.id && !this.lives(row)) await database.transaction((tx) => sql.deleteProcess(tx, row.id));
    }
    await this.#findLost();
  }

  async #findLost(): Promise<void> {
    const before = [...this.#taken];
    const held = new Set(await sql.internsOf(this.#parts.database, this.id));
    for (const [internId, time] of before) {
      if (held.has(internId) || this.#taken.get(internId) !== time) continue;
      this.#taken.delete(internId);
      this.#parts.log.warn('another process may have taken an intern over', { intern: internId });
      this.#parts.lost(internId);
    }
  }
}
