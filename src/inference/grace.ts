/**
 * The end of a stream whose upstream has told its finish and then sends heartbeats instead of its end marker. The client
 * would wait for the total timeout with a complete answer in its hands (bifrost#6784). What follows a finish (usage,
 * sources, filter results) follows at once, so after a short silence about the answer the stream is over.
 */
import type { Clock, Timer } from '../base/clock.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { TurnDecoder } from '../formats/conversation/format.ts';
import type { UpstreamCall, UpstreamReceiver } from '../providers/index.ts';
import type { Attempt } from './task.ts';

const WITH_USAGE_MS = 2_000;
/** The counts of some services take a while, and without them the answer is charged by estimate. */
const WITHOUT_USAGE_MS = 15_000;

/** What of an attempt tells how far its stream has come. */
export interface Streaming extends Pick<Attempt, 'over' | 'status' | 'usage' | 'outputBytes'> {
  readonly decoder?: TurnDecoder | undefined;
}

/** Between a streamed call and its attempt. */
export class Grace implements UpstreamReceiver {
  readonly #receiver: UpstreamReceiver;
  readonly #attempt: Streaming;
  readonly #clock: Clock;
  /** Set as soon as there is one. */
  call: UpstreamCall | undefined;
  #timer: Timer | undefined;
  #counted = false;
  #bytes = 0;

  constructor(receiver: UpstreamReceiver, attempt: Streaming, clock: Clock) {
    this.#receiver = receiver;
    this.#attempt = attempt;
    this.#clock = clock;
  }

  head(status: number, headers: Record<string, string>): void {
    this.#receiver.head(status, headers);
  }

  data(chunk: Buffer): void {
    this.#receiver.data(chunk);
    const attempt = this.#attempt;
    if (attempt.over) this.#timer?.cancel();
    else if (attempt.decoder?.toldFinish() === true) this.#wait();
  }

  end(): void {
    this.#timer?.cancel();
    this.#receiver.end();
  }

  failed(failure: UpstreamFailure, sent: boolean): void {
    this.#timer?.cancel();
    this.#receiver.failed(failure, sent);
  }

  /** Only what belongs to the answer starts the time again. */
  #wait(): void {
    const { usage, outputBytes } = this.#attempt;
    const counted = usage !== undefined;
    if (this.#timer !== undefined && counted === this.#counted && outputBytes === this.#bytes) return;
    this.#counted = counted;
    this.#bytes = outputBytes;
    this.#timer?.cancel();
    this.#timer = this.#clock.timer(counted ? WITH_USAGE_MS : WITHOUT_USAGE_MS, () => this.#isOver());
  }

  #isOver(): void {
    const { over, status } = this.#attempt;
    if (over) return;
    this.#receiver.failed({ kind: 'timeout', status, message: 'the upstream did not end its answer' }, true);
    this.call?.abort();
  }
}
