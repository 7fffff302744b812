/**
 * Connections of HTTP/1.1 to one host, made, checked and verified elsewhere. Each carries one request at a time. Node's own client takes
 * several times as long for a small request; its parser, llhttp, decides here, too, what a response is and where it ends.
 */
import type net from 'node:net';
import type { Clock, Timer } from '../../base/clock.ts';
import { AnswerParser, type AnswerReader, type HeaderForm } from '../../http/answer-parser.ts';
import { lowerCase } from '../../http/header-names.ts';
import type { Pair } from './heads.ts';

/** Shorter than servers keep idle connections. */
const IDLE_MS = 4_000;
const MOST_IDLE = 16;

/** Every header as it is. */
const ALL_HEADERS: HeaderForm<Pair[]> = {
  isWhole: true,
  create: () => [],
  keptAs: (name) => name,
  add: (pairs, name, value) => void pairs.push([name, withoutSpaceAfter(value), lowerCase(name)]),
};

function withoutSpaceAfter(value: string): string {
  let end = value.length;
  while (end > 0 && (value[end - 1] === ' ' || value[end - 1] === '\t')) end -= 1;
  return end === value.length ? value : value.slice(0, end);
}

/** What a connection carries; implemented in `send-http1.ts`. */
interface Carried {
  head(status: number, pairs: Pair[], reason: string): void;
  data(chunk: Buffer): void;
  ended(trailers: Pair[]): void;
  /** Nothing more arrives. Not called after `ended`. */
  broken(): void;
  /** Whether it wants no more data for now. */
  readonly holds: boolean;
}

export class HostConnection implements AnswerReader<Pair[]> {
  readonly socket: net.Socket;
  readonly #pool: HostConnections;
  readonly #parser = new AnswerParser<Pair[]>(this, ALL_HEADERS);
  readonly #idle: Timer;
  #carried: Carried | undefined;
  #isWritten = false;
  /** After the end of a response: whether another one may follow. */
  #mayFollow: boolean | undefined;
  #isGone = false;
  /** It has carried a request, so the host may close it while the next one is on its way. */
  isReused = false;

  constructor(socket: net.Socket, pool: HostConnections, clock: Clock) {
    this.socket = socket;
    this.#pool = pool;
    this.#idle = clock.timer(IDLE_MS, () => {
      if (this.#carried === undefined) this.discard();
    });
    socket.setNoDelay(true);
    socket.on('data', (piece: Buffer) => {
      this.#parser.read(piece);
      if (this.#carried?.holds === true) socket.pause();
    });
    socket.on('error', () => {});
    socket.once('end', () => {
      this.#parser.finish();
      this.discard();
    });
    socket.once('close', () => this.discard());
  }

  carry(carried: Carried): void {
    this.#carried = carried;
    this.#isWritten = false;
    this.#mayFollow = undefined;
  }

  /** The first bytes of the request are written now. A response that arrives before them is not its own. @param bodiless it is HEAD */
  begin(bodiless: boolean): void {
    if (!this.#isGone) this.#parser.expect(bodiless);
  }

  /** The last byte of the request has been written. */
  written(): void {
    this.#isWritten = true;
    if (this.#mayFollow !== undefined) this.#done();
  }

  /** Ends it if it still carries this. */
  drop(carried: Carried): void {
    if (this.#carried === carried) this.discard();
  }

  /** Closes it, in any state. */
  discard(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#idle.cancel();
    this.#parser.free();
    this.#pool.forget(this);
    this.socket.destroy();
    const carried = this.#mayFollow === undefined ? this.#carried : undefined;
    this.#carried = undefined;
    carried?.broken();
  }

  answerHead(status: number, pairs: Pair[], reason: string): void {
    this.#carried?.head(status, pairs, reason);
  }

  answerData(chunk: Buffer): void {
    this.#carried?.data(chunk);
  }

  answerEnd(reusable: boolean, trailers: Pair[] | undefined): void {
    this.#mayFollow = reusable;
    this.#carried?.ended(trailers ?? []);
    // A host may answer before it has read the request, whose rest is still written.
    if (this.#isWritten) this.#done();
  }

  answerMalformed(): void {
    this.discard();
  }

  #done(): void {
    this.#carried = undefined;
    if (this.#mayFollow === true && this.socket.writable) {
      this.isReused = true;
      this.#idle.refresh();
      this.#pool.keep(this);
    } else this.discard();
  }
}

export class HostConnections {
  readonly #open: () => Promise<net.Socket>;
  readonly #clock: Clock;
  /** The most recently used is the last. */
  readonly #idle: HostConnection[] = [];
  /** Whose response ended in this turn of the event loop, and in the one before. */
  #answered: HostConnection[] = [];
  #settling: HostConnection[] = [];
  #waiting: (() => void)[] = [];
  #isTurning = false;
  #isClosed = false;

  constructor(open: () => Promise<net.Socket>, clock: Clock) {
    this.#open = open;
    this.#clock = clock;
  }

  /** One that is idle, or a new one. @throws Refusal */
  take(): HostConnection | Promise<HostConnection> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const isOneSoon = this.#answered.length + this.#settling.length > this.#waiting.length;
    if (isOneSoon) return new Promise<void>((resolve) => this.#waiting.push(resolve)).then(() => this.take());
    return this.open();
  }

  /** A new one. @throws Refusal */
  async open(): Promise<HostConnection> {
    return new HostConnection(await this.#open(), this, this.#clock);
  }

  /** Not used again before the event loop has read what came with its response: more bytes would answer the next request. */
  keep(connection: HostConnection): void {
    this.#answered.push(connection);
    this.#awaitTurn();
  }

  /** Once per turn, even if all that waited for it were closed in between. */
  #awaitTurn(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    setImmediate(this.#turned);
  }

  readonly #turned = (): void => {
    const settled = this.#settling;
    this.#settling = this.#answered;
    this.#answered = [];
    this.#isTurning = false;
    if (this.#settling.length > 0) this.#awaitTurn();
    for (const connection of settled) {
      if (this.#isClosed || this.#idle.length >= MOST_IDLE) connection.discard();
      else this.#idle.push(connection);
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) go();
  };

  forget(connection: HostConnection): void {
    for (const list of [this.#idle, this.#answered, this.#settling]) {
      const at = list.indexOf(connection);
      if (at !== -1) list.splice(at, 1);
    }
  }

  /** Closes idle connections, and keeps none from now on. */
  close(): void {
    this.#isClosed = true;
    for (const connection of [...this.#idle]) connection.discard();
  }
}
