/** The facts that the stages of the pipeline add to a request. */
import type { Clock } from '../base/clock.ts';
import type { Hit } from '../guardrails/index.ts';
import type { RateLimitHold } from '../rate-limits/index.ts';
import type { Generation, OpenGeneration } from '../spend/index.ts';
import { Prepaid } from './accounting/prepaid.ts';
import type { ToolAccount } from './accounting/tool-account.ts';
import type { ReferencedFiles } from './admission/referenced-files.ts';
import { RequestReservation } from './admission/reservation.ts';
import { AnswerStream } from './answer/answer-stream.ts';
import { type DebugEvents, debugEvents } from './answer/debug-events.ts';
import type { AnswerListener } from './answer/listener.ts';
import type { Sink } from './answer/sink.ts';
import type { ContentBounds } from './answer/transcript.ts';
import type { InferenceParts } from './parts.ts';
import type { PipelineStage } from './plugins/plugin.ts';
import type { AcceptedRequest } from './request.ts';
import type { Candidate, ContinuedWork, Credential } from './routing/index.ts';
import type { SearchResult } from './web-search/index.ts';

/** A file of the request whose text the model reads in its place. */
export interface ParsedFile {
  /** SHA-256 of its bytes, in hexadecimal digits. */
  readonly hash: string;
  readonly filename: string | undefined;
  /** One for each page. */
  readonly texts: readonly string[];
}

/** A job that an upstream has accepted, with what another process needs to continue with it. */
export interface UpstreamJob {
  /** The upstream's id of it. */
  readonly id: string;
  readonly candidate: Candidate;
  readonly credential: Credential;
  readonly generation: OpenGeneration;
  /** The row of the request if the end of the job cannot be found out. */
  readonly estimate: Generation;
}

/** A request during admission, which needs no destination for an answer. */
export class Admission<R extends AcceptedRequest = AcceptedRequest> {
  /** The request as later stages see it: guardrail filters replace it by a redacted one. */
  request: R;
  /** Absent if no rate limit applies to the caller. */
  rateLimitHold: RateLimitHold | undefined;
  /** Filter matches of guardrails in the request and in its answer; undefined if there are none. */
  hits: readonly Hit[] | undefined;
  /** Stored files that the request references and that are media; undefined if there are none. */
  files: ReferencedFiles | undefined;
  /** The actions of plugins; undefined for most requests. */
  stages: readonly PipelineStage[] | undefined;
  /** How long the moderation service took; undefined for most requests. */
  moderationMs: number | undefined;
  /** Files that a plugin has turned into text; undefined for most requests. */
  parsed: readonly ParsedFile[] | undefined;
  #headers: Readonly<Record<string, string>> | undefined;

  constructor(request: R) {
    this.request = request;
  }

  /** Adds response headers. Several stages do, in any order; none can remove what another has set. */
  addHeaders(headers: Readonly<Record<string, string>>): void {
    this.#headers = this.#headers === undefined ? headers : { ...this.#headers, ...headers };
  }

  /** Every header added so far; undefined if there are none. */
  get headers(): Readonly<Record<string, string>> | undefined {
    return this.#headers;
  }

  addStage(stage: PipelineStage): void {
    this.stages = this.stages === undefined ? [stage] : [...this.stages, stage];
  }

  addHits(more: readonly Hit[] | undefined): void {
    if (more === undefined || more.length === 0) return;
    this.hits = this.hits === undefined ? more : [...this.hits, ...more];
  }
}

export class RequestContext<R extends AcceptedRequest = AcceptedRequest> extends Admission<R> {
  readonly sink: Sink;
  /** Debug events, for a stream whose client asked for them. */
  readonly debug: DebugEvents | undefined;
  /** Set if the content is logged; holds the size limits. */
  logged: ContentBounds | undefined;
  /** The logged content, once the answer has ended. */
  contents: { input: string; output: string } | undefined;
  /** Listeners of the answer; undefined for most requests. */
  listeners: readonly AnswerListener[] | undefined;
  /** Pages that a plugin has put before the prompt, by their URLs; undefined for most requests. */
  searched: ReadonlyMap<string, SearchResult> | undefined;
  /** A plugin's verdicts on the turns so far; undefined for most requests. */
  alignment: { readonly calls: readonly object[] } | undefined;
  /** Tools that were charged before the first turn, and the reservation for them; undefined for most requests. */
  prepaid: Prepaid | undefined;
  /** The upstream's id of the answer that this thread continues. */
  previousId: string | undefined;
  /** The upstream's id of the answer whose prompt is compared with this one. */
  comparedId: string | undefined;
  /** Why candidates were skipped, by the ids of their endpoints; undefined for most requests. */
  skipped: ReadonlyMap<string, string> | undefined;
  /** The request's row is written, or the turns of the request will write it. */
  hasRow = false;
  /**
   * Called when an upstream has accepted a job whose result is polled: from then on no other endpoint is asked. Absent: the
   * caller does not follow such jobs.
   */
  accepted: ((job: UpstreamJob) => void) | undefined;
  /** The work of an earlier request; only the endpoint and credential that did it can continue it. */
  continues: ContinuedWork | undefined;
  /** `accepted` was called: an upstream is making the result as a job. */
  hasJob = false;
  #stream: AnswerStream | undefined;
  #ends: readonly (() => void)[] | undefined;

  constructor(request: R, sink: Sink, clock: Clock) {
    super(request);
    this.sink = sink;
    this.debug = debugEvents(request, clock);
  }

  /** The account of tools that run before the first turn. */
  payingForTools(parts: InferenceParts): ToolAccount {
    return this.prepaying(parts).tools;
  }

  /** What is reserved before the first turn. */
  prepaying(parts: InferenceParts): Prepaid {
    this.prepaid ??= new Prepaid(this, new RequestReservation(this, undefined, parts), parts.spend);
    return this.prepaid;
  }

  /** The client's side of a streamed answer. */
  answerStream(parts: InferenceParts): AnswerStream {
    this.#stream ??= new AnswerStream(this, parts);
    return this.#stream;
  }

  /** Whether a stream is open to which only keep-alive comments were written. */
  get onlyKeptAlive(): boolean {
    return this.#stream?.opened === true && !this.#stream.begun;
  }

  /** Calls back once when the request is over, however it ends. */
  onEnd(run: () => void): void {
    this.#ends = this.#ends === undefined ? [run] : [...this.#ends, run];
  }

  end(): void {
    for (const run of this.#ends ?? []) run();
    this.#ends = undefined;
  }

  addSkipped(endpointId: string, reason: string): void {
    this.skipped = new Map(this.skipped).set(endpointId, reason);
  }

  addListener(listener: AnswerListener): void {
    this.listeners = this.listeners === undefined ? [listener] : [...this.listeners, listener];
  }
}
