import { parseJson } from '../base/json.ts';
import type { Finish, Turn, TurnEvent, Usage } from '../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { TurnDecoder } from '../formats/conversation/format.ts';
import { EventReader } from '../http/sse.ts';
import type { FrameReader, UpstreamCall, UpstreamReceiver } from '../providers/index.ts';
import type { AttemptSetup } from './attempt-setup.ts';
import { isEventStream, isJson, retryAfter } from './reply-headers.ts';
import { RoundReceiver } from './round-receiver.ts';
import { emptyAnswer, isEmpty, isRefusal, strayError } from './said-nothing.ts';
import type { Attempt, Send } from './task.ts';
import { type ToolCallCounts, ToolCallJudge } from './tool-calls.ts';
import type { Transcript } from './transcript.ts';
import { gatherWhole, type StreamWriter, streamWhole, type WholeReply } from './translate.ts';
import { isVisible, visibleSize } from './visible.ts';

/** An error's body is read up to here; what vendors say in more is not worth the memory. */
const ERROR_BODY_BYTES = 256 * 1024;
const BYTE_ORDER_MARK = '\ufeff';

export class ConversationAttempt implements Attempt, UpstreamReceiver {
  readonly #setup: AttemptSetup;
  #call: UpstreamCall | undefined;
  #round: RoundReceiver | undefined;
  #mode: 'head' | 'error' | 'whole' | 'stream' | 'over' = 'head';
  /** Body of an error or of a whole answer. */
  #chunks: Buffer[] = [];
  #size = 0;
  #reader: FrameReader | undefined;
  #decoder: TurnDecoder | undefined;
  #pending = '';
  /** Events of a stream that came although a whole answer was asked for. */
  #gathered: TurnEvent[] | undefined;

  /** 0 before the head came. */
  status = 0;
  headers: Record<string, string> = {};
  writer: StreamWriter | undefined;
  whole: WholeReply | undefined;
  /** The stream has brought something that the client sees, so no other endpoint may answer any more. */
  visible = false;
  /** The stream ended as a refusal that showed nothing, so another model may still be asked. */
  unseenRefusal = false;
  usage: Usage | undefined;
  finish: Finish | undefined;
  /** UTF-8 bytes of everything written so far, for an estimate when no usage arrives. */
  outputBytes = 0;
  /** What of them the last reported usage knows. */
  #countedBytes = 0;
  upstreamId: string | undefined;
  serviceTier: string | null | undefined;
  /** An earlier call of the answer was complete. */
  paid = false;
  uncountedPromptBytes = 0;
  #send: Send | undefined;
  readonly #judge: ToolCallJudge | undefined;

  constructor(setup: AttemptSetup) {
    this.#setup = setup;
    if (setup.tools !== undefined) this.#judge = new ToolCallJudge(setup.tools);
  }

  start(send: Send): void {
    const { spoken, passage, model, stream } = this.#setup;
    const path = typeof spoken.path === 'string' ? spoken.path : spoken.path(model, stream);
    if (passage.again !== undefined) this.#send = (call, receiver) => send({ ...call, path }, receiver);
    this.#call = send({ form: spoken.id, stream, path, body: passage.body }, this.#receiver());
  }

  /** Whom a call tells: for an answer of several calls, one that falls silent when the next call begins. */
  #receiver(): UpstreamReceiver {
    if (this.#send === undefined) return this;
    const round = new RoundReceiver(this);
    this.#round = round;
    return round;
  }

  /** The answer takes a further call, if its passage says so. */
  #goOn(): boolean {
    const body = this.#setup.passage.again?.();
    if (body === undefined) return false;
    const { spoken, stream } = this.#setup;
    this.#reader?.stop();
    this.#round?.leave(this.#call);
    this.uncountedPromptBytes = Buffer.byteLength(body);
    this.paid = true;
    this.#mode = 'head';
    this.#chunks = [];
    this.#size = 0;
    this.#call = this.#send!({ form: spoken.id, stream, path: '', body }, this.#receiver());
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

  get toolCalls(): ToolCallCounts | undefined {
    return this.#judge?.counts;
  }

