import type { TextEncoding } from '../../base/byte-text.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Finish, Turn, TurnEvent, Usage } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { TurnDecoder } from '../../formats/conversation/format.ts';
import { EventReader } from '../../http/sse.ts';
import type { FrameReader, UpstreamCall, UpstreamReceiver } from '../../providers/index.ts';
import type { AnswerScreen } from '../answer/answer-screen.ts';
import { shownEvents, shownWhole, shownWriter, someVisible } from '../answer/screened-output.ts';
import type { Transcript } from '../answer/transcript.ts';
import type { Attempt, Send } from '../task.ts';
import type { AttemptSetup } from './attempt-setup.ts';
import { announcedMode, bodyShape } from './body-shape.ts';
import { BodyText, ERROR_BODY_BYTES } from './body-text.ts';
import { isRefusal, strayError, turnFailure, unseenFailure } from './empty-answer.ts';
import type { StreamWriter, WholeReply } from './passage.ts';
import { parsedEvent, readableFailure, readableFinish, readableText } from './relay-bytes.ts';
import { refusalOf } from './reply-headers.ts';
import { RoundReceiver } from './round-receiver.ts';
import { type ToolCallCounts, ToolCallJudge } from './tool-calls.ts';
import { gatherWhole, streamWhole } from './translate.ts';
import { visibleSize, visibleSizeOf } from './visible-output.ts';

export class ConversationAttempt implements Attempt, UpstreamReceiver {
  readonly #setup: AttemptSetup;
  #call: UpstreamCall | undefined;
  #round: RoundReceiver | undefined;
  #mode: 'head' | 'error' | 'whole' | 'stream' | 'over' = 'head';
  readonly #body = new BodyText();
  #began = false;
  #reader: FrameReader | undefined;
  decoder: TurnDecoder | undefined;
  #pending = '';
  /** Events of a stream that arrived although the client asked for a whole answer. */
  #gathered: TurnEvent[] | undefined;

  /** 0 until the response head arrives. */
  status = 0;
  headers: Record<string, string> = {};
  writer: StreamWriter | undefined;
  whole: WholeReply | undefined;
  encoding: TextEncoding = 'utf8';
  /** True once the client can see something of the stream; from then on no other endpoint may answer. */
  visible = false;
  /** The stream ended as a refusal that showed nothing, so another model may still be tried. */
  unseenRefusal = false;
  usage: Usage | undefined;
  finish: Finish | undefined;
  /** UTF-8 bytes of all output so far, for an estimate when no usage arrives. */
  outputBytes = 0;
  /** The output bytes that the last reported usage covers. */
  #countedBytes = 0;
  upstreamId: string | undefined;
  serviceTier: string | null | undefined;
  /** An earlier upstream call of this answer was complete, so the attempt costs something even if it fails. */
  paid = false;
  uncountedPromptBytes = 0;
  #send: Send | undefined;
  readonly #judge: ToolCallJudge | undefined;

  constructor(setup: AttemptSetup) {
    this.#setup = setup;
    if (setup.tools !== undefined) this.#judge = new ToolCallJudge(setup.tools, setup.passage.encoding);
  }

  start(send: Send): void {
    const { passage } = this.#setup;
    if (passage.again !== undefined) this.#send = send;
    this.#ask(send, passage.body);
  }

