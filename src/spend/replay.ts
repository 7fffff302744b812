/**
 * Enters what dead processes left in their journals, then gives back their leases. May be repeated, interrupted and run
 * by several processes at once: rows are entered once, by their primary key, and counters move with rows only.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Database } from '../storage/database.ts';
import { ownerLives } from '../storage/owner.ts';
import { estimatedEntry } from './estimate.ts';
import type { Attempt } from './index.ts';
import { enterBatch } from './ledger.ts';
import {
  decodeAttempt,
  decodeIntent,
  decodeProgress,
  decodeSettled,
  type Entry,
  type Intent,
  type Progress,
} from './record.ts';
import { type ScannedRecord, scanSegment } from './scan.ts';
import { forgetProcess } from './store.ts';

export const OWNER_FILE = 'owner.json';

export interface ReplayCounts {
  settled: number;
  estimated: number;
  unconfirmed: number;
  damaged: number;
}

const PROCESS_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const BATCH_ROWS = 500;

/** Replays every journal below `journalsDir` whose process is dead. Rejects with GatewayError 503 when the database is down. */
export async function replayDead(journalsDir: string, database: Database, clock: Clock, log: Log): Promise<void> {
  for (const processId of await readdir(journalsDir)) {
    const directory = join(journalsDir, processId);
    // Whatever else lies here (`lost+found` of a volume) is not ours to remove.
    if (!PROCESS_ID.test(processId) || ownerLives(join(directory, OWNER_FILE), clock)) continue;
    try {
      const counts = await replayJournal(directory, processId, database, log);
      log.info('replayed the journal of a process that was stopped', { process: processId, ...counts });
    } catch (error) {
      // Another process has replayed and removed it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

/** Replays one journal, gives back what its process held, and removes it. */
export async function replayJournal(
  directory: string,
  processId: string,
  database: Database,
  log: Log,
): Promise<ReplayCounts> {
  const replay = new Replay((entries) => enterBatch(database, processId, entries, log));
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
  await database.transaction((tx) => forgetProcess(tx, processId));
  await rm(directory, { recursive: true, force: true });
  return replay.counts;
}

interface Unsettled {
  intent: Intent;
  attempt: Attempt;
  progress: Progress | undefined;
}

class Replay {
  readonly counts: ReplayCounts = { settled: 0, estimated: 0, unconfirmed: 0, damaged: 0 };
  readonly #enter: (entries: Entry[]) => Promise<unknown>;
  readonly #unsettled = new Map<string, Unsettled>();
  #settled: Entry[] = [];

  constructor(enter: (entries: Entry[]) => Promise<unknown>) {
    this.#enter = enter;
  }

  read({ kind, json }: ScannedRecord): void {
    if (kind === 'I') {
      const intent = decodeIntent(json);
      this.#unsettled.set(intent.accepted.id, { intent, attempt: intent.attempt, progress: undefined });
    } else if (kind === 'A') {
      const { id, attempt } = decodeAttempt(json);
      const open = this.#unsettled.get(id);
      if (open === undefined) return;
      open.attempt = attempt;
      // What was seen belongs to the attempt before, whose cost `earlier` holds.
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
      await this.#enter(batch);
      this.counts.settled += batch.length;
    }
  }

  async enterUnsettled(): Promise<void> {
    const all = [...this.#unsettled.values()];
    for (let at = 0; at < all.length; at += BATCH_ROWS) {
      const batch = all.slice(at, at + BATCH_ROWS);
      await this.#enter(batch.map((open) => estimatedEntry(open.intent, open.attempt, open.progress)));
      for (const open of batch) this.counts[open.progress === undefined ? 'unconfirmed' : 'estimated'] += 1;
    }
  }
}
