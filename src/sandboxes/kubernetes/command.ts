/** A running command in a pod. */
import { constants } from 'node:os';
import { Readable, Writable } from 'node:stream';
import type { Clock, Timer } from '../../base/clock.ts';
import type { DriverExecution } from '../driver.ts';
import type { Ending, EndReason } from '../sandbox.ts';
import type { Channel, CommandLine } from './channel.ts';

/** As `pod.ts` wants it. */
interface PodCommand {
  argv: readonly string[];
  cwd: string;
  environment: Readonly<Record<string, string>>;
  limits: Readonly<Record<string, number>>;
}

/** The last frame. */
interface Report {
  code?: unknown;
  lost?: unknown;
  lacksMemory?: unknown;
}

const LONGEST_PIECE = 64 * 1024;
/** As in `pod.ts`: what either side sends before the other has taken it. */
const WINDOW_BYTES = 256 * 1024;
/** More than a command that is to be ended can have written. */
const EVERYTHING = 16 * 1024 * 1024;
/** This long after a kill the command counts as ended, because the pod is not trusted to report it. */
const END_MS = 10_000;
/** Exit codes after signals. */
const [KILLED, TOO_LARGE] = [128 + constants.signals.SIGKILL, 128 + constants.signals.SIGXFSZ];

export class RunningCommand implements DriverExecution {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly ended: Promise<Ending>;
  readonly #line: CommandLine;
  readonly #clock: Clock;
  readonly #wasKilledForMemory: () => Promise<boolean>;
  readonly #ending = Promise.withResolvers<Ending>();
  /** Bytes of input that the pod takes now. */
  #credit = WINDOW_BYTES;
  #waiting: (() => void) | undefined;
  /** Bytes of output that the pod may send now. */
  #allowed = WINDOW_BYTES;
  /** Those that it may send again once what is buffered was read. */
  readonly #owed = new Map<Readable, number>();
  #reason: EndReason | undefined;
  #late: Timer | undefined;
  #hasEnded = false;

  /** @param wasKilledForMemory whether the container was, if the connection ends without a report */
  constructor(channel: Channel, command: PodCommand, wasKilledForMemory: () => Promise<boolean>, clock: Clock) {
    this.#clock = clock;
    this.#wasKilledForMemory = wasKilledForMemory;
    this.ended = this.#ending.promise;
    this.stdout = this.#output();
    this.stderr = this.#output();
    this.stdin = new Writable({
      write: (chunk: Buffer, _encoding, done) => this.#write(chunk, done),
      final: (done) => {
        this.#line.send('E', '');
        done();
      },
    });
    this.stdin.on('error', () => {});
    this.#line = channel.line({
      frame: (type, content) => this.#frame(type, content),
      closed: (complaint) => void this.#finish(undefined, complaint),
    });
    this.#line.send('C', JSON.stringify(command));
  }

  signal(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGKILL'): void {
    if (this.#hasEnded) return;
    if (name === 'SIGKILL') this.end('exit');
    else this.#line.send('S', name);
  }

  end(reason: EndReason): void {
    if (this.#hasEnded || this.#reason !== undefined) return;
    this.#reason = reason;
    this.#line.send('S', 'SIGKILL');
    // What is buffered need not be read before the end is reported.
    this.#allow(EVERYTHING);
    this.#late = this.#clock.timer(END_MS, () => void this.#finish({}, ''));
  }

  #output(): Readable {
    const output: Readable = new Readable({
      highWaterMark: WINDOW_BYTES,
      read: () => {
        const owed = this.#owed.get(output) ?? 0;
        this.#owed.delete(output);
        if (owed > 0) this.#allow(owed);
      },
    });
    output.on('error', () => {});
    return output;
  }

  #frame(type: string, content: Buffer): void {
    if (type === 'O') this.#push(this.stdout, content);
    else if (type === 'X') this.#push(this.stderr, content);
    else if (type === 'W') this.#grant(Number(content));
    else if (type === 'D') void this.#finish(reportOf(content), '');
  }

  #push(output: Readable, content: Buffer): void {
    this.#allowed -= content.length;
    // What runs in the pod is not trusted, and could fill the gateway's memory.
    if (this.#allowed < 0) return void this.#finish(undefined, 'more output than was asked for');
    if (output.destroyed || output.push(content)) this.#allow(content.length);
    else this.#owed.set(output, (this.#owed.get(output) ?? 0) + content.length);
  }

  #allow(bytes: number): void {
    this.#allowed += bytes;
    this.#line.send('W', String(bytes));
  }

  #grant(bytes: number): void {
    if (Number.isSafeInteger(bytes) && bytes > 0) this.#credit = Math.min(this.#credit + bytes, WINDOW_BYTES);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
  }

  #write(chunk: Buffer, done: () => void): void {
    let rest = chunk;
    while (!this.#hasEnded && rest.length > 0 && this.#credit > 0) {
      const piece = rest.subarray(0, Math.min(this.#credit, LONGEST_PIECE));
      this.#credit -= piece.length;
      this.#line.send('I', piece);
      rest = rest.subarray(piece.length);
    }
    if (this.#hasEnded || rest.length === 0) done();
    else this.#waiting = () => this.#write(rest, done);
  }

  /** @param report undefined: the connection has ended without one */
  async #finish(report: Report | undefined, complaint: string): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#late?.cancel();
    this.#line.end();
    const ending = await this.#endingOf(report);
    if (ending.reason === 'lost' && complaint !== '') this.stderr.push(`${complaint.trimEnd()}\n`);
    this.stdout.push(null);
    this.stderr.push(null);
    // What was not written is lost silently.
    this.#grant(0);
    this.#ending.resolve(ending);
  }

  async #endingOf(report: Report | undefined): Promise<Ending> {
    const { code, lost, lacksMemory } = report ?? {};
    const exitCode = typeof code === 'number' && Number.isInteger(code) ? code : null;
    if (this.#reason === 'exit') return { code: exitCode ?? KILLED, reason: 'exit' };
    if (this.#reason !== undefined) return { code: null, reason: this.#reason };
    if (report === undefined) return { code: null, reason: (await this.#wasKilledForMemory()) ? 'memory' : 'lost' };
    if (lost === true || exitCode === null) return { code: null, reason: 'lost' };
    if (exitCode === KILLED && lacksMemory === true) return { code: exitCode, reason: 'memory' };
    return { code: exitCode, reason: exitCode === TOO_LARGE ? 'disk' : 'exit' };
  }
}

function reportOf(content: Buffer): Report {
  try {
    return (JSON.parse(content.toString()) ?? {}) as Report;
  } catch {
    return {};
  }
}
