/**
 * Reads one attempt of a conversation at one endpoint: bytes become events and usage, which go to the client's answer
 * (`answer/client-answer.ts`) as they come. Notifies its owner exactly once how it ended.
 */
import type { TextEncoding } from '../../base/byte-text.ts';
import type { Limits } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import type { VendorCopy } from '../../files/index.ts';
import type { Finish, ToolCallPart, Turn, TurnEvent, Usage } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { SpokenFormat, TurnDecoder } from '../../formats/conversation/format.ts';
import { EventReader } from '../../http/sse.ts';
import type { FrameReader, Framing, UpstreamCall, UpstreamReceiver } from '../../providers/index.ts';
import type { AnswerEnd, AnswerWriter } from '../answer/client-answer.ts';
import type { Transcript } from '../answer/transcript.ts';
import type { Attempt, AttemptOwner, Send } from '../task.ts';
import { announcedMode, contentOf } from './body-shape.ts';
import { BodyText, ERROR_BODY_BYTES } from './body-text.ts';
import { emptyFailure, isRefusal, strayError, turnFailure } from './empty-answer.ts';
import type { Passage, WholeReply } from './passage.ts';
import { parsedEvent, readableFailure, readableFinish, readableText } from './relay-bytes.ts';
import { refusalOf } from './reply-headers.ts';
import { type ToolCallCounts, ToolCallJudge } from './tool-calls.ts';
import { visibleSize, visibleSizeOf } from './visible-output.ts';

interface AttemptSetup<Answer extends AnswerWriter = AnswerWriter> {
  spoken: SpokenFormat;
  passage: Passage;
  copies?: readonly VendorCopy[] | undefined;
  /** The upstream's name for the model. */
  model: string;
  /** For ids that are made up, as in `SpokenFormat.decoder`. */
  seed: string;
  stream: boolean;
  /** Names of the declared tools; absent when the request declares none. */
  tools?: readonly string[] | undefined;
  answer: Answer;
  owner: AttemptOwner;
  limits: Limits;
  /** How the provider frames its streams into events; absent for server-sent events. */
  framing?: Framing | undefined;
  /** Decodes a response with an error status. */
  decodeFailure: SpokenFormat['decodeFailure'];
}

const REFUSED: UpstreamFailure = { kind: 'content_filter', status: 200, message: 'the model refused' };

export class ConversationAttempt<Answer extends AnswerWriter = AnswerWriter> implements Attempt, UpstreamReceiver {
  readonly #setup: AttemptSetup<Answer>;
  readonly answer: Answer;
  #call: UpstreamCall | undefined;
  #mode: 'head' | 'error' | 'whole' | 'stream' | 'over' = 'head';
  readonly #body = new BodyText();
  #began = false;
  #reader: FrameReader | undefined;
  decoder: TurnDecoder | undefined;

  /** 0 until the response head arrives. */
  status = 0;
  headers: Record<string, string> = {};
  encoding: TextEncoding = 'utf8';
  usage: Usage | undefined;
  finish: Finish | undefined;
  #outputBytes = 0;
  /** A whole answer, whose output is measured only if something needs it. */
  #unmeasured: Turn | undefined;
  /** The output bytes that the last reported usage covers. */
  #countedBytes = 0;
  upstreamId: string | undefined;
  serviceTier: string | null | undefined;
  readonly #judge: ToolCallJudge | undefined;

  constructor(setup: AttemptSetup<Answer>) {
    this.#setup = setup;
    this.answer = setup.answer;
    if (setup.tools !== undefined) this.#judge = new ToolCallJudge(setup.tools, setup.passage.encoding);
  }

  get betas(): readonly string[] | undefined {
    const { copies } = this.#setup;
    return copies === undefined || copies.length === 0 ? undefined : copies.flatMap(({ betas }) => betas);
  }

  /** The copies of files at the vendor that the request names. */
  get copies(): readonly VendorCopy[] | undefined {
    return this.#setup.copies;
  }

  start(send: Send): void {
    const { spoken, model, stream, passage } = this.#setup;
    const path = typeof spoken.path === 'string' ? spoken.path : spoken.path(model, stream);
    this.#call = send({ format: spoken.id, stream, path, body: passage.body }, this);
  }

  pause(): void {
    this.#call?.pause();
  }

  resume(): void {
    this.#call?.resume();
  }

  get visible(): boolean {
    return this.answer.visible;
  }

  get whole(): WholeReply | undefined {
    return this.answer.whole;
  }

  get writer(): AnswerEnd | undefined {
    return this.answer.end;
  }

  get calls(): readonly ToolCallPart[] | undefined {
    return this.answer.calls;
  }

  take(): string {
    return this.answer.take();
  }

  get transcript(): Transcript | undefined {
    return this.answer.transcript;
  }

  get hits(): AnswerWriter['hits'] {
    return this.answer.hits;
  }

  get toolCalls(): ToolCallCounts | undefined {
    return this.#judge?.counts;
  }

