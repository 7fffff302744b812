/**
 * The answer as its client gets it, written from the events of an upstream attempt: relayed or encoded, filtered by
 * guardrails, copied to the transcript. Each attempt writes its own until one of them shows something. A client that
 * does not stream gets it whole.
 */
import type { GatewayError } from '../../base/errors.ts';
import type { ToolCallPart, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Closing, ServedFormat, Stamp } from '../../formats/conversation/format.ts';
import { collect } from '../../formats/conversation/replay.ts';
import type { AnswerRevision } from '../plugins/plugin.ts';
import type { StreamWriter, WholeReply } from '../turns/passage.ts';
import { streamWhole, wholeFrom, writerFromEvents } from '../turns/translate.ts';
import { isVisible, visibleSize } from '../turns/visible-output.ts';
import type { AnswerScreen } from './answer-screen.ts';
import type { Transcript } from './transcript.ts';

/** The destination of an attempt's answer. Methods throw GatewayError 403 when a filter blocks the answer. */
export interface AnswerWriter {
  /** The upstream streams its answer. */
  begin(): void;
  /** True if the answer is gathered, for a client that does not stream. */
  readonly gathers: boolean;
  /** @returns the events of the answer, including those that guardrails hide */
  event(name: string, data: string, value: unknown, events: readonly TurnEvent[]): readonly TurnEvent[];
  /** What this attempt has gathered; only while `gathers` is true. */
  gatheredTurn(): Turn;
  /** The stream is complete and no other endpoint takes over: gathers it, or writes what was held back. */
  finish(): void;
  /** The upstream's answer came in one piece. */
  reply(whole: WholeReply): void;
  /** A limit of the gateway that the answer has exceeded. */
  readonly failure: UpstreamFailure | undefined;
  /** True once the client can see something of the stream; from then on no other endpoint may answer. */
  readonly visible: boolean;
  /** True if something is visible and `take` has text. */
  readonly advances: boolean;
  /** The text that has gathered since the last call. */
  take(): string;
  /** A failure as it may be shown to the client. */
  screenedFailure(failure: UpstreamFailure): UpstreamFailure;
  /** The answer for a client that does not stream. */
  readonly whole: WholeReply | undefined;
  /** Writes the end of a stream. */
  readonly end: AnswerEnd | undefined;
  /** Whether the answer is shown is decided after it is complete. */
  readonly judged?: boolean;
  /** What the gateway has to run before the answer can continue. */
  readonly calls?: readonly ToolCallPart[] | undefined;
  readonly hits: AnswerScreen['hits'] | undefined;
  readonly transcript: Transcript | undefined;
}

export interface AnswerEnd {
  end(closing: Closing): string;
  failure(error: GatewayError, closing: Closing): string;
}

interface ClientAnswerSetup {
  served: ServedFormat;
  stamp: Stamp;
  /** The client streams. */
  stream: boolean;
  /** Relays the upstream's events; absent where the answer is written from its events alone. */
  relay?: ((stamp: Stamp) => StreamWriter) | undefined;
  /** Changes the answer before it is filtered; absent without plugins that do. */
  revision?: AnswerRevision | undefined;
  /** Filters the answer before it is shown; absent when no guardrail filters answers. */
  screen?: AnswerScreen | undefined;
  /** Records the content of the answer; absent when content is not logged. */
  transcript?: Transcript | undefined;
}

export class ClientAnswer implements AnswerWriter {
  readonly #setup: ClientAnswerSetup;
  #pending = '';
  #events: TurnEvent[] | undefined;
  /** The turn that `#events` form, once all have arrived. */
  #gathered: Turn | undefined;
  #writer: StreamWriter | undefined;
  readonly failure = undefined;
  visible = false;
  whole: WholeReply | undefined;

  constructor(setup: ClientAnswerSetup) {
    this.#setup = setup;
  }

  get transcript(): Transcript | undefined {
    return this.#setup.transcript;
  }

  get hits(): AnswerScreen['hits'] | undefined {
    return this.#setup.screen?.hits;
  }

  get gathers(): boolean {
    return this.#events !== undefined;
  }

  get advances(): boolean {
    return this.visible && this.#pending !== '';
  }

  get end(): AnswerEnd | undefined {
    return this.#writer;
  }

  screenedFailure(failure: UpstreamFailure): UpstreamFailure {
    return this.#setup.screen?.failure(failure) ?? failure;
  }

  begin(): void {
    const { served, stamp, stream, relay, revision, screen } = this.#setup;
    if (!stream) this.#events ??= [];
    else {
      // A changed answer is written from its events, since relayed bytes would include what was removed.
      const relays = screen === undefined && revision === undefined && relay !== undefined;
      this.#writer ??= relays ? relay(stamp) : writerFromEvents(served, stamp);
    }
  }

  event(name: string, data: string, value: unknown, events: readonly TurnEvent[]): readonly TurnEvent[] {
    if (this.#events !== undefined) {
      for (const event of events) this.#events.push(event);
      return events;
    }
    const { revision, screen, transcript } = this.#setup;
    const revised = revision === undefined ? events : revision.take(events);
    const filtered = screen === undefined ? revised : screen.take(revised);
    if (transcript !== undefined) for (const event of filtered) transcript.event(event);
    this.visible ||= someVisible(filtered);
    this.#pending += this.#writer!.event(name, data, value, filtered);
    return events;
  }

  gatheredTurn(): Turn {
    this.#gathered ??= collect(this.#events!);
    return this.#gathered;
  }

  finish(): void {
    if (this.gathers) this.whole = this.#screened(wholeFrom(this.#setup.served, this.gatheredTurn()));
  }

  reply(read: WholeReply): void {
    const { served, stamp, stream } = this.#setup;
    const whole = this.#screened(read);
    if (!stream) {
      this.whole = whole;
      return;
    }
    const { writer, text } = streamWhole(served, whole.turn, stamp);
    this.#writer = writer;
    this.visible = true;
    this.#pending += text;
  }

  take(): string {
    const text = this.#pending;
    this.#pending = '';
    return text;
  }

  #screened(whole: WholeReply): WholeReply {
    const { revision, screen, served, transcript } = this.#setup;
    const revised = revision === undefined ? whole : wholeFrom(served, revision.turn(whole.turn));
    const filtered = screen === undefined ? revised : wholeFrom(served, screen.turn(revised.turn));
    transcript?.turn(filtered.turn);
    return filtered;
  }
}

/** Whether one of the events has visible content. */
export function someVisible(events: readonly TurnEvent[]): boolean {
  for (const event of events) {
    if (
      event.type === 'partDelta' ? visibleSize(event.delta) > 0 : event.type === 'partStart' && isVisible(event.part)
    ) {
      return true;
    }
  }
  return false;
}
