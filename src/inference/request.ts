/** Inference requests as the pipeline sees them, independent of HTTP. */
import type { Caller } from '../access/index.ts';
import type { PromptCachingMode } from '../base/config.ts';
import type { JsonDocument } from '../base/json.ts';
import type { RequestFacts, ServedFormat } from '../formats/conversation/format.ts';
import type { SingleForm } from '../formats/single/index.ts';
import type { Hit } from '../guardrails/index.ts';
import type { RateLimitHold } from '../rate-limits/index.ts';
import type { DataRegion } from '../spend/index.ts';
import type { DebugTrail } from './answer/debug.ts';
import type { AnswerListener } from './answer/listener.ts';
import type { Sink } from './answer/sink.ts';
import type { ContentBounds } from './answer/transcript.ts';
import type { CacheWish } from './cache/wish.ts';

/** A conversation. */
export interface InferenceRequest extends AcceptedRequest {
  format: ServedFormat;
}

/** A request of an operation with a single public format. */
export interface SingleRequest<Request, Answer> extends AcceptedRequest {
  form: SingleForm<Request, Answer>;
}

/** What every request of the pipeline carries. */
export interface AcceptedRequest {
  /** `gen-...`, assigned at acceptance so that errors can name it. */
  id: string;
  /** Validated against the format's schema and rules. */
  document: JsonDocument;
  facts: RequestFacts;
  caller: Caller;
  /** Wall time in ms at which the request's head arrived: the moment of acceptance. */
  startedAt: number;
  sink: Sink;
  /** The debug trail of a stream whose client asked for it. */
  debug?: DebugTrail | undefined;
  /** Set if the content is logged; holds the size limits. */
  logged?: ContentBounds | undefined;
  /** Listeners of the answer; absent for most requests. */
  listeners?: readonly AnswerListener[];
  /** Response headers in addition to the common ones; set by `addHeaders` only. */
  answerHeaders?: Readonly<Record<string, string>>;
  /** The upstream's id of the answer that this thread continues. */
  previousId?: string;
  /** The upstream's id of the answer whose prompt is compared with this one. */
  comparedId?: string | undefined;
  /** The request's rate limit hold; absent if no limit applies to its caller. */
  rateLimitHold?: RateLimitHold;
  /** Filter matches of guardrails; absent if there are none. */
  hits?: readonly Hit[] | undefined;
  about: RequestAbout;
}

/** Facts from the request's headers. Of these, a provider receives only the headers that it `forwards`. */
export interface RequestAbout {
  requestId: string | null;
  region: DataRegion;
  userAgent: string | null;
  origin: string;
  title: string | null;
  sessionId: string | null;
  /** `X-Svc-Metadata: enabled`. */
  metadata: boolean;
  /** `X-Svc-Cache: true`; absent: the response cache is neither read nor filled. */
  cache?: CacheWish | undefined;
  /** `X-Svc-Prompt-Caching`; absent: the workspace or the account decides. */
  promptCaching?: PromptCachingMode | undefined;
  /** Client headers, lower case; a provider's `forwards` picks from them. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
}
