/**
 * One attempt of an operation with a single public format at one endpoint. It makes the upstream calls that the
 * operation takes, one after the other; each response is read whole, event by event or, if it is audio, passed on byte by
 * byte. It notifies its owner exactly once how it ended.
 */
import type { TextEncoding } from '../../base/byte-text.ts';
import type { Timer } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Usage } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Closing, Stamp } from '../../formats/conversation/format.ts';
import { addUsage } from '../../formats/conversation/usage.ts';
import type { CallPlan, FetchedMedium, ReplyEvents, Step } from '../../formats/direct/index.ts';
import type { Hit } from '../../guardrails/index.ts';
import { EventReader } from '../../http/sse.ts';
import type { FrameReader, UpstreamCall, UpstreamReceiver } from '../../providers/index.ts';
import type { AnswerEnd } from '../answer/client-answer.ts';
import type { Transcript } from '../answer/transcript.ts';
import { fetchResults } from '../media/fetch-results.ts';
import type { Attempt, Send, WholeAnswer } from '../task.ts';
import { BodyText, ERROR_BODY_BYTES } from './body-text.ts';
import type { DirectAttemptSetup } from './direct-attempt-setup.ts';
import { cut, empty, endless, lastEvents, tooLarge } from './direct-failures.ts';
import { isEventStream, isMedium, refusalOf } from './reply-headers.ts';

export class DirectAttempt<Answer> implements Attempt, UpstreamReceiver {
  readonly #setup: DirectAttemptSetup<Answer>;
  #plan: CallPlan<Answer>;
  #send: Send | undefined;
  #call: UpstreamCall | undefined;
  #wait: Timer | undefined;
  /** Aborts the fetching of results. */
  #stop: AbortController | undefined;
  /** How often the current call was repeated. */
  #repeated = 0;
  #startedAt = 0;
  #mode: 'head' | 'error' | 'whole' | 'stream' | 'bytes' | 'waiting' | 'over' = 'head';
  #headers: Record<string, string> = {};
  readonly #body = new BodyText();
  #reader: FrameReader | undefined;
  #events: ReplyEvents<Answer> | undefined;
  #pending = '';
  /** Bytes passed on so far. */
  #passed = 0;
  /** The owner knows of the upstream's job. */
  #accepted = false;
  /** Usage of the completed calls. Within a stream, later usage events replace earlier ones. */
  #earlier: Usage | undefined;

  status = 0;
  whole: WholeAnswer | undefined;
  writer: AnswerEnd | undefined;
  visible = false;
  paid = false;
  usage: Usage | undefined;
  hits: readonly Hit[] | undefined;
  transcript: Transcript | undefined;
  /** What is known of the usage that the upstream did not report. */
  known: Partial<Usage> | undefined;
  /** Output tokens by the text so far, for an estimate. */
  shownTokens: number | undefined;
  upstreamId: string | undefined;
  encoding: TextEncoding = 'utf8';
  /** Of the bytes that are passed on; undefined for other replies. */
  mediaType: string | undefined;
  readonly finish = undefined;
  readonly outputBytes = 0;
  readonly uncountedBytes = 0;
  readonly serviceTier = undefined;

  constructor(setup: DirectAttemptSetup<Answer>) {
    this.#setup = setup;
    this.#plan = setup.plan;
    this.upstreamId = setup.upstreamId;
  }

  get over(): boolean {
    return this.#mode === 'over';
  }

  /** The share of the request that is in a call whose usage has not been reported. */
  get openShare(): number {
    return this.#call === undefined ? 0 : (this.#plan.share ?? 1);
  }

  start(send: Send): void {
    this.#send = send;
    this.#startedAt = this.#setup.clock.monotonic();
    this.#begin();
  }

  abort(): void {
    this.#mode = 'over';
    this.#wait?.cancel();
    this.#stop?.abort();
    this.#call?.abort();
  }

  pause(): void {
    this.#call?.pause();
  }

  resume(): void {
    this.#call?.resume();
  }

  take(): string {
    const text = this.#pending;
    this.#pending = '';
    return text;
  }

