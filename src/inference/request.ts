/** Accepted requests: what `accept` makes and every later stage reads. Immutable, and independent of HTTP. */
import type { Caller } from '../access/index.ts';
import type { PromptCachingMode } from '../base/config.ts';
import type { JsonDocument } from '../base/json.ts';
import type { RequestFacts, ServedFormat } from '../formats/conversation/format.ts';
import type { DirectFormat } from '../formats/direct/index.ts';
import type { DataRegion } from '../spend/index.ts';
import type { RequestTrace } from '../tracing/index.ts';
import type { CacheOptions } from './cache/options.ts';
import type { RequestedPlugin } from './plugins/plugin.ts';

/** A format that clients can use: of a conversation, or of an operation with a single public format. */
export type AnyFormat = ServedFormat | DirectFormat<unknown, unknown>;

export interface AcceptedRequest<Format extends AnyFormat = AnyFormat> {
  /** `gen-...`, assigned at acceptance so that errors can name it. */
  readonly id: string;
  readonly format: Format;
  /** Valid by the format's schema and rules. */
  readonly document: JsonDocument;
  readonly facts: RequestFacts;
  readonly caller: Caller;
  /** Wall time in ms of the moment of acceptance. */
  readonly startedAt: number;
  readonly about: RequestAbout;
  /** In the order in which they run; undefined (the usual case) if there are none. */
  readonly plugins: readonly RequestedPlugin[] | undefined;
  /** A tool of another request makes it (`nested.ts`): 1, or 2 if a tool of such a request does. */
  readonly nested?: number;
  /** The request was counted against request limits when it was stored (`ask-ahead.ts`). */
  readonly countedAhead?: true;
  /** UUID of the preset that the request has named and that is part of its document. */
  readonly presetId?: string;
}

export type ConversationRequest = AcceptedRequest<ServedFormat>;

/** A request of an operation with a single public format. */
export type DirectRequest = AcceptedRequest<DirectFormat<unknown, unknown>>;

/** What the sender states in addition to the body. Of this, a provider receives only the headers that it `forwards`. */
export interface RequestAbout {
  readonly requestId: string | null;
  readonly region: DataRegion;
  readonly userAgent: string | null;
  readonly origin: string;
  readonly title: string | null;
  readonly sessionId: string | null;
  /** `X-Svc-Metadata: enabled`. */
  readonly metadata: boolean;
  /** `X-Svc-Cache: true`; absent: the response cache is neither read nor filled. */
  readonly cache?: CacheOptions | undefined;
  /** `X-Svc-Prompt-Caching`; absent: the workspace or the account decides. */
  readonly promptCaching?: PromptCachingMode | undefined;
  /** Client headers, lower case; a provider's `forwards` picks from them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Absent: the gateway does not trace. */
  readonly trace?: RequestTrace | undefined;
}

export function isConversation(request: AcceptedRequest): request is ConversationRequest {
  return isConversationFormat(request.format);
}

/** Reads what a body asks for once more, after a stage has changed it. */
export function factsOf(format: AnyFormat, document: JsonDocument): RequestFacts {
  return isConversationFormat(format) ? format.facts(document.value) : format.facts(document);
}

export function isConversationFormat(format: AnyFormat): format is ServedFormat {
  return 'relay' in format;
}