  /** UTF-8 bytes of all output so far, for an estimate when no usage arrives. */
  get outputBytes(): number {
    if (this.#unmeasured !== undefined) this.#outputBytes += visibleSizeOf(this.#unmeasured, this.encoding);
    this.#unmeasured = undefined;
    return this.#outputBytes;
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

  head(status: number, headers: Record<string, string>): void {
    if (this.#mode === 'over') return;
    this.status = status;
    this.headers = headers;
    this.#mode = announcedMode(status, headers['content-type'], this.#setup.stream);
    if (this.#mode === 'stream') this.#startStream();
  }

  /** The first byte of content decides how the body is read, whatever its type says. Returns the content that has arrived. */
  #begin(chunk: Buffer): Buffer | undefined {
    const content = contentOf(chunk);
    if (content === undefined) return undefined;
    this.#began = true;
    if (this.#mode === 'stream' && content.shape === 'object') this.#mode = 'whole';
    else if (this.#mode === 'whole' && content.shape === 'events') this.#startStream();
    return content.bytes;
  }

  #startStream(): void {
    this.#mode = 'stream';
    const { framing, limits, passage, seed, stream } = this.#setup;
    this.decoder = passage.decoder(seed);
    // Events that the client gets as a whole answer are encoded from the events, not relayed.
    this.encoding = stream ? passage.encoding : 'utf8';
    const onEvent = (name: string, data: string) => this.#event(name, data);
    this.#reader =
      framing === undefined
        ? new EventReader(onEvent, limits.upstreamEventBytes, this.encoding === 'latin1')
        : framing(onEvent, limits.upstreamEventBytes);
    this.answer.begin();
  }

  data(received: Buffer): void {
    const chunk = this.#began || this.#setup.framing !== undefined ? received : this.#begin(received);
    if (chunk === undefined) return;
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
    const { passage, seed, stream } = this.#setup;
    this.encoding = stream ? 'utf8' : passage.encoding;
    const read = passage.readWhole(this.#body.takeBytes(), seed, this.encoding);
    if ('failure' in read) {
      this.#fail(read.failure);
      return;
    }
    this.#observeTurn(read.turn);
    const failed = turnFailure(read.turn);
    if (failed !== undefined) this.#fail(failed);
    else if (this.#fallsBack()) this.#fail(REFUSED);
    else if (this.#writes(() => this.answer.reply(read)) && !this.#tooLong()) this.#complete();
  }

  #observeTurn(turn: Turn): void {
    this.usage = turn.usage;
    this.finish = readableFinish(turn.choices[0]?.finish, this.encoding);
    this.upstreamId = readableText(turn.id, this.encoding);
    this.serviceTier = readableText(turn.serviceTier, this.encoding);
    this.#judge?.turn(turn);
    this.#unmeasured = turn;
  }

  #read(chunk: Buffer): void {
    if (this.answer.gathers) this.#body.size += chunk.length;
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
    if (this.#mode === 'stream' && this.answer.advances) this.#setup.owner.attemptAdvanced(this);
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
    let answerEvents: readonly TurnEvent[];
    try {
      answerEvents = this.answer.event(name, data, value, events);
    } catch (thrown) {
      this.#block(thrown, ended);
      return;
    }
    if (this.#judge !== undefined) for (const event of answerEvents) this.#judge.event(event);
    if (!this.#tooLong() && ended) this.#finished();
  }

  #tooLong(): boolean {
    const { failure } = this.answer;
    if (failure !== undefined) this.#fail(failure);
    return failure !== undefined;
  }

  /** Runs `write`. Returns false when a filter blocks the answer, after the owner has been notified. */
  #writes(write: () => void): boolean {
    try {
      write();
      return true;
    } catch (thrown) {
      this.#block(thrown, true);
      return false;
    }
  }

  #block(thrown: unknown, complete: boolean): void {
    if (!(thrown instanceof GatewayError)) throw thrown;
    this.#stop();
    this.#setup.owner.attemptBlocked(this, thrown, complete);
  }

  /** Counts every event, shown or not: hidden output costs the same. */
  #observe(event: TurnEvent): void {
    switch (event.type) {
      case 'partDelta':
        this.#outputBytes += visibleSize(event.delta, this.encoding);
        break;
      case 'partStart':
        this.#outputBytes += visibleSize(event.part, this.encoding);
        break;
      case 'usage':
        this.usage = event.usage;
        this.#countedBytes = this.#outputBytes;
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
    const { calls } = this.answer;
    if (calls !== undefined && (calls.length > 0 || this.answer.judged !== true)) {
      this.#complete();
      return;
    }
    const failed = this.visible ? undefined : this.#emptyFailure();
    if (failed !== undefined) this.#fail(failed);
    else if (!this.visible && this.#fallsBack()) this.#fail(REFUSED);
    else if (this.#writes(() => this.answer.finish())) this.#complete();
  }

  #emptyFailure(): UpstreamFailure | undefined {
    if (this.answer.gathers || this.answer.judged === true) return turnFailure(this.answer.gatheredTurn());
    return emptyFailure(this.finish, (this.usage?.output ?? 0) > 0);
  }

  /** Whether another model takes over after a refusal that the client has not seen. */
  #fallsBack(): boolean {
    return isRefusal(this.finish) && this.#setup.owner.fallsBack(this);
  }

  #complete(): void {
    this.#mode = 'over';
    this.#setup.owner.attemptCompleted(this);
  }

  #stop(): boolean {
    const streaming = this.#mode === 'stream';
    this.#mode = 'over';
    if (streaming) this.#reader!.stop();
    this.#call?.abort();
    return streaming;
  }

  #fail(failure: UpstreamFailure, sent = true): void {
    if (this.#mode === 'over') return;
    this.#stop();
    this.usage = failure.usage ?? this.usage;
    this.#setup.owner.attemptFailed(this, this.answer.screenedFailure(failure), sent);
  }
}
