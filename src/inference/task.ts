/**
 * What a request wants done, as the pipeline sees it: what it could cost, how it goes to one endpoint, what comes back,
 * and what that cost. Two kinds implement it: conversations (`conversation.ts`) and the operations with one public form
 * (`single.ts`). Everything else (order, budgets, journal, failover, abort, the row) is the same for both.
 */
import type { GatewayError } from '../base/errors.ts';
import type { Nano, Price } from '../base/money.ts';
import type { Endpoint } from '../catalog/index.ts';
import type { Finish, Usage } from '../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { Closing, FailureContext, Stamp, TurnDecoder } from '../formats/conversation/format.ts';
import type { Renewal } from '../formats/conversation/renewal.ts';
import type { WholeBody } from '../formats/single/index.ts';
import type { Hit } from '../guardrails/index.ts';
import type { Delivery, UpstreamCall, UpstreamReceiver } from '../providers/index.ts';
import type { ApiType } from '../spend/index.ts';
import type { Metered } from './meter.ts';
import type { ToolCallCounts } from './tool-calls.ts';
import type { Transcript } from './transcript.ts';

export interface Task {
  readonly apiType: ApiType;
  /** Id of the public form. */
  readonly form: string;
  /** Its answers have no first token: they come as a whole. */
  readonly answersWhole?: boolean;
  /** Status of an answer where every upstream was silent; default 504. */
  readonly silentStatus?: number;
  /** Size of what has to fit into an endpoint's context. */
  readonly promptBytes: number;
  /** Whether the endpoint has such an operation for its model; those that do not are no candidates. */
  servedBy(endpoint: Endpoint): boolean;
  /** @param promptTokens as counted; absent: taken from its bytes. Throws GatewayError for an endpoint that no limit could hold: without a price, without an output cap. */
  bound(endpoint: Endpoint, promptTokens?: number): CostBound;
  /**
   * The tokens of the prompt by the model's own tokenizer, for a request whose bound does not fit; undefined where there is
   * none, or none in time. Never less than what the model reads, media apart.
   */
  countPrompt?(endpoint: Endpoint): Promise<number | undefined>;
  /**
   * The most tokens that one attempt can use. Throws as `bound` does, but needs no price.
   * @param cap a smaller output cap that stands already
   * @param promptTokens as counted
   */
  tokens(endpoint: Endpoint, cap?: number, promptTokens?: number): TokenBound;
  /** For the intent that is journalled before dispatch. */
  estimate(endpoint: Endpoint): Estimate;
  /**
   * What must be waited for before an attempt at the endpoint, such as media that it takes only as bytes; undefined when
   * nothing must. Ends early when the signal is aborted. Rejects with a GatewayError 400 that refuses this endpoint.
   */
  prepare?(endpoint: Endpoint, signal: () => AbortSignal): Promise<void> | undefined;
  /** @throws Uncarried when the endpoint cannot carry the request */
  attempt(endpoint: Endpoint, about: AttemptAbout): Attempt;
  /** @param complete false for an answer that broke off: what came behind the last report is estimated */
  meter(endpoint: Endpoint, attempt: Attempt, complete: boolean): Metered;
  /** What the answers repeat of the request, for forms that do. */
  readonly echo?: Stamp['echo'];
  encodeFailure(error: GatewayError, about: FailureContext): unknown;
  /** An answer that was given before as that of this request. Absent: such answers are not given twice. */
  readonly renew?: ((json: string, renewal: Renewal) => string) | undefined;
  /** The text that ends a stream of which only comments have been sent. */
  failureEvent(error: GatewayError, stamp: Stamp, closing: Closing): string;
}

/** The most that one attempt can cost. */
export interface CostBound {
  nano: Nano;
  /** The output cap that `leftNano` still pays for, with its cost; undefined when no smaller cap may be put. */
  within(leftNano: Nano): { capOutputTokens: number; nano: Nano } | undefined;
}

