/**
 * A metrics scrape reaches one of several serving processes (GATEHOUSE_WORKERS) but must report all of them: that process asks
 * the primary, which collects the reports of the others.
 */
import type { Clock } from './base/clock.ts';
import type { Exposed } from './observability/index.ts';

/** Processes that do not report within this time are left out: they may have just died. */
const PATIENCE_MS = 1_000;

/** From a serving process to the primary. */
export type ReportMessage =
  | { type: 'reports wanted'; id: number }
  | { type: 'reported'; inquiry: number; report: Exposed[] };

/** From the primary to a serving process. */
export type InquiryMessage =
  | { type: 'report wanted'; inquiry: number }
  | { type: 'reports'; id: number; reports: Exposed[][] };

/** In a serving process. */
export class Colleagues {
  readonly #send: (message: ReportMessage) => void;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, (reports: Exposed[][]) => void>();
  #count = 0;

  constructor(send: (message: ReportMessage) => void, clock: Clock) {
    this.#send = send;
    this.#clock = clock;
  }

  /** Reports of the other processes; empty if the primary does not answer. */
  reports(): Promise<Exposed[][]> {
    const id = ++this.#count;
    const { promise, resolve } = Promise.withResolvers<Exposed[][]>();
    const late = this.#clock.timer(2 * PATIENCE_MS, () => this.#answer(id, []));
    this.#waiting.set(id, (reports) => {
      late.cancel();
      resolve(reports);
    });
    this.#send({ type: 'reports wanted', id });
    return promise;
  }

  /** @param report metrics of this process */
  async heard(message: InquiryMessage, report: () => Promise<Exposed[]>): Promise<void> {
    if (message.type === 'reports') this.#answer(message.id, message.reports);
    else this.#send({ type: 'reported', inquiry: message.inquiry, report: await report() });
  }

  #answer(id: number, reports: Exposed[][]): void {
    this.#waiting.get(id)?.(reports);
    this.#waiting.delete(id);
  }
}

export interface Worker {
  id: number;
  tell(message: InquiryMessage): void;
}

interface Inquiry {
  awaited: Set<number>;
  reports: Exposed[][];
  done(): void;
}

/** In the primary. */
export class ReportDesk {
  readonly #clock: Clock;
  readonly #inquiries = new Map<number, Inquiry>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param others the serving processes except the sender */
  heard(message: ReportMessage, from: Worker, others: readonly Worker[]): void {
    if (message.type === 'reports wanted') this.#inquire(message.id, from, others);
    else this.#reported(message.inquiry, from.id, message.report);
  }

  #inquire(id: number, from: Worker, others: readonly Worker[]): void {
    const inquiry = ++this.#count;
    const reports: Exposed[][] = [];
    const done = () => {
      if (!this.#inquiries.delete(inquiry)) return;
      late.cancel();
      from.tell({ type: 'reports', id, reports });
    };
    const late = this.#clock.timer(PATIENCE_MS, done);
    this.#inquiries.set(inquiry, { awaited: new Set(others.map((other) => other.id)), reports, done });
    if (others.length === 0) done();
    for (const other of others) other.tell({ type: 'report wanted', inquiry });
  }

  #reported(inquiry: number, workerId: number, report: Exposed[]): void {
    const open = this.#inquiries.get(inquiry);
    if (open === undefined || !open.awaited.delete(workerId)) return;
    open.reports.push(report);
    if (open.awaited.size === 0) open.done();
  }
}