  head(status: number, headers: Record<string, string>): void {
    if (this.#mode === 'over') return;
    this.status = status;
    this.#headers = headers;
    if (status >= 300) this.#mode = 'error';
    else if (isEventStream(headers['content-type'])) this.#startStream();
    else if (this.#plan.bytes !== undefined && isMedium(headers['content-type'])) this.#startBytes(headers);
    else this.#mode = 'whole';
  }

  data(chunk: Buffer): void {
    if (this.#mode === 'whole') {
      if (this.#body.size + chunk.length > this.#setup.limits.upstreamReplyBytes) this.#fail(tooLarge(this.status));
      else this.#body.add(chunk);
    } else if (this.#mode === 'error') {
      this.#body.addUpTo(ERROR_BODY_BYTES, chunk);
    } else if (this.#mode === 'stream') {
      this.#read(chunk);
    } else if (this.#mode === 'bytes') {
      this.#pass(chunk);
      this.#setup.owner.attemptAdvanced(this);
    } else if (this.#mode === 'over') {
      // Data after the end is useless and may never end.
      this.#call?.abort();
    }
  }

  end(): void {
    if (this.#mode === 'whole') this.#readWhole();
    else if (this.#mode === 'error') this.#refused();
    else if (this.#mode === 'stream') this.#closed();
    else if (this.#mode === 'bytes') this.#completeBytes(undefined);
  }

  /** The stream ended in order, but before its end marker. */
  #closed(): void {
    for (const [name, data] of lastEvents(this.#reader!)) this.#event(name, data);
    if (this.#mode === 'stream') this.#fail(cut());
  }

  failed(failure: UpstreamFailure, sent: boolean): void {
    if (this.#mode === 'over') return;
    // An error status whose body breaks off is still that error.
    if (this.#mode === 'error') this.#refused();
    else if (!this.#repeats(failure)) this.#fail(failure, sent);
  }

  #begin(): void {
    const { format, stream } = this.#setup;
    const { path, body, method, contentType, url } = this.#plan.call;
    this.#mode = 'head';
    this.#body.clear();
    this.#call = this.#send!(
      {
        format,
        // Bytes have no heartbeats.
        stream: stream && this.#plan.bytes === undefined,
        path,
        body,
        ...(method && { method }),
        ...(contentType && { contentType }),
        ...(url && { url }),
      },
      this,
    );
  }

  #readWhole(): void {
    const body = this.#body.takeBytes();
    const step = this.#plan.read({ status: this.status, headers: this.#headers, body });
    this.#take(step);
  }

  #take(step: Step<Answer>): void {
    if ('failure' in step) {
      this.#fail(step.failure);
      return;
    }
    this.upstreamId ??= step.upstreamId;
    this.#call = undefined;
    this.#repeated = 0;
    if ('fetch' in step) {
      // The work is done and charged, even if fetching the images fails.
      this.usage = addUsage(this.#earlier, step.usage);
      this.paid = true;
      void this.#fetchResults(step.fetch, step.withMedia);
      return;
    }
    this.#earlier = addUsage(this.#earlier, step.usage);
    this.usage = this.#earlier;
    if ('answer' in step) {
      this.shownTokens = step.shownTokens;
      this.#complete(step.answer);
    } else this.#follow(step.next, step.afterMs, step.accepted === true);
  }

  #follow(next: CallPlan<Answer>, afterMs: number | undefined, accepted: boolean): void {
    const { clock, totalMs } = this.#setup;
    if (!accepted) this.paid = true;
    this.#plan = next;
    this.#mode = 'waiting';
    if (this.upstreamId !== undefined && !this.#accepted) {
      this.#accepted = true;
      this.#setup.owner.attemptAccepted(this);
    }
    if (clock.monotonic() - this.#startedAt + (afterMs ?? 0) > totalMs) {
      this.#fail({ kind: 'timeout', status: null, message: `the upstream took longer than ${totalMs} ms` });
    } else if (afterMs === undefined) {
      this.#begin();
    } else {
      this.#wait = clock.timer(afterMs, () => {
        if (this.#mode === 'waiting') this.#begin();
      });
    }
  }

  /** The upstream's work is done: fetches the images from the URLs that it returned. */
  async #fetchResults(
    urls: readonly string[],
    withMedia: (media: ReadonlyMap<string, FetchedMedium>) => Step<Answer>,
  ): Promise<void> {
    const { egress, limits, clock, totalMs } = this.#setup;
    this.#mode = 'waiting';
    this.#stop = new AbortController();
    const timeoutMs = Math.max(1, this.#startedAt + totalMs - clock.monotonic());
    const options = { maxBytes: limits.upstreamReplyBytes, timeoutMs, signal: this.#stop.signal };
    const media = await fetchResults(egress, urls, options);
    if (media === undefined || this.#mode !== 'waiting') return;
    if ('failure' in media) this.#fail(media.failure);
    else this.#take(withMedia(media));
  }

  /** A reply whose end only the closed connection shows could be broken, so it is refused. */
  #startBytes(headers: Record<string, string>): void {
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
      this.#fail(endless(this.status));
      return;
    }
    this.#mode = 'bytes';
    this.#asBytes(headers['content-type']);
  }

  #asBytes(told?: string): void {
    this.encoding = 'latin1';
    this.mediaType = told !== undefined && /^(?:audio|video)\//.test(told) ? told : this.#plan.bytes!.mediaType;
    this.writer = { end: () => '', failure: () => '' };
  }

  #pass(bytes: Buffer): void {
    this.#pending += bytes.toString('latin1');
    this.#passed += bytes.length;
    this.visible = true;
  }

  #completeBytes(usage: Usage | undefined): void {
    if (this.#passed === 0) {
      this.#fail(empty());
      return;
    }
    this.usage = addUsage(this.#earlier, usage);
    this.known = this.#plan.bytes!.known(this.#passed);
    this.#mode = 'over';
    this.#call = undefined;
    this.#setup.owner.attemptCompleted(this);
  }

  #startStream(): void {
    this.#events = this.#plan.events?.();
    if (this.#events === undefined) {
      this.#fail({ kind: 'malformed', status: this.status, message: 'the upstream answered with an event stream' });
      return;
    }
    const { framing, limits } = this.#setup;
    const onEvent = (name: string, data: string) => this.#event(name, data);
    this.#mode = 'stream';
    this.#reader =
      framing === undefined
        ? new EventReader(onEvent, limits.upstreamEventBytes)
        : framing(onEvent, limits.upstreamEventBytes);
    if (this.#plan.bytes !== undefined) this.#asBytes();
    else if (this.#setup.stream) this.writer = this.#writer(undefined);
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader!.push(chunk);
    } catch (cause) {
      this.#fail({ kind: 'malformed', status: null, message: (cause as Error).message });
      return;
    }
    if (this.#mode === 'stream' && this.#pending !== '') this.#setup.owner.attemptAdvanced(this);
  }

  #event(name: string, data: string): void {
    if (this.#mode !== 'stream') return;
    const step = this.#events!.read(name, data);
    this.upstreamId ??= step.upstreamId;
    if (step.usage !== undefined) this.usage = addUsage(this.#earlier, step.usage);
    this.shownTokens = step.shownTokens ?? this.shownTokens;
    // A client that did not ask for a stream waits for the whole answer.
    if (step.text !== undefined && step.text !== '' && this.#setup.stream) {
      this.#pending += step.text;
      this.visible = true;
    }
    if (step.bytes !== undefined && step.bytes.length > 0) this.#pass(step.bytes);
    if (step.failure !== undefined) {
      this.#fail(step.failure);
    } else if (step.answer !== undefined) {
      this.#reader!.stop();
      this.#call?.abort();
      this.#complete(step.answer);
    } else if (step.ended) {
      this.#reader!.stop();
      this.#call?.abort();
      this.#completeBytes(step.usage);
    }
  }

  #complete(read: Answer): void {
    const { owner, encodeReply, mediaType, stream, events, transcribe } = this.#setup;
    const streamed = stream && (this.#mode === 'stream' || events?.whole === true);
    this.#mode = 'over';
    this.#call = undefined;
    let answer: Answer;
    try {
      answer = this.#screened(read);
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown;
      owner.attemptBlocked(this, thrown, true);
      return;
    }
    this.transcript = transcribe?.(answer);
    // Needed for a whole response too: a keep-alive comment may have opened the client's stream meanwhile.
    this.writer = this.#writer(answer);
    if (!streamed) {
      this.whole = {
        write: (_stamp: Stamp, closing: Closing) => encodeReply(answer, closing),
        ...(mediaType && { mediaType: mediaType(answer) }),
      };
    }
    owner.attemptCompleted(this);
  }

  #screened(answer: Answer): Answer {
    const { screen } = this.#setup;
    if (screen === undefined) return answer;
    try {
      return screen.answer(answer);
    } finally {
      this.hits = screen.hits;
    }
  }

  #writer(answer: Answer | undefined): AnswerEnd {
    const { events } = this.#setup;
    return {
      end: (closing) => (answer === undefined ? '' : (events?.end(answer, closing) ?? '')),
      failure: (error) => events?.failure(error) ?? '',
    };
  }

  #refused(): void {
    const failure = refusalOf(this.#setup.decodeFailure, this.status, this.#body.take(), this.#headers);
    if (!this.#repeats(failure)) this.#fail(failure);
  }

  /** A job continues although one poll failed. */
  #repeats({ status }: UpstreamFailure): boolean {
    const { again } = this.#plan;
    const isLasting = status !== null && status >= 300 && status < 500 && status !== 429;
    if (again === undefined || isLasting || this.#repeated >= again.times) return false;
    this.#repeated += 1;
    this.#follow(this.#plan, again.afterMs, true);
    return true;
  }

  #fail(failure: UpstreamFailure, sent = true): void {
    if (this.#mode === 'over') return;
    if (this.#mode === 'stream') this.#reader!.stop();
    this.#mode = 'over';
    this.#wait?.cancel();
    this.#call?.abort();
    // An error status, a redirect and a call that was never sent cost nothing.
    if (!sent || failure.usage !== undefined || (failure.status ?? 0) >= 300) this.#call = undefined;
    if (failure.usage !== undefined) this.usage = addUsage(this.#earlier, failure.usage);
    this.#setup.owner.attemptFailed(this, failure, sent);
  }
}
