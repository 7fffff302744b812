/** The contract of a plugin: a change to a request or its answer that the request's `plugins` names. */
import type { TProperties } from 'typebox';
import type { Conversation, Message, Part, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { EarlyRunning } from '../before-turns.ts';
import type { Admission, RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { ConversationRequest } from '../request.ts';
import type { Candidate } from '../routing/index.ts';
import type { ToolSpending, ToolsRunning } from '../turns/gateway-tools.ts';

/** One file each; `registry.ts` lists all. Every step is optional. */
export interface Plugin {
  readonly id: string;
  /** Schemas of its members besides `id` and `enabled`. Members that are not listed are ignored. */
  readonly parameters: TProperties;
  /** For the API description: members that `check` reads itself. */
  readonly described?: TProperties;
  /** Rules that the schema cannot express. @param path of the entry. Throws GatewayError 400 */
  check?(settings: Fields, path: string): void;
  /**
   * Changes the request before guardrail filters read it, so that they read what it adds. Also where nothing is generated
   * (token counts). Returns no promise if there is nothing to wait for.
   */
  beforeFilters?(step: AdmissionStep): undefined | Promise<void>;
  /**
   * Changes the admitted request before it is routed, or refuses it. Returns no promise if there is nothing to wait for.
   * Not called where nothing is generated (token counts).
   */
  beforeRouting?(step: PluginStep): undefined | Promise<void>;
  /** Changes the answer on its way to the client; undefined if this request's answers stay as they are. */
  revise?(step: AnswerStep): AnswerRevision | undefined;
  /** Judges the turns of the answer; one plugin of the registry does. */
  judge?(step: JudgeStep): TurnJudge;
}

/** A plugin that a request asks for. */
export interface RequestedPlugin {
  readonly plugin: Plugin;
  /** Its entry in `plugins`, valid by the plugin's schema. */
  readonly settings: Fields;
  /** Of the entry: `plugins[0]`. */
  readonly path: string;
}

/** The facilities that a step before guardrail filters may use. */
export type AdmissionParts = Pick<
  InferenceParts,
  'accountPolicy' | 'catalog' | 'clock' | 'docx' | 'egress' | 'files' | 'limits' | 'ocr' | 'pdf'
>;

export interface AdmissionStep {
  readonly context: Admission<ConversationRequest>;
  readonly settings: Fields;
  readonly path: string;
  readonly parts: AdmissionParts;
  /** For paid work; undefined where nothing is generated. */
  readonly paying: Paying | undefined;
}

/** The facilities for paid work of a step before guardrail filters. */
export interface Paying {
  readonly spending: ToolSpending;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface PluginStep {
  readonly context: RequestContext<ConversationRequest>;
  readonly settings: Fields;
  readonly path: string;
  readonly parts: InferenceParts;
  /** The facilities for slow or paid work. */
  readonly early: EarlyRunning;
  /** The endpoints that may serve the request, however long its prompt is. @throws GatewayError as routing does */
  candidates(): readonly Candidate[];
}

interface AnswerStep {
  /** The request as decoded; must not be changed. */
  readonly conversation: Conversation;
  readonly context: RequestContext<ConversationRequest>;
  readonly settings: Fields;
}

export interface JudgeStep {
  readonly context: RequestContext<ConversationRequest>;
  readonly settings: Fields;
  readonly parts: InferenceParts;
}

/** The facilities that judging may use. */
export type JudgeRunning = Pick<ToolsRunning, 'ask' | 'signal'>;

/** Judges each turn of an answer once it is complete, before its tools run. */
export interface TurnJudge {
  /** The client sees nothing of a turn before it is judged. Otherwise turns are only recorded, and `judge` never rejects. */
  readonly withholds: boolean;
  /**
   * Undefined if the answer continues. Otherwise the turn is discarded, and the model writes it again after these messages.
   * Rejects with GatewayError for an answer that may not be shown.
   */
  judge(parts: readonly Part[], running: JudgeRunning): Promise<Message[] | undefined>;
}

/** An entry of `pipeline` in the routing metadata. */
export interface PipelineStage {
  readonly type: 'plugin' | 'server_tools' | 'response_healing' | 'context_compression';
  readonly name: string;
  readonly summary: string;
  readonly data?: Readonly<Record<string, unknown>>;
  /** Absent: the step is free. */
  readonly cost_usd?: number;
}

/** Changes one answer. It may hold events back, but releases all of them by the `finish` of their choice. */
export interface AnswerRevision {
  /** The events of a stream that may be shown after these. */
  take(events: readonly TurnEvent[]): readonly TurnEvent[];
  /** The same for an answer that is complete. */
  turn(turn: Turn): Turn;
}
