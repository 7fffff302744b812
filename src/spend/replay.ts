/**
 * Enters the records that dead processes left in their journals, then returns their leases. It may be repeated,
 * interrupted, and run by several processes at once: the primary key prevents duplicate rows, and counters only change
 * together with rows.
 */
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, systemClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Nano } from '../base/money.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { ownerLives } from '../storage/owner.ts';
import { type Charge, chargeIn } from './budget.ts';
import { estimatedEntry } from './estimate.ts';
import { heldAmong } from './holds/store.ts';
import { enterBatch } from './ledger.ts';
import { recordReturn } from './processes/processes.ts';
import { processById, retireProcess } from './processes/store.ts';
import {
  type Attempt,
  decodeAttempt,
  decodeIntent,
  decodeProgress,
  decodeSettled,
  type Entry,
  type Intent,
  type Progress,
} from './record.ts';
import { type ScannedRecord, scanSegment } from './scan.ts';

export const OWNER_FILE = 'owner.json';

interface ReplayCounts {
  settled: number;
  estimated: number;
  unconfirmed: number;
  damaged: number;
}

const PROCESS_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Suffix of a journal folder that is replayed and only needs to be removed. */
const ENTERED = '.entered';
const BATCH_ROWS = 500;

/**
 * Replays all journals in `journalsDir` whose process is dead. Rejects with GatewayError 503 if the database is down.
 */
export async function replayDead(journalsDir: string, database: Database, clock: Clock, log: Log): Promise<void> {
  for (const processId of await readdir(journalsDir)) {
    const directory = join(journalsDir, processId);
    if (processId.endsWith(ENTERED)) await rm(directory, { recursive: true, force: true });
    // Leave other entries alone, such as `lost+found` of a volume.
    if (!PROCESS_ID.test(processId) || ownerLives(join(directory, OWNER_FILE), clock)) continue;
    try {
      const counts = await replayJournal(directory, processId, database, log, clock);
      log.info('replayed the journal of a dead process', { process: processId, ...counts });
    } catch (error) {
      // Another process has replayed and removed it in the meantime.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

/**
 * Replays one journal, returns the leases of its process, and removes the journal. The cost of open requests at their
 * upstreams is unknown, so their bounds stay held until an operator releases them.
 */
export async function replayJournal(
  directory: string,
  processId: string,
  database: Database,
  log: Log,
  clock: Pick<Clock, 'now'> = systemClock,
): Promise<ReplayCounts> {
  const replay = new Replay({
    enter: (entries) => enterBatch(database, processId, entries, log),
    heldAmong: (ids) => heldAmong(database, ids),
  });
  const segments = (await readdir(directory)).filter((name) => name.endsWith('.log')).sort();
  for (const name of segments) {
    for await (const chunk of scanSegment(join(directory, name))) {
      replay.counts.damaged += chunk.damaged;
      for (const record of chunk.records) replay.read(record);
      await replay.enterSettled(BATCH_ROWS);
    }
  }
  await replay.enterSettled(1);
  await replay.enterUnsettled();
  await database.transaction((tx) => replay.retire(tx, processId, clock.now(), log));
  // Rename first: a process that found half of a journal would return leases that the other half keeps held.
  await rename(directory, directory + ENTERED);
  await rm(directory + ENTERED, { recursive: true, force: true });
  return replay.counts;
}

interface Unsettled {
  intent: Intent;
  attempt: Attempt;
  progress: Progress | undefined;
  /** Total held with the last attempt; undefined means the amount in the intent. */
  held: Charge | undefined;
}

interface ReplayStore {
  enter(entries: Entry[]): Promise<unknown>;
  /** Of requests: those that were handed over to a hold, whose owner enters their rows. */
  heldAmong(ids: readonly string[]): Promise<string[]>;
}

class Replay {
  readonly counts: ReplayCounts = { settled: 0, estimated: 0, unconfirmed: 0, damaged: 0 };
  readonly #store: ReplayStore;
  readonly #unsettled = new Map<string, Unsettled>();
  #settled: Entry[] = [];
  /** By window: cost bounds of open requests in excess of their entered cost. */
  readonly #unreturned = new Map<string, Nano>();
  #organizationId: string | undefined;

  constructor(store: ReplayStore) {
    this.#store = store;
  }

  read({ kind, json }: ScannedRecord): void {
    if (kind === 'I') {
      const intent = decodeIntent(json);
      this.#organizationId = intent.accepted.organizationId;
      this.#unsettled.set(intent.accepted.id, {
        intent,
        attempt: intent.attempt,
        progress: undefined,
        held: undefined,
      });
    } else if (kind === 'A') {
      const { id, attempt, held } = decodeAttempt(json);
      const open = this.#unsettled.get(id);
      if (open === undefined) return;
      open.attempt = attempt;
      open.held = held;
      // Progress belongs to the previous attempt, whose cost is in `earlier`.
      open.progress = undefined;
    } else if (kind === 'P') {
      const { id, progress } = decodeProgress(json);
      const open = this.#unsettled.get(id);
      if (open !== undefined) open.progress = progress;
    } else {
      const entry = decodeSettled(json);
      this.#unsettled.delete(entry.id);
      this.#settled.push(entry);
    }
  }

  async enterSettled(atLeast: number): Promise<void> {
    while (this.#settled.length >= atLeast) {
      const batch = this.#settled.splice(0, BATCH_ROWS);
      await this.#store.enter(batch);
      this.counts.settled += batch.length;
    }
  }

  async enterUnsettled(): Promise<void> {
    for (const id of await this.#store.heldAmong([...this.#unsettled.keys()])) this.#unsettled.delete(id);
    const all = [...this.#unsettled.values()];
    for (let at = 0; at < all.length; at += BATCH_ROWS) {
      const batch = all.slice(at, at + BATCH_ROWS);
      await this.#store.enter(batch.map((open) => this.#estimated(open)));
      for (const open of batch) this.counts[open.progress === undefined ? 'unconfirmed' : 'estimated'] += 1;
    }
  }

  /** Call after all rows are entered. */
  async retire(tx: Queryable, processId: string, nowMs: number, log: Log): Promise<void> {
    const process = await processById(tx, processId);
    await retireProcess(tx, processId, { requests: this.#unsettled.size, held: this.#unreturned }, nowMs);
    if (this.#unreturned.size > 0) {
      log.warn('cost bounds of open requests stay held until released', {
        process: processId,
        requests: this.#unsettled.size,
      });
    }
    if (process?.releasedAt == null) return;
    log.warn('a released process returned; limits may be exceeded', { process: processId });
    if (this.#organizationId !== undefined) {
      await recordReturn(tx, this.#organizationId, processId, nowMs, { entered: { ...this.counts } });
    }
  }

  #estimated({ intent, attempt, progress, held: grown }: Unsettled): Entry {
    const entry = estimatedEntry(intent, attempt, progress);
    for (const [index, held] of intent.held.entries()) {
      const all = grown === undefined ? 0n : chargeIn(held, grown);
      const open = (all > held.nano ? all : held.nano) - entry.taken[index]!.nano;
      if (open > 0n) this.#unreturned.set(held.windowId, (this.#unreturned.get(held.windowId) ?? 0n) + open);
    }
    return entry;
  }
}
