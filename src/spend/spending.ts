/** Assembles the parts of spend for one process. */
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Clock, Timer } from '../base/clock.ts';
import { endOfTurn } from '../base/end-of-turn.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import { SerialQueue } from '../base/serial-queue.ts';
import type { Changes, Database } from '../storage/database.ts';
import { RENEW_MS, renewOwner, writeOwner } from '../storage/owner.ts';
import { sumTokens } from './activity/popularity.ts';
import { type ActivityQuery, type ActivitySum, sumActivity } from './activity/store.ts';
import type { Budget, Charge, Refusal } from './budget.ts';
import type { Backlog, BudgetState, KeyUsage, OpenGeneration, Reservation, Spend, Viewer } from './contract.ts';
import type { Accepted, Generation } from './generation.ts';
import { GroupCommit } from './group-commit.ts';
import { createHolds, type Holds } from './holds/holds.ts';
import { Journal } from './journal.ts';
import { LEASE_LIMITS, type LeaseStore } from './lease-wait-queue.ts';
import { Leases } from './leases.ts';
import { LEDGER_LIMITS, Ledger } from './ledger.ts';
import { OpenRow } from './open-row.ts';
import type { SpendOptions } from './options.ts';
import { RETURN } from './processes/processes.ts';
import { forgetProcess, type ProcessFacts, touchProcess } from './processes/store.ts';
import { findGeneration, readBudgetStates, readUsage } from './reading.ts';
import { type Attempt, encodeIntent } from './record.ts';
import { RecordBuffer } from './record-buffer.ts';
import { OWNER_FILE, replayDead } from './replay.ts';
import type { HeldReservation } from './reservation.ts';
import { decodeRow, type StoredRow } from './row.ts';
import { askLeases, leasesOf, removeEmptyLeases } from './store.ts';

const RECALL = 'spend-recall';
/** A heartbeat and the cleanup of leases run in every n-th maintenance. */
const MAINTAIN_DATABASE_EVERY = 6;

/**
 * Replays the journals of dead processes, opens one for this process, and registers it. Rejects if the database is down
 * or the folder is not writable.
 */
export async function createSpend(options: SpendOptions): Promise<Spend> {
  const { clock, database, dataDir, log } = options;
  const journalsDir = join(dataDir, 'journal');
  mkdirSync(journalsDir, { recursive: true, mode: 0o700 });
  await replayDead(journalsDir, database, clock, log);
  const processId = uuidv7(clock.now());
  const directory = join(journalsDir, processId);
  // A journal must have its owner file before it gets its final name, or it would count as a dead process's.
  const unowned = join(journalsDir, `.${processId}`);
  mkdirSync(unowned, { mode: 0o700 });
  writeOwner(join(unowned, OWNER_FILE));
  renameSync(unowned, directory);
  const startedAt = new Date(clock.now());
  const facts = { host: hostname(), folder: directory, version: options.version ?? null, startedAt };
  await touchProcess(database, processId, facts, clock.now());
  return new Spending(options, processId, journalsDir, facts);
}

class Spending implements Spend {
  /** Open generations with new progress since the last tick. */
  readonly dirty: OpenRow[] = [];
  readonly journal: Journal;
  readonly ledger: Ledger;
  readonly holds: Holds;
  open = 0;

  readonly #commits: GroupCommit;
  readonly #progress = new RecordBuffer();

  readonly #database: Database;
  readonly #changes: Changes;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #leases: Leases;
  readonly processId: string;
  readonly #facts: ProcessFacts;
  readonly #journalsDir: string;
  readonly #directory: string;
  #maintenance: Timer;
  #maintained = 0;
  #maintaining: Promise<void> | undefined;
  #closed = false;
  readonly #activity = new SerialQueue();

  constructor(options: SpendOptions, processId: string, journalsDir: string, facts: ProcessFacts) {
    const { folder: directory } = facts;
    this.#facts = facts;
    const { database, changes, clock, log } = options;
    this.#database = database;
    this.#changes = changes;
    this.#clock = clock;
    this.#log = log;
    this.processId = processId;
    this.#journalsDir = journalsDir;
    this.#directory = directory;
    this.journal = new Journal({
      directory,
      clock,
      beforeSync: () => this.#writeProgress(),
      onHealth: (error) => {
        if (error === null) log.info('the journal is writable again');
        else log.error('the journal cannot be written', { error });
      },
      ...options.journal,
    });
    this.#commits = new GroupCommit(this.journal, log, options.endOfTurn ?? endOfTurn());
    this.#leases = new Leases(this.#leaseStore(), clock, { ...LEASE_LIMITS, ...options.leases });
    this.ledger = new Ledger({
      database,
      processId,
      journal: this.journal,
      commits: this.#commits,
      leases: this.#leases,
      clock,
      log,
      limits: { ...LEDGER_LIMITS, ...options.ledger },
    });
    this.holds = createHolds({ database, changes, processId, ledger: this.ledger, leases: this.#leases, clock });
    this.#subscribe();
    this.#maintenance = clock.timer(options.maintainMs ?? RENEW_MS, () => {
      this.#maintaining = this.#maintain();
    });
  }

  reserve(
    budgets: readonly Budget[],
    bound: Charge,
    acceptedAt: number,
  ): Reservation | Refusal | Promise<Reservation | Refusal> {
    return this.#leases.reserve(budgets, bound, acceptedAt);
  }

