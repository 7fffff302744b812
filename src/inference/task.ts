/**
 * A request's work as the pipeline sees it: its cost bound, how it is sent to one endpoint, how the response is read,
 * and what it cost. Two classes implement it: conversations (`conversation-task.ts`) and operations with a single public
 * format (`direct-task.ts`). Everything else (order, budgets, journal, failover, abort, the row) is common to both.
 */
import type { TextEncoding } from '../base/byte-text.ts';
import type { GatewayError } from '../base/errors.ts';
import type { Nano, Price } from '../base/money.ts';
import type { Endpoint } from '../catalog/index.ts';
import type { Finish, Part, ToolCallPart, Usage } from '../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { Closing, Stamp, TurnDecoder } from '../formats/conversation/format.ts';
import type { Renewal } from '../formats/conversation/renewal.ts';
import type { WholeBody } from '../formats/direct/index.ts';
import type { Hit } from '../guardrails/index.ts';
import type { Delivery, UpstreamCall, UpstreamReceiver, UpstreamTarget } from '../providers/index.ts';
import type { ApiType } from '../spend/index.ts';
import type { Metered } from './accounting/meter.ts';
import type { AnswerEnd } from './answer/client-answer.ts';
import type { Transcript } from './answer/transcript.ts';
import type { EarlyRunning } from './before-turns.ts';
import type { ToolCallCounts } from './turns/tool-calls.ts';
import type { LoopRunning } from './turns/turn-loop.ts';

export interface Task {
  readonly apiType: ApiType;
  /** True for operations whose answers arrive in one piece, without a first token. */
  readonly answersWhole?: boolean;
  /** The answer is bytes without events, so heartbeats and error events cannot be written. */
  readonly streamsBytes?: boolean;
  /** Error status when every upstream timed out; default 504. */
  readonly timeoutStatus?: number;
  /** Size of the part that has to fit into an endpoint's context. */
  readonly promptBytes: number;
  /** Whether the endpoint offers the operation for its model; others are not candidates. */
  servedBy(endpoint: Endpoint): boolean;
  /**
   * @param promptTokens exact count; if absent, bounded by the prompt's bytes. Throws GatewayError for an endpoint
   * whose cost cannot be bounded: without a price, or without an output cap.
   */
  bound(endpoint: Endpoint, promptTokens?: number): CostBound;
  /**
   * Counts the prompt with the model's own tokenizer, for a request whose byte bound does not fit. Undefined if there
   * is no tokenizer or it takes too long. Never less than what the model reads, media excluded.
   */
  countPrompt?(endpoint: Endpoint): Promise<number | undefined>;
  /**
   * The most tokens that one attempt can use. Throws as `bound` does, but needs no price.
   * @param cap a smaller output cap that applies already
   * @param promptTokens exact count
   */
  tokens(endpoint: Endpoint, cap?: number, promptTokens?: number): TokenBound;
  /** The estimate for the intent that is journaled before dispatch. */
  estimate(endpoint: Endpoint): Estimate;
  /**
   * Queries other services before the first turn, for example for their tools. Absent: there are none. Rejects with GatewayError.
   */
  readonly discover?: ((running: EarlyRunning) => Promise<void>) | undefined;
  /**
   * Before the first turn, continues tool calls of earlier answers; undefined if there are none. Resolves with the parts of the
   * answer if no turn follows. Rejects with GatewayError.
   */
  readonly continueCalls?: ((running: EarlyRunning) => Promise<readonly Part[] | undefined>) | undefined;
  /**
   * Prepares an attempt at the endpoint, for example by fetching media that it accepts only as bytes; undefined if
   * there is nothing to prepare. Ends early when the signal is aborted. Rejects with a GatewayError 400 that rules out
   * this endpoint.
   */
  prepare?(endpoint: Endpoint, about: Preparing): Promise<void> | undefined;
  /**
   * Whether the same endpoint may succeed after this failure, because the vendor has lost what was prepared for the
   * attempt. Undefined: it may not. Resolves when the endpoint can be retried.
   */
  recover?(attempt: Attempt, failure: UpstreamFailure): Promise<void> | undefined;
  /**
   * Runs the gateway's tools that a completed turn calls. Resolves with true if the answer continues with another turn;
   * from then on the task's bounds, estimates and attempts are those of that turn. Absent: every answer is one turn.
   */
  next?(attempt: Attempt, running: LoopRunning): Promise<boolean>;
  /** @throws Uncarried when the endpoint cannot carry the request */
  attempt(endpoint: Endpoint, about: AttemptAbout): Attempt;
  /** The path of the field that needs what an endpoint cannot carry (`Uncarried.feature`), where it is known. */
  pathOf?(feature: string): string | undefined;
  /** @param complete false for an answer that broke off: output after the last report is estimated */
  meter(endpoint: Endpoint, attempt: Attempt, complete: boolean): Metered;
  /** Members of the request that replies repeat, for formats that do so. */
  readonly echo?: Stamp['echo'];
  /** Rewrites a cached answer for this request. Absent: the operation's answers are not cached. */
  readonly renew?: ((json: string, renewal: Renewal) => string) | undefined;
  /** The text that ends a stream after only comments have been sent. */
  failureEvent(error: GatewayError, stamp: Stamp, closing: Closing): string;
}

