/** The contract of tools that the gateway runs itself, between two turns of one answer. */
import type { Conversation, Part, ToolCallPart } from '../../formats/conversation/conversation.ts';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';

/** One kind of such tools; `turn-loop.ts` lists all. `request` is a checked request body. */
export interface GatewayToolKind {
  /** Whether the request asks for them. Called once for every request. */
  wanted(request: Fields): boolean;
  /** UTF-8 bytes that their definitions add to the request, at most. */
  readonly definitionBytes: number;
  /** Loads what they need; undefined if there is nothing to wait for. */
  load(request: Fields): Promise<void> | undefined;
  /** @throws Uncarried when the request cannot have them */
  begin(conversation: Conversation, format: ServedFormat): GatewayTools;
}

export interface GatewayTools {
  /** The conversation of the next turn. */
  readonly conversation: Conversation;
  /** UTF-8 bytes that the definitions and the finished turns have added to the client's request, at most. */
  readonly addedBytes: number;
  /** Whether calls of a tool with this name are for the gateway. */
  claims(name: string): boolean;
  /** Runs one call. Never rejects: an error is a result for the model. */
  run(call: ToolCallPart): ToolRun | Promise<ToolRun>;
  /** Adds a turn of the model, and the results of the calls that were run for it. */
  proceed(parts: readonly Part[], steps: readonly ToolStep[]): void;
}

/** A call that was run, or the call that the client has to run instead. */
export type ToolRun = { step: ToolStep } | { call: ToolCallPart };

export interface ToolStep {
  /** Id of the call. */
  id: string;
  /** What the client sees of it, in its format. */
  visible: readonly Part[];
  /** For the model. */
  result: string;
}