  /** How much has been written since the upstream last told a usage. */
  get uncountedBytes(): number {
    return this.outputBytes - this.#countedBytes;
  }

  /** It has ended, one way or another. */
  get over(): boolean {
    return this.#mode === 'over';
  }

  /** Ends the call at once; the owner hears nothing more of it. */
  abort(): void {
    this.#mode = 'over';
    this.#call?.abort();
  }

  /** Text for the client that has gathered since the last time. */
  take(): string {
    const text = this.#pending;
    this.#pending = '';
    return text;
  }

  head(status: number, headers: Record<string, string>): void {
    if (this.#mode === 'over') return;
    this.status = status;
    this.headers = headers;
    if (status >= 300) {
      this.#mode = 'error';
    } else if (this.#setup.stream && !isJson(headers['content-type'])) {
      this.#startStream();
      this.writer ??= this.#setup.passage.writer(this.#setup.stamp);
    } else if (isEventStream(headers['content-type'])) {
      this.#startStream();
      this.#gathered ??= [];
    } else {
      this.#mode = 'whole';
    }
  }

  #startStream(): void {
    this.#mode = 'stream';
    this.#decoder = this.#setup.passage.decoder(this.#setup.stamp.id);
    const { framing, limits } = this.#setup;
    const onEvent = (name: string, data: string) => this.#event(name, data);
    this.#reader =
      framing === undefined
        ? new EventReader(onEvent, limits.upstreamEventBytes)
        : framing(onEvent, limits.upstreamEventBytes);
  }

  data(chunk: Buffer): void {
    if (this.#mode === 'stream') {
      this.#read(chunk);
    } else if (this.#mode === 'error') {
      if (this.#size < ERROR_BODY_BYTES) this.#gather(chunk.subarray(0, ERROR_BODY_BYTES - this.#size));
    } else if (this.#mode === 'whole') {
      if (this.#size + chunk.length > this.#setup.limits.upstreamReplyBytes) this.#tooLarge();
      else this.#gather(chunk);
    } else if (this.#mode === 'over') {
      // More after the end marker is of no use to anybody, and may never end.
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
    this.#fail({ kind: 'malformed', status: this.status, message: 'the upstream answer is too large' });
  }

  #gather(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
  }

  #text(): string {
    const text = (this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)).toString('utf8');
    // Some servers begin JSON with a byte order mark, as an event stream may.
    return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  }

