/** The contract of tools that the gateway runs itself, between two turns of one answer. */
import type { JsonDocument } from '../../base/json.ts';
import type { Nano } from '../../base/money.ts';
import type {
  Citation,
  Conversation,
  OpaquePart,
  Part,
  ToolCallPart,
} from '../../formats/conversation/conversation.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { ServedFormat, UpstreamWork } from '../../formats/conversation/format.ts';
import type { ToolReport } from '../../formats/conversation/served-call.ts';
import type { Hit } from '../../guardrails/index.ts';
import type { StartedPart } from '../answer/joined-answer.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';

/** One kind of such tools; `turn-loop.ts` lists all. */
export interface GatewayToolKind {
  /**
   * The tools that the request asks for; undefined if none. Called once for every request, so it has to be cheap.
   * @param request accepted, so its tools are valid
   * @throws GatewayError 400 for what the installation does not have
   */
  wanted(request: ToolRequest, parts: InferenceParts): WantedTools | undefined;
}

/** The facts of a request that a kind of tools reads before the request is served. */
export interface ToolRequest {
  readonly format: ServedFormat;
  readonly document: JsonDocument;
}

export interface WantedTools {
  /** UTF-8 bytes that their definitions add to the request, at most. */
  readonly definitionBytes: number;
  /** The most work that an upstream with the same tools may do instead of the gateway. Absent: none. */
  readonly nativeWork?: UpstreamWork | undefined;
  /** Running them changes data that outlives the answer. */
  readonly lasting: boolean;
  /** Loads what they need; undefined if there is nothing to wait for. */
  load?(asking: ToolsAsking): Promise<void> | undefined;
  /**
   * Lists the tools of other services. Called once, before the first turn. Absent if no other service is used. Rejects with
   * GatewayError.
   */
  readonly discover?: ((running: ToolsRunning) => Promise<void>) | undefined;
  /**
   * Before the first turn, runs the calls that the client has approved, and continues those that waited for it; undefined if there
   * are none. Resolves with the parts of the answer if that is all of it: calls that wait for the client again. Rejects with
   * GatewayError.
   */
  readonly continueCalls?: ((running: ToolsRunning) => Promise<readonly Part[] | undefined>) | undefined;
  /** @throws Uncarried when the request cannot have them */
  begin(conversation: Conversation, format: ServedFormat): GatewayTools;
}

export interface GatewayTools {
  /** The conversation of the first turn. */
  readonly conversation: Conversation;
  /** Parts that the client sees before the first turn. */
  readonly prelude?: readonly Part[];
  /** When the loop ends; absent: at the limit of turns that every loop has. */
  readonly ending?: LoopEnding | undefined;
  /** The upstream may run some of the tools itself, and is asked to continue a turn that it has paused. */
  readonly resumes?: boolean;
  /** Whether calls of a tool with this name are for the gateway. */
  claims(name: string): boolean;
  /** The item type of the responses format for calls that the client runs. Absent: those of functions. */
  ownCalls?(name: string): ToolCallPart['native'];
  /** What the client sees of a call before it runs. Absent: nothing. */
  start?(call: ToolCallPart, place: ToolPlace): StartedPart | undefined;
  /** Citations for a complete text of the model. Absent: none. */
  cites?(text: string): Citation[];
  /** Runs one call. Never rejects, except with what ends the request: an error of the tool is a result for the model. */
  run(call: ToolCallPart, place: ToolPlace, running: ToolsRunning): ToolRun | Promise<ToolRun>;
}

/** Where in the answer a call is. */
export interface ToolPlace {
  /** Number of the model's turn, from 1. */
  readonly turn: number;
  /** The model called functions of the client in the same turn. */
  readonly mixed: boolean;
}

/** Whose tools they are. */
export interface ToolsAsking {
  readonly request: AcceptedRequest;
  readonly parts: InferenceParts;
}

/** The facilities of the pipeline for running tools. */
export interface ToolsRunning extends ToolsAsking {
  /** Aborted when the client disconnects or the gateway shuts down. */
  readonly signal: AbortSignal;
  readonly spending: ToolSpending;
  /** The conversation of this turn: what the model has read, and then what it wrote with the calls. */
  conversation(): Conversation;
  /**
   * Sends a request of its own for the same caller and under the same rules (`nested.ts`). Resolves with the reply. Its
   * cost is shown in the usage of this answer. Rejects with GatewayError.
   * @param body not streamed; of a chat request unless `operation` says otherwise
   */
  ask(body: Fields, signal: AbortSignal, operation?: 'chat' | 'responses' | 'image' | 'embedding'): Promise<Fields>;
  /** Calls back once when the request is over, however it ends: at once if it is. For what tools keep between calls. */
  onEnd(run: () => void): void;
  /** Shows the client a step of the call, if its format has events for that. Absent: nothing can be shown. */
  readonly report?: ((report: ToolReport) => void) | undefined;
  /** Filter matches of guardrails in what tools return. */
  found(hits: readonly Hit[]): void;
}

/** Cost and counts of tools. Each call that costs something is reserved before it is made. */
export interface ToolSpending {
  /** Rejects with GatewayError 402 when a budget does not cover the amount. */
  hold(nano: Nano): Promise<void>;
  /**
   * Settles the held call, made or not. Not called if the outcome of the call is unknown: the call is then charged, and
   * marked as estimated.
   * @param spent at most what was held
   */
  settle(held: Nano, spent: Nano): void;
  /** Counts a call for the usage of the answer. @param executed it was run, and not refused by a limit */
  count(call: { executed: boolean; searches?: number; fetches?: number }): void;
}

/**
 * A call that was run, the call that the client has to run instead, what asks the client to allow the call, or a call that waits
 * for calls of the client.
 */
export type ToolRun = { step: ToolStepRun } | { call: ToolCallPart } | { asks: OpaquePart } | { waits: WaitingCall };

interface WaitingCall {
  /** Replaces the value of the part that `start` showed. */
  shown: OpaquePart;
  calls: readonly ToolCallPart[];
}

export interface ToolStepRun {
  /** Id of the call. */
  id: string;
  /** What the client sees of it, in its format. */
  visible: readonly OpaquePart[];
  /** `visible` is the value of the part that `start` showed. */
  replaces?: boolean;
  /** For the model. */
  result: string;
  failed?: boolean;
  /** Further parts of the answer, such as images. */
  added?: readonly Part[];
}

/** Decides after each turn in which the gateway ran tools. */
export interface LoopEnding {
  /** Whether the next turn is the last, with calls of tools disabled. */
  reached(turn: FinishedTurn): boolean;
  /** Whether a tool choice that forces a call holds for the first turn only. */
  readonly forcesOnce: boolean;
}

export interface FinishedTurn {
  /** Turns so far in which the gateway ran tools. */
  readonly steps: number;
  /** Functions that the gateway ran for this turn. */
  readonly called: readonly string[];
  /** The turn's finish reason in the upstream's words, and unified. */
  readonly finish: readonly (string | null)[];
  /** Of all turns so far, input and output. */
  readonly tokens: number;
  /** Of all turns and tools so far. */
  readonly costNano: Nano;
}