  begin(
    accepted: Accepted,
    first: Attempt,
    reservation: Reservation,
    wanted: () => boolean,
  ): Promise<OpenGeneration | undefined> {
    const held = reservation as HeldReservation;
    this.ledger.checkRoom();
    const intent = {
      accepted,
      attempt: first,
      held: held.parts.map(({ window, nano }) => ({
        windowId: window.id,
        nano,
        includeByok: window.budget.includeByok,
      })),
    };
    const begun = this.#commits.intent(encodeIntent(intent), wanted, (segment) => {
      this.open += 1;
      return new OpenRow(this, accepted.id, held, segment);
    });
    // Commit now: the time to the first byte of a stream is what its client notices.
    if (accepted.streamed) this.#commits.commit();
    return begun;
  }

  findGeneration(id: string, viewer: Viewer): Promise<Generation | undefined> {
    const waiting = this.ledger.waitingRow(id);
    const known = waiting === undefined ? undefined : decodeRow(JSON.parse(waiting) as StoredRow);
    return findGeneration(this.#database, id, viewer, known);
  }

  async usageOf(keyIds: readonly string[]): Promise<Map<string, KeyUsage>> {
    await this.ledger.flush();
    return readUsage(this.#database, keyIds, this.#clock.now());
  }

  activity(query: ActivityQuery): Promise<ActivitySum[]> {
    return this.#activity.run(async () => {
      await this.ledger.flush();
      return sumActivity(this.#database, query);
    });
  }

  tokensByModel(organizationId: string, days: number): Promise<Map<string, number>> {
    return sumTokens((query) => this.activity(query), organizationId, days, this.#clock.now());
  }

  async stateOf(budgets: readonly Budget[]): Promise<BudgetState[]> {
    await this.ledger.flush();
    return readBudgetStates(this.#database, budgets, this.#clock.now());
  }

  get backlog(): Backlog {
    return { open: this.open, rows: this.ledger.waiting, journalBytes: this.journal.bytes };
  }

  async flush(): Promise<void> {
    await this.ledger.flush();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#maintenance.cancel();
    await this.#maintaining;
    let done = await this.ledger.flush();
    this.ledger.stop();
    if (done && this.open === 0) {
      done = await this.ledger
        .inOrder(() => this.#database.transaction((tx) => forgetProcess(tx, this.processId)))
        .then(
          () => true,
          () => false,
        );
    }
    const remove = done && this.open === 0;
    // Rows settled while the database was queried may wait for the end of this turn; write them before the journal
    // closes.
    this.#commits.commit();
    await this.journal.close(remove);
    if (remove) rmSync(this.#directory, { recursive: true, force: true });
    else this.#log.warn('the journal is kept for the next start', { open: this.open });
  }

  #leaseStore(): LeaseStore {
    const announce = (topic: string, ids: readonly string[]) =>
      this.#database.transaction(async (tx) => {
        await this.#changes.announce(tx, topic, ...ids.map((id) => `${this.processId} ${id}`));
      });
    return {
      ask: (requests) =>
        this.ledger.inOrder(() => {
          // A closed process has returned its leases. It must not take new ones, because nothing would return them.
          if (this.#closed) throw closing();
          return this.#database.transaction((tx) => askLeases(tx, this.processId, requests));
        }),
      recall: (ids) => announce(RECALL, ids),
      announceReturn: (ids) => announce(RETURN, ids),
    };
  }

  #subscribe(): void {
    const fromOthers = (handle: (windowId: string) => void) => (id: string | null) => {
      // After a lost connection waiting requests recall once more.
      if (id === null || id.startsWith(this.processId)) return;
      handle(id.slice(id.indexOf(' ') + 1));
    };
    this.#changes.subscribe(
      RECALL,
      fromOthers((id) => this.#leases.recalled(id)),
    );
    this.#changes.subscribe(
      RETURN,
      fromOthers((id) => this.#leases.returned(id)),
    );
  }

  #writeProgress(): void {
    const rows = this.dirty.splice(0).filter((row) => row.dirty);
    if (rows.length === 0) return;
    this.#progress.clear();
    for (const row of rows) this.#progress.add('P', row.progress());
    const segment = this.journal.appendRecordsAnyway(this.#progress);
    if (segment === undefined) return;
    for (const row of rows) row.written(segment);
  }

  /** A timer and not a background job: leases, heartbeat and journals are those of this process and this machine. */
  async #maintain(): Promise<void> {
    try {
      renewOwner(join(this.#directory, OWNER_FILE), this.#clock);
      if (this.#leases.uncertain) await this.#reconcile();
      if (++this.#maintained % MAINTAIN_DATABASE_EVERY === 0) {
        await touchProcess(this.#database, this.processId, this.#facts, this.#clock.now());
        this.#leases.sweep();
        await this.ledger.inOrder(() => removeEmptyLeases(this.#database, this.processId));
      }
      await replayDead(this.#journalsDir, this.#database, this.#clock, this.#log);
    } catch (error) {
      this.#log.warn('maintenance of the ledger failed; it will be retried', { error });
    }
    if (!this.#closed) this.#maintenance.refresh();
  }

  #reconcile(): Promise<void> {
    return this.ledger.inOrder(async () => {
      const forgotten = this.#leases.reconcile(await leasesOf(this.#database, this.processId));
      if (forgotten.length === 0) return;
      await this.#database.transaction((tx) => askLeases(tx, this.processId, forgotten));
    });
  }
}

function closing(): GatewayError {
  return new GatewayError('server', 'the gateway is shutting down', { status: 503, metadata: { retryable: true } });
}
