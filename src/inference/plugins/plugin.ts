/** The contract of a plugin: what the gateway does to a request or its answer when `plugins` names it. */
import type { TProperties } from 'typebox';
import type { Conversation, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { EarlyRunning } from '../before-routing.ts';
import type { Admission, RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { ConversationRequest } from '../request.ts';
import type { Candidate } from '../routing/index.ts';

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
}

/** A plugin that a request asks for. */
export interface RequestedPlugin {
  readonly plugin: Plugin;
  /** Its entry in `plugins`, valid by the plugin's schema. */
  readonly settings: Fields;
  /** Of the entry: `plugins[0]`. */
  readonly path: string;
}

/** What a step before guardrail filters may use. */
export type AdmissionParts = Pick<InferenceParts, 'catalog' | 'clock' | 'egress' | 'files' | 'limits' | 'pdf'>;

interface AdmissionStep {
  readonly context: Admission<ConversationRequest>;
  readonly settings: Fields;
  readonly parts: AdmissionParts;
}

export interface PluginStep {
  readonly context: RequestContext<ConversationRequest>;
  readonly settings: Fields;
  readonly path: string;
  readonly parts: InferenceParts;
  /** For what takes long or costs something. */
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

/** An entry of `pipeline` in the routing metadata. */
export interface PipelineStage {
  readonly type: 'plugin' | 'response_healing' | 'context_compression';
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