  #ask(send: Send, body: Buffer | string): void {
    const { spoken, model, stream } = this.#setup;
    const path = typeof spoken.path === 'string' ? spoken.path : spoken.path(model, stream);
    this.#call = send({ format: spoken.id, stream, path, body }, this.#receiver());
  }

  /** For an answer of several calls, a receiver that goes silent when the next call begins. */
  #receiver(): UpstreamReceiver {
    if (this.#send === undefined) return this;
    const round = new RoundReceiver(this);
    this.#round = round;
    return round;
  }

  /** Starts the next upstream call of the answer if the passage asks for one. */
  #goOn(): boolean {
    const body = this.#setup.passage.again?.();
    if (body === undefined) return false;
    this.#reader?.stop();
    this.#round?.leave(this.#call);
    this.uncountedPromptBytes = Buffer.byteLength(body);
    this.paid = true;
    this.#mode = 'head';
    this.#body.clear();
    this.#ask(this.#send!, body);
    return true;
  }

  pause(): void {
    this.#call?.pause();
  }

  resume(): void {
    this.#call?.resume();
  }

  get transcript(): Transcript | undefined {
    return this.#setup.transcript;
  }

  get hits(): AnswerScreen['hits'] | undefined {
    return this.#setup.screen?.hits;
  }

  get toolCalls(): ToolCallCounts | undefined {
    return this.#judge?.counts;
  }

  /** Output bytes since the upstream last reported usage. */
  get uncountedBytes(): number {
    return this.outputBytes - this.#countedBytes;
  }

  get over(): boolean {
    return this.#mode === 'over';
  }

  /** Ends the call at once. The owner receives no further callback. */
  abort(): void {
    this.#mode = 'over';
    this.#call?.abort();
  }

  /** Returns the text for the client that has gathered since the last call. */
  take(): string {
    const text = this.#pending;
    this.#pending = '';
    return text;
  }

  head(status: number, headers: Record<string, string>): void {
    if (this.#mode === 'over') return;
    this.#began = false;
    this.status = status;
    this.headers = headers;
    this.#mode = announcedMode(status, headers['content-type'], this.#setup.stream);
    if (this.#mode === 'stream') this.#startStream();
  }

  /** The first byte of the body decides how it is read, whatever its content type says. */
  #begin(chunk: Buffer): void {
    this.#began = true;
    const shape = this.#setup.framing === undefined ? bodyShape(chunk) : undefined;
    if (this.#mode === 'stream' && shape === 'object') this.#mode = 'whole';
    else if (this.#mode === 'whole' && shape === 'events') this.#startStream();
  }

  #startStream(): void {
    this.#mode = 'stream';
    this.decoder = this.#setup.passage.decoder(this.#setup.stamp.id);
    const { framing, limits, passage, stream } = this.#setup;
    // Events that the client gets as a whole answer are written anew.
    this.encoding = stream ? passage.encoding : 'utf8';
    const onEvent = (name: string, data: string) => this.#event(name, data);
    this.#reader =
      framing === undefined
        ? new EventReader(onEvent, limits.upstreamEventBytes, this.encoding === 'latin1')
        : framing(onEvent, limits.upstreamEventBytes);
    if (stream) this.writer ??= shownWriter(this.#setup);
    else this.#gathered ??= [];
  }

  data(chunk: Buffer): void {
    if (!this.#began) this.#begin(chunk);
    if (this.#mode === 'stream') {
      this.#read(chunk);
    } else if (this.#mode === 'error') {
      this.#body.addUpTo(ERROR_BODY_BYTES, chunk);
    } else if (this.#mode === 'whole') {
      if (this.#body.size + chunk.length > this.#setup.limits.upstreamReplyBytes) this.#tooLarge();
      else this.#body.add(chunk);
    } else if (this.#mode === 'over') {
      // Data after the end marker is useless and may never end.
      this.#call?.abort();
    }
  }

  end(): void {
    if (this.#mode === 'error') this.#refused();
    else if (this.#mode === 'whole') this.#readWhole();
    else if (this.#mode === 'stream') this.#closed(undefined);
  }

  failed(failure: UpstreamFailure, sent: boolean): void {
    if (this.#mode === 'over') return;
    // An error status whose body breaks off is still that error.
    if (this.#mode === 'error') this.#refused();
    else if (this.#mode === 'stream') this.#closed(failure);
    else this.#fail(failure, sent);
  }

  #tooLarge(): void {
    this.#fail({ kind: 'malformed', status: this.status, message: 'the upstream response is too large' });
  }

  #refused(): void {
    this.#fail(refusalOf(this.#setup.decodeFailure, this.status, this.#body.take(), this.headers));
  }

  #readWhole(): void {
    const { passage, served, stamp, stream } = this.#setup;
    this.encoding = stream ? 'utf8' : passage.encoding;
    const read = passage.readWhole(this.#body.takeBytes(), stamp.id, this.encoding);
    if ('failure' in read) {
      this.#fail(read.failure);
      return;
    }
    this.usage = read.turn.usage;
    this.uncountedPromptBytes = 0;
    if (this.#goOn()) return;
    this.#observeTurn(read.turn);
    const whole = this.#screened(read);
    if (whole === undefined) return;
    if (!stream || turnFailure(read.turn) !== undefined) {
      this.#completeWhole(whole);
      return;
    }
    const shown = streamWhole(served, whole.turn, stamp);
    this.writer = shown.writer;
    this.visible = true;
    this.#pending += shown.text;
    this.unseenRefusal = isRefusal(this.finish);
    this.#complete();
  }

  /** The answer as it may be shown; undefined when a filter blocks it, after the owner has been notified. */
  #screened(whole: WholeReply): WholeReply | undefined {
    try {
      return shownWhole(this.#setup, whole);
    } catch (thrown) {
      this.#refuse(thrown, true);
      return undefined;
    }
  }

  #refuse(thrown: unknown, complete: boolean): void {
    if (!(thrown instanceof GatewayError)) throw thrown;
    const streaming = this.#mode === 'stream';
    this.#mode = 'over';
    if (streaming) this.#reader!.stop();
    this.#call?.abort();
    this.#setup.owner.attemptBlocked(this, thrown, complete);
  }

  #completeWhole(whole: WholeReply): void {
    const failed = turnFailure(whole.turn);
    if (failed !== undefined) this.#fail(failed);
    else {
      this.whole = whole;
      this.unseenRefusal = isRefusal(this.finish);
      this.#complete();
    }
  }

  #observeTurn(turn: Turn): void {
    this.finish = readableFinish(turn.choices[0]?.finish, this.encoding);
    this.upstreamId = readableText(turn.id, this.encoding);
    this.serviceTier = readableText(turn.serviceTier, this.encoding);
    this.#judge?.turn(turn);
    this.outputBytes += visibleSizeOf(turn, this.encoding);
  }

  #read(chunk: Buffer): void {
    if (this.#gathered !== undefined) this.#body.size += chunk.length;
    if (this.#body.size > this.#setup.limits.upstreamReplyBytes) {
      this.#tooLarge();
      return;
    }
    try {
      this.#reader!.push(chunk);
    } catch (cause) {
      this.#fail({ kind: 'malformed', status: null, message: (cause as Error).message });
      return;
    }
    // The push may have set the mode to `over`; the owner has been notified then.
    if (this.#readsOn && this.visible && this.#pending !== '') this.#setup.owner.attemptAdvanced(this);
  }

  /** True within a stream and between two calls of one answer. */
  get #readsOn(): boolean {
    return this.#mode === 'stream' || this.#mode === 'head';
  }

  #event(name: string, data: string): void {
    const value = parsedEvent(data, this.encoding);
    this.#take(name, data, value, this.decoder!.read(name, data, value));
  }

  #take(name: string, data: string, value: unknown, events: readonly TurnEvent[]): void {
    let ended = false;
    for (const event of events) {
      if (event.type === 'failure') {
        this.#fail(readableFailure(event.failure, this.encoding));
        return;
      }
      if (event.type === 'end') ended = true;
      else this.#observe(event);
    }
    if (this.#gathered !== undefined) for (const event of events) this.#gathered.push(event);
    else if (!this.#present(name, data, value, events)) return;
    if (ended) this.#finished();
    else if (this.#send !== undefined) this.#goOn();
  }

  /** Writes what the client may see. Returns false when a filter blocks the answer. */
  #present(name: string, data: string, value: unknown, events: readonly TurnEvent[]): boolean {
    try {
      const shown = shownEvents(this.#setup, events);
      this.visible ||= someVisible(shown);
      this.#pending += this.writer!.event(name, data, value, shown);
      return true;
    } catch (thrown) {
      this.#refuse(thrown, events.at(-1)?.type === 'end');
      return false;
    }
  }

  /** Counts every event, shown or not: hidden output costs the same. */
  #observe(event: TurnEvent): void {
    this.#judge?.event(event);
    switch (event.type) {
      case 'partDelta':
        this.outputBytes += visibleSize(event.delta, this.encoding);
        break;
      case 'partStart':
        this.outputBytes += visibleSize(event.part, this.encoding);
        break;
      case 'usage':
        this.usage = event.usage;
        this.uncountedPromptBytes = 0;
        this.#countedBytes = this.outputBytes;
        break;
      case 'finish':
        this.finish ??= readableFinish(event.finish, this.encoding);
        break;
      case 'start':
        this.upstreamId ??= readableText(event.id, this.encoding);
        this.serviceTier ??= readableText(event.serviceTier, this.encoding);
    }
  }

  /** The connection closed before the end marker. `failure` says how; undefined for a clean close. */
  #closed(failure: UpstreamFailure | undefined): void {
    const reader = this.#reader!;
    const unfinished = failure === undefined ? reader.end() : null;
    if (unfinished !== null) this.#event(unfinished.name, unfinished.data);
    if (this.#mode !== 'stream') return;
    const stray = strayError(reader.stray, this.encoding);
    if (stray !== undefined) this.#event('error', stray);
    if (this.#mode !== 'stream') return;
    const events = this.decoder!.close();
    const cut = events.find((event) => event.type === 'failure');
    // A finish reason followed by silence or a clean close is a complete answer. After a broken connection it is not:
    // the usage or a further choice may be lost.
    const silent = failure === undefined || failure.kind === 'timeout';
    if (cut === undefined && silent) this.#take('', '', undefined, events);
    else this.#fail(failure ?? readableFailure(cut!.failure, this.encoding));
  }

  #finished(): void {
    this.#reader!.stop();
    if (this.#gathered !== undefined) {
      const whole = this.#screened(gatherWhole(this.#setup.served, this.#gathered));
      if (whole !== undefined) this.#completeWhole(whole);
      return;
    }
    const billed = (this.usage?.output ?? 0) > 0;
    const failed = this.visible ? undefined : unseenFailure(this.finish, billed);
    if (failed !== undefined) this.#fail(failed);
    else {
      this.unseenRefusal = !this.visible && isRefusal(this.finish);
      this.#complete();
    }
  }

  #complete(): void {
    this.#mode = 'over';
    this.#setup.owner.attemptCompleted(this);
  }

  #fail(failure: UpstreamFailure, sent = true): void {
    if (this.#mode === 'over') return;
    const streaming = this.#mode === 'stream';
    this.#mode = 'over';
    if (streaming) this.#reader!.stop();
    this.#call?.abort();
    this.#setup.owner.attemptFailed(this, this.#setup.screen?.failure(failure) ?? failure, sent);
  }
}