/** The most that one attempt can cost. */
export interface CostBound {
  nano: Nano;
  /** The output cap that `leftNano` pays for, with its cost; undefined if no smaller cap may be set. */
  within(leftNano: Nano): { capOutputTokens: number; nano: Nano } | undefined;
}

/** The most tokens that one attempt can use, input and output. */
export interface TokenBound {
  tokens: number;
  /** The output cap that `left` tokens allow, with its token bound; undefined if no smaller cap may be set. */
  within(left: number): { capOutputTokens: number; tokens: number } | undefined;
}

export interface Estimate {
  promptTokens: number;
  promptNano: Nano;
  /** Price of one output token. */
  outputPrice: Price;
}

export interface Preparing {
  signal(): AbortSignal;
  /** Where the attempt will be sent, with which credential; `byokId` for a BYOK credential. */
  target(): { target: UpstreamTarget; byokId: string | null };
}

export interface AttemptAbout {
  stamp: Stamp;
  owner: AttemptOwner;
  /** Keyed hash of the end user, or of the account. */
  user: string;
  /** The output cap that a nearly exhausted limit leaves. */
  capOutputTokens?: number | undefined;
}

/** Sends one call to the endpoint of the attempt, signed as its provider requires. */
export type Send = (call: AttemptCall, receiver: UpstreamReceiver) => UpstreamCall;
export type AttemptCall = Pick<Delivery, 'format' | 'stream' | 'path' | 'body' | 'method' | 'contentType' | 'url'>;

export interface AttemptOwner {
  /** Visible output is ready in `attempt.take()`. Called after each chunk that has some. */
  attemptAdvanced(attempt: Attempt): void;
  /** The answer is complete: in `attempt.whole`, or streamed, in which case the writer awaits `end`. */
  attemptCompleted(attempt: Attempt): void;
  /** `sent`: the upstream may have worked on it. `attempt.visible`: the client has seen a part of the answer. */
  attemptFailed(attempt: Attempt, failure: UpstreamFailure, sent: boolean): void;
  /** The upstream makes the answer as a job, `attempt.upstreamId`, whose result is polled. Called once. */
  attemptAccepted(attempt: Attempt): void;
  /** Whether another model answers in place of one that refused and showed nothing. */
  fallsBack(attempt: Attempt): boolean;
  /** A guardrail filter blocked the answer; `complete` if all of it had arrived. */
  attemptBlocked(attempt: Attempt, error: GatewayError, complete: boolean): void;
}

/** One attempt at one endpoint. Notifies its owner exactly once how it ended; decides nothing about what follows. */
export interface Attempt {
  start(send: Send): void;
  /** Ends the call at once. The owner receives no further callback. */
  abort(): void;
  pause(): void;
  resume(): void;
  /** Returns the text for the client that has gathered since the last call. */
  take(): string;
  /** How `take`, `writer` and `whole` stand for bytes; known once one of them is. */
  readonly encoding: TextEncoding;
  /** True once the attempt has ended, in whatever way. */
  readonly over: boolean;
  /** HTTP status of the upstream; 0 until the response head arrives. */
  readonly status: number;
  readonly whole: WholeAnswer | undefined;
  /** Of a streamed answer that is bytes; undefined for event streams. */
  readonly mediaType?: string | undefined;
  /** Writes the end of a streamed answer. */
  readonly writer: AnswerEnd | undefined;
  /** True once the client has seen output; from then on no other endpoint may answer. */
  readonly visible: boolean;
  /** An earlier call of this attempt was answered, so the attempt costs something even if the last call failed. */
  readonly paid?: boolean;
  /** The calls that the gateway has to run before the answer can continue (`turns/turn-loop.ts`). */
  readonly calls?: readonly ToolCallPart[] | undefined;
  /** Beta features that its body needs besides those of the client (`anthropic-beta`). */
  readonly betas?: readonly string[] | undefined;
  readonly usage: Usage | undefined;
  readonly finish: Finish | undefined;
  /** The decoder of a streamed conversation. */
  readonly decoder?: TurnDecoder | undefined;
  /** UTF-8 bytes of all output so far, for an estimate when no usage arrives. */
  readonly outputBytes: number;
  /** Output bytes since the upstream last reported usage. */
  readonly uncountedBytes: number;
  readonly upstreamId: string | undefined;
  readonly serviceTier: string | null | undefined;
  /** Absent when the request declares no tools. */
  readonly toolCalls?: ToolCallCounts | undefined;
  /** Filter matches of guardrails in the answer. */
  readonly hits?: readonly Hit[] | undefined;
  /** The content of the answer, if it is logged. */
  readonly transcript?: Transcript | undefined;
}

/** A whole answer as read; `write` renders it for the client once its usage and cost are known. */
export interface WholeAnswer {
  write(stamp: Stamp, closing: Closing): WholeBody;
  /** Default JSON. */
  readonly mediaType?: string;
}
