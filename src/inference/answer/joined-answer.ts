/**
 * One attempt's share of an answer that takes several turns. The first turn's attempts each begin an answer; those of a
 * later turn continue the one that the client has seen so far, and hold back what they write until it is visible, since
 * until then another endpoint may take over.
 */
import type {
  Finish,
  OpaquePart,
  Part,
  ToolCallPart,
  Turn,
  TurnEvent,
} from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { eventsOf } from '../../formats/conversation/replay.ts';
import type { ToolReport } from '../../formats/conversation/served-call.ts';
import type { JoinedTurn } from '../turns/joined-turn.ts';
import type { WholeReply } from '../turns/passage.ts';
import { visibleSize } from '../turns/visible-output.ts';
import type { AnswerScreen } from './answer-screen.ts';
import { type AnswerEnd, type AnswerWriter, type ClientAnswer, someVisible } from './client-answer.ts';
import type { Transcript } from './transcript.ts';

/** Changes events on their last step to the client, such as hiding reasoning. Keeps state over all turns. */
export type PresentEvents = (events: TurnEvent[]) => TurnEvent[];

/** What the client sees of a call before the gateway runs it. */
export interface StartedPart {
  part: OpaquePart;
  /** Its value is replaced once the call has ended. */
  open: boolean;
}

/** What the client sees of a call after the gateway has run it. */
export interface ShownCall {
  /** Index of the open part that `value` completes. */
  started: number | undefined;
  value?: unknown;
  parts: readonly Part[];
}

/** The most characters of a turn that are held back until it is judged. */
const MAX_WITHHELD = 4 * 1024 * 1024;

const TOO_LONG: UpstreamFailure = {
  kind: 'malformed',
  status: null,
  message: 'the answer is too long to be held back until it is judged',
};

export class JoinedAnswer implements AnswerWriter {
  readonly #answer: ClientAnswer;
  readonly #present: PresentEvents;
  readonly turn: JoinedTurn;
  readonly #stream: boolean;
  /** Events of a later turn that are not visible yet, or of a turn that has to be judged. */
  #held: TurnEvent[] | undefined;
  #heldLength = 0;
  #released = false;

  constructor(answer: ClientAnswer, present: PresentEvents, turn: JoinedTurn, stream: boolean) {
    this.#answer = answer;
    this.#present = present;
    this.turn = turn;
    this.#stream = stream;
    if (turn.withheld) this.#held = [];
    answer.begin();
  }

  /** The same answer for an attempt of the next turn. */
  continued(turn: JoinedTurn): JoinedAnswer {
    const next = new JoinedAnswer(this.#answer, this.#present, turn, this.#stream);
    next.#held = [];
    return next;
  }

  begin(): void {}

  get gathers(): boolean {
    return this.#answer.gathers;
  }

  get calls(): readonly ToolCallPart[] | undefined {
    return this.turn.calls;
  }

  /** Whether the turn may be shown is undecided when it ends. */
  get judged(): boolean {
    return this.turn.judged;
  }

  get failure(): UpstreamFailure | undefined {
    return this.#heldLength > MAX_WITHHELD ? TOO_LONG : this.turn.failure;
  }

  get visible(): boolean {
    return this.#held === undefined && this.#answer.visible;
  }

  get whole(): WholeReply | undefined {
    return this.#answer.whole;
  }

  get end(): AnswerEnd | undefined {
    return this.#answer.end;
  }

  get hits(): AnswerScreen['hits'] | undefined {
    return this.#answer.hits;
  }

  get transcript(): Transcript | undefined {
    return this.#answer.transcript;
  }

  get advances(): boolean {
    return this.#held === undefined && this.#answer.advances;
  }

  screenedFailure(failure: UpstreamFailure): UpstreamFailure {
    return this.#answer.screenedFailure(failure);
  }

  take(): string {
    return this.#held === undefined ? this.#answer.take() : '';
  }

  event(_name: string, _data: string, _value: unknown, events: readonly TurnEvent[]): readonly TurnEvent[] {
    const joined = this.turn.take(events);
    this.#write(joined);
    return joined;
  }

  gatheredTurn(): Turn {
    return this.turn.whole;
  }

  /** The turn was judged: the client may see it. */
  release(): void {
    this.#released = true;
    this.#commit();
  }

  finish(): void {
    if (!this.#withholds) this.#commit();
    if (!this.#stream && this.calls === undefined) this.#answer.finish();
  }

  reply({ turn }: WholeReply): void {
    const events = this.turn.take(eventsOf(turn));
    if (this.failure !== undefined) return;
    this.#write(events);
    this.finish();
  }

  /** Shows calls that the gateway is about to run. Returns the indexes of parts that `show` completes. */
  announce(starts: readonly (StartedPart | undefined)[]): (number | undefined)[] {
    this.#commit();
    return starts.map((start) => {
      if (start === undefined) return undefined;
      if (!start.open) {
        this.#write(this.turn.partEvents([start.part]));
        return undefined;
      }
      const { events, index } = this.turn.begin(start.part);
      this.#write(events);
      return index;
    });
  }

  /** Shows what a running call reports. @param index of its part */
  report(index: number, report: ToolReport): void {
    if (this.#stream) this.#write([{ type: 'partDelta', choice: 0, index, delta: { report } }]);
  }

  /** Shows calls that the gateway has run. */
  show(calls: readonly ShownCall[]): void {
    for (const { started, value, parts } of calls) {
      if (started !== undefined) this.#write(this.turn.complete(started, value));
      this.#write(this.turn.partEvents(parts));
    }
  }

  /** Ends an answer whose last turn asked for tools. */
  close(unified?: Finish['unified']): void {
    this.#write(this.turn.end(unified));
    if (!this.#stream) this.#answer.finish();
  }

  #write(events: TurnEvent[]): void {
    if (this.#held === undefined) {
      if (events.length > 0) this.#answer.event('', '', undefined, this.#present(events));
      return;
    }
    for (const event of events) this.#held.push(event);
    if (this.#withholds) this.#heldLength += lengthOf(events);
    else if (this.#stream && someVisible(events)) this.#commit();
  }

  get #withholds(): boolean {
    return this.turn.withheld && !this.#released;
  }

  #commit(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) this.#write(held);
  }
}

function lengthOf(events: readonly TurnEvent[]): number {
  let sum = 0;
  for (const event of events) {
    if (event.type === 'partDelta') sum += visibleSize(event.delta);
    else if (event.type === 'partStart') sum += visibleSize(event.part);
  }
  return sum;
}
