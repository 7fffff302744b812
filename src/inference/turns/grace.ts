/**
 * Ends streams that only heartbeats keep open. After the finish reason only usage, sources and filter results follow, at
 * once. An upstream that sends heartbeats instead of its end marker would hold a complete answer until the total timeout
 * (bifrost#6784), so the stream ends once nothing more of the answer arrives. Before the finish reason a model may think
 * without visible output, so it gets minutes; then the stream counts as stalled, and another endpoint may take over.
 */
import type { Clock, Timer } from '../../base/clock.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { TurnDecoder } from '../../formats/conversation/format.ts';
import type { UpstreamCall, UpstreamReceiver } from '../../providers/index.ts';
import type { Attempt } from '../task.ts';

const WITH_USAGE_MS = 2_000;
/** Some services report usage with a delay, and without it the answer is charged by estimate. */
const WITHOUT_USAGE_MS = 15_000;

/** The progress of an attempt's stream. */
interface Streaming extends Pick<Attempt, 'over' | 'status' | 'usage' | 'outputBytes'> {
  readonly decoder?: TurnDecoder | undefined;
}

/** A receiver between a streamed call and its attempt. */
export class Grace implements UpstreamReceiver {
  readonly #receiver: UpstreamReceiver;
  readonly #attempt: Streaming;
  readonly #clock: Clock;
  /** Set once the call has started. */
  call: UpstreamCall | undefined;
  #timer: Timer | undefined;
  #counted = false;
  #bytes = -1;
  readonly #stallMs: number;
  #progressAt = 0;

  /** @param stallMs the longest time with heartbeats only, without any part of the answer */
  constructor(receiver: UpstreamReceiver, attempt: Streaming, clock: Clock, stallMs: number) {
    this.#receiver = receiver;
    this.#attempt = attempt;
    this.#clock = clock;
    this.#stallMs = stallMs;
  }

  head(status: number, headers: Record<string, string>): void {
    this.#receiver.head(status, headers);
  }

  data(chunk: Buffer): void {
    this.#receiver.data(chunk);
    const attempt = this.#attempt;
    if (attempt.over) this.#timer?.cancel();
    else if (attempt.decoder?.toldFinish() === true) this.#wait();
    else this.#checkProgress();
  }

  end(): void {
    this.#timer?.cancel();
    this.#receiver.end();
  }

  failed(failure: UpstreamFailure, sent: boolean): void {
    this.#timer?.cancel();
    this.#receiver.failed(failure, sent);
  }

  #checkProgress(): void {
    const { outputBytes } = this.#attempt;
    const now = this.#clock.monotonic();
    if (outputBytes !== this.#bytes) {
      this.#bytes = outputBytes;
      this.#progressAt = now;
    } else if (now - this.#progressAt > this.#stallMs) {
      this.#giveUp(`the upstream sent nothing but heartbeats for ${this.#stallMs} ms`);
    }
  }

  /** Only events of the answer restart the timer, heartbeats do not. */
  #wait(): void {
    const { usage, outputBytes } = this.#attempt;
    const counted = usage !== undefined;
    if (this.#timer !== undefined && counted === this.#counted && outputBytes === this.#bytes) return;
    this.#counted = counted;
    this.#bytes = outputBytes;
    this.#timer?.cancel();
    this.#timer = this.#clock.timer(counted ? WITH_USAGE_MS : WITHOUT_USAGE_MS, () =>
      this.#giveUp('the upstream did not end its stream'),
    );
  }

  #giveUp(message: string): void {
    const { over, status } = this.#attempt;
    if (over) return;
    this.#receiver.failed({ kind: 'timeout', status, message }, true);
    this.call?.abort();
  }
}