  #refused(): void {
    const failure =
      this.status < 400
        ? ({ kind: 'server', status: this.status, message: 'the upstream answered with a redirect' } as const)
        : this.#setup.decodeFailure(this.status, this.#text(), this.headers);
    const hint = retryAfter(this.headers);
    this.#fail(hint === undefined ? failure : { ...failure, retryAfterSeconds: hint });
  }

  #readWhole(): void {
    const { passage, served, stamp, stream } = this.#setup;
    const read = passage.readWhole(this.#text(), stamp.id);
    this.#chunks = [];
    if ('failure' in read) {
      this.#fail(read.failure);
      return;
    }
    this.usage = read.turn.usage;
    this.uncountedPromptBytes = 0;
    if (this.#goOn()) return;
    this.#observeTurn(read.turn);
    if (!stream || isEmpty(read.turn)) {
      this.#completeWhole(read);
      return;
    }
    const shown = streamWhole(served, read.turn, stamp);
    this.writer = shown.writer;
    this.visible = true;
    this.#pending += shown.text;
    this.unseenRefusal = isRefusal(this.finish);
    this.#complete();
  }

  #completeWhole(whole: WholeReply): void {
    if (isEmpty(whole.turn)) {
      this.#fail(emptyAnswer());
      return;
    }
    this.whole = whole;
    this.unseenRefusal = isRefusal(this.finish);
    this.#complete();
  }

  #observeTurn(turn: Turn): void {
    this.usage = turn.usage;
    this.finish = turn.choices[0]?.finish;
    this.upstreamId = turn.id;
    this.serviceTier = turn.serviceTier;
    this.#judge?.turn(turn);
    this.#setup.transcript?.turn(turn);
    for (const choice of turn.choices) for (const part of choice.parts) this.outputBytes += visibleSize(part);
  }

  #read(chunk: Buffer): void {
    if (this.#gathered !== undefined) {
      this.#size += chunk.length;
      if (this.#size > this.#setup.limits.upstreamReplyBytes) {
        this.#tooLarge();
        return;
      }
    }
    try {
      this.#reader!.push(chunk);
    } catch (cause) {
      this.#fail({ kind: 'malformed', status: null, message: (cause as Error).message });
      return;
    }
    // The mode may have become `over` inside push: then the owner already knows.
    if (this.#readsOn && this.visible && this.#pending !== '') this.#setup.owner.attemptAdvanced(this);
  }

  /** Within a stream, or between two calls of one answer. */
  get #readsOn(): boolean {
    return this.#mode === 'stream' || this.#mode === 'head';
  }

  #event(name: string, data: string): void {
    let value: unknown;
    try {
      value = parseJson(data);
    } catch {
      value = undefined;
    }
    this.#take(name, data, value, this.#decoder!.read(name, data, value));
  }

  #take(name: string, data: string, value: unknown, events: readonly TurnEvent[]): void {
    let ended = false;
    for (const event of events) {
      if (event.type === 'failure') {
        this.#fail(event.failure);
        return;
      }
      if (event.type === 'end') ended = true;
      else this.#observe(event);
    }
    if (this.#gathered !== undefined) for (const event of events) this.#gathered.push(event);
    else this.#pending += this.writer!.event(name, data, value, events);
    if (ended) this.#finished();
    else if (this.#send !== undefined) this.#goOn();
  }

  #observe(event: TurnEvent): void {
    this.#judge?.event(event);
    this.#setup.transcript?.event(event);
    switch (event.type) {
      case 'partDelta': {
        const size = visibleSize(event.delta);
        this.outputBytes += size;
        if (size > 0) this.#show();
        break;
      }
      case 'partStart': {
        this.outputBytes += visibleSize(event.part);
        if (isVisible(event.part)) this.#show();
        break;
      }
      case 'usage':
        this.usage = event.usage;
        this.uncountedPromptBytes = 0;
        this.#countedBytes = this.outputBytes;
        break;
      case 'finish':
        this.finish ??= event.finish;
        break;
      case 'start':
        this.upstreamId ??= event.id;
        this.serviceTier ??= event.serviceTier;
    }
  }

  #show(): void {
    // What is gathered has not been shown to anybody.
    this.visible = this.#gathered === undefined;
  }

  /** The connection is over before the end marker came; `failure` says how, undefined for a clean close. */
  #closed(failure: UpstreamFailure | undefined): void {
    const reader = this.#reader!;
    const unfinished = failure === undefined ? reader.end() : null;
    if (unfinished !== null) this.#event(unfinished.name, unfinished.data);
    if (this.#mode !== 'stream') return;
    const stray = strayError(reader.stray);
    if (stray !== undefined) this.#event('error', stray);
    if (this.#mode !== 'stream') return;
    const events = this.#decoder!.close();
    const cut = events.find((event) => event.type === 'failure');
    // An upstream that has told its finish and then neither ends nor says more has answered; one whose connection
    // breaks has not: what was to follow (usage, a further choice) is lost.
    const silent = failure === undefined || failure.kind === 'timeout';
    if (cut === undefined && silent) this.#take('', '', undefined, events);
    else this.#fail(failure ?? cut!.failure);
  }

  #finished(): void {
    this.#reader!.stop();
    if (this.#gathered !== undefined) {
      this.#completeWhole(gatherWhole(this.#setup.served, this.#gathered));
      return;
    }
    const billed = (this.usage?.output ?? 0) > 0;
    if (!this.visible && !billed && !isRefusal(this.finish)) {
      this.#fail(emptyAnswer());
      return;
    }
    this.unseenRefusal = !this.visible && isRefusal(this.finish);
    this.#complete();
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
    this.#setup.owner.attemptFailed(this, failure, sent);
  }
}