/** The most tokens that one attempt can use, read and written. */
export interface TokenBound {
  most: number;
  /** The output cap that `left` tokens allow, with what it can use; undefined when no smaller cap may be put. */
  within(left: number): { capOutputTokens: number; tokens: number } | undefined;
}

export interface Estimate {
  promptTokens: number;
  promptNano: Nano;
  /** Of one token of output. */
  outputPrice: Price;
}

export interface AttemptAbout {
  stamp: Stamp;
  owner: AttemptOwner;
  /** Keyed hash of the end user, or of the account. */
  user: string;
  /** What a nearly spent budget leaves. */
  capOutputTokens?: number | undefined;
}

/** Sends one call to the endpoint of the attempt, signed as its provider wants it. */
export type Send = (call: AttemptCall, receiver: UpstreamReceiver) => UpstreamCall;
export type AttemptCall = Pick<Delivery, 'form' | 'stream' | 'path' | 'body' | 'method' | 'contentType' | 'url'>;

export interface AttemptOwner {
  /** Something visible is ready: `attempt.take()` has it. Called after each chunk that brought some. */
  attemptAdvanced(attempt: Attempt): void;
  /** The answer is complete: `attempt.whole` for a whole one, else the writer awaits `end`. */
  attemptCompleted(attempt: Attempt): void;
  /** `sent`: the upstream may have worked for it. `attempt.visible` tells whether the client has seen part of it. */
  attemptFailed(attempt: Attempt, failure: UpstreamFailure, sent: boolean): void;
  /** A filter of a guardrail refuses the answer; `complete` when all of it had come. */
  attemptBlocked(attempt: Attempt, error: GatewayError, complete: boolean): void;
}

/** One try at one endpoint. Tells its owner exactly once how it ended; decides nothing about what follows. */
export interface Attempt {
  start(send: Send): void;
  /** Ends the call at once; the owner hears nothing more of it. */
  abort(): void;
  pause(): void;
  resume(): void;
  /** Text for the client that has gathered since the last time. */
  take(): string;
  /** It has ended, one way or another. */
  readonly over: boolean;
  /** HTTP status of the upstream; 0 before the head came. */
  readonly status: number;
  readonly whole: WholeAnswer | undefined;
  /** Closes an answer that is streamed. */
  readonly writer: AnswerEnd | undefined;
  /** The client has seen something, so no other endpoint may answer any more. */
  readonly visible: boolean;
  /** It ended as a refusal that showed nothing, so another model may still be asked. */
  readonly unseenRefusal: boolean;
  /** An earlier call of this attempt was answered, so it has cost something whatever the last one did. */
  readonly paid: boolean;
  readonly usage: Usage | undefined;
  readonly finish: Finish | undefined;
  /** Of a streamed conversation. */
  readonly decoder?: TurnDecoder | undefined;
  /** UTF-8 bytes of everything written so far, for an estimate when no usage arrives. */
  readonly outputBytes: number;
  /** How much has been written since the upstream last told a usage. */
  readonly uncountedBytes: number;
  /** Of an answer that takes several calls: what the one that runs has sent, until its usage is told. */
  readonly uncountedPromptBytes?: number;
  readonly upstreamId: string | undefined;
  readonly serviceTier: string | null | undefined;
  /** Absent: no tools were declared. */
  readonly toolCalls?: ToolCallCounts | undefined;
  /** What filters of guardrails found in the answer. */
  readonly hits?: readonly Hit[] | undefined;
  /** What it said, when that is kept. */
  readonly transcript?: Transcript | undefined;
}

/** A whole answer as read; `write` renders it for the client once its figures are known. */
export interface WholeAnswer {
  write(stamp: Stamp, closing: Closing): WholeBody;
}

export interface AnswerEnd {
  end(closing: Closing): string;
  failure(error: GatewayError, closing: Closing): string;
}
