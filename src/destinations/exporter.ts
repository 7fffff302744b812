/**
 * The exporter of one process: takes records of settled generations and delivers them in the background. Each process
 * exports its own requests.
 */
import { Allowance } from '../base/allowance.ts';
import { type Clock, type Timer, waitAtMost } from '../base/clock.ts';
import { DeliveryQueue, type Problem } from '../base/delivery-queue.ts';
import type { Log } from '../base/log.ts';
import type { Egress } from '../egress/index.ts';
import type { JobKind, Jobs } from '../jobs/index.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database } from '../storage/database.ts';
import { type ActiveDestination, ActiveDestinations } from './active.ts';
import { type DurableDelivery, durableDelivery } from './delivery/batches.ts';
import { sendRecords } from './delivery/send.ts';
import { States } from './delivery/state.ts';
import { type EndedGeneration, type GenerationRecord, recordOf, shownTo, sizeOf } from './record.ts';

interface ExporterParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  log: Log;
  sealing: Sealing;
  jobs: Pick<Jobs, 'send'>;
  /** Of its own, so that slow destinations do not hold up other fetches. */
  egress: Pick<Egress, 'request' | 'check'>;
  version: string;
}

/** UTF-16 units of all records that wait in this process. */
const MOST_UNITS = 64 * 1024 * 1024;
/**
 * Records are made for many generations together, at the latest after this time, and gathered for the rest of a second: the
 * processor then has the code in its caches, which halves the cost of a record.
 */
const TOGETHER = 64;
const TOGETHER_MS = 100;
const GATHER_MS = 1_000 - TOGETHER_MS;
/** How long closing waits for what is waiting. */
const LAST_DELIVERIES_MS = 2_000;

export async function startExporter(parts: ExporterParts): Promise<Exporter> {
  const exporter = new Exporter(parts);
  await exporter.start();
  return exporter;
}

export class Exporter {
  readonly #parts: ExporterParts;
  readonly #active: ActiveDestinations;
  readonly #states: States;
  readonly #durable: DurableDelivery;
  readonly #queues = new Map<string, DeliveryQueue<GenerationRecord>>();
  readonly #memory = new Allowance(MOST_UNITS);
  #ended: EndedGeneration[] = [];
  #timer: Timer | undefined;

  constructor(parts: ExporterParts) {
    this.#parts = parts;
    this.#active = new ActiveDestinations(parts);
    this.#states = new States(parts);
    const target = (id: string) => this.#active.withId(id);
    this.#durable = durableDelivery({ ...parts, states: this.#states, target });
  }

  start(): Promise<void> {
    return this.#active.start();
  }

  get jobKinds(): readonly JobKind[] {
    return this.#durable.kinds;
  }

  /** Records that this process has dropped. */
  get dropped(): number {
    return this.#states.dropped;
  }

  /** Whether the generations of a workspace are forwarded to any destination. One look-up. */
  exports(workspaceId: string): boolean {
    return this.#active.inWorkspace(workspaceId) !== undefined;
  }

  /** Returns at once, never throws for reasons of a destination. */
  take(ended: EndedGeneration): void {
    this.#ended.push(ended);
    // What a client can make large is not kept uncounted.
    const mayBeLarge = ended.contents !== undefined || ended.trace !== undefined;
    if (mayBeLarge || this.#ended.length >= TOGETHER) this.#record();
    else this.#timer ??= this.#parts.clock.timer(TOGETHER_MS, () => this.#record());
  }

  /** Makes the records of the generations that have ended. */
  #record(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const ended = this.#ended;
    this.#ended = [];
    for (const each of ended) {
      try {
        this.#recordOne(each);
      } catch (cause) {
        this.#parts.log.error('a generation could not be forwarded', { generation: each.row.id, cause });
      }
    }
  }

  #recordOne(ended: EndedGeneration): void {
    const record = recordOf(ended);
    for (const destination of this.#active.inWorkspace(record.workspaceId) ?? []) {
      if (destination.accepts(record)) this.#queueOf(destination).add(shownTo(destination.stored, record));
    }
  }

  /** One attempt at everything that waits in this process. */
  async flush(): Promise<void> {
    this.#record();
    await Promise.all([...this.#queues.values()].map((queue) => queue.flush()));
    await this.#states.flush();
  }

  async close(): Promise<void> {
    await waitAtMost(this.#parts.clock, LAST_DELIVERIES_MS, this.flush());
    const lost = [...this.#queues.values()].reduce((sum, { size }) => sum + size, 0);
    if (lost > 0) this.#parts.log.warn('records of destinations are lost at the end of the process', { lost });
    for (const [id, queue] of this.#queues) {
      if (queue.size > 0) this.#states.drop(id, queue.size, 'the process ended before these records were delivered');
      queue.close();
    }
    await waitAtMost(this.#parts.clock, LAST_DELIVERIES_MS, this.#states.flush());
    this.#active.close();
  }

  #queueOf({ kind, stored: { id } }: ActiveDestination): DeliveryQueue<GenerationRecord> {
    const held = this.#queues.get(id);
    if (held !== undefined) return held;
    const states = this.#states;
    /** Of the last delivery, without those that the settings rule out by now, or the destination refuses. */
    let sent = 0;
    const queue = new DeliveryQueue<GenerationRecord>({
      ...{ clock: this.#parts.clock, memory: this.#memory, sizeOf, batchSize: kind.batchUnits },
      gatherMs: GATHER_MS,
      deliver: async (records) => {
        const destination = await this.#active.withId(id);
        if (destination === undefined) {
          this.#queues.delete(id);
          return 'gone';
        }
        const wanted = destination.wanted(records);
        const { problem, refused } = await this.#deliver(destination, wanted);
        sent = wanted.length - refused;
        return problem;
      },
      // What is stored counts as delivered once its job has delivered it.
      delivered: () => (kind.durable || sent === 0 ? undefined : states.delivered(id, sent)),
      failed: (message) => states.failed(id, message),
      dropped: ({ length }, message) => states.drop(id, length, message),
    });
    this.#queues.set(id, queue);
    return queue;
  }

  async #deliver(
    destination: ActiveDestination,
    records: readonly GenerationRecord[],
  ): Promise<{ problem?: Problem | undefined; refused: number }> {
    if (records.length === 0) return { refused: 0 };
    const { stored, kind } = destination;
    if (kind.durable) return { problem: await this.#durable.store(stored.id, records), refused: 0 };
    const sent = await sendRecords(this.#parts, destination, records, this.#parts.clock.now());
    const { problem, refused, reason } = sent;
    if (problem === undefined && refused > 0) this.#states.drop(stored.id, refused, reason);
    return sent;
  }
}
