/** Inference requests as the pipeline sees them: no HTTP below this line (batches make them too). */
import type { Caller } from '../access/index.ts';
import type { PromptCachingMode } from '../base/config.ts';
import type { JsonDocument } from '../base/json.ts';
import type { Asked, ServedFormat } from '../formats/conversation/format.ts';
import type { SingleForm } from '../formats/single/index.ts';
import type { Hit } from '../guardrails/index.ts';
import type { Standing } from '../rate-limits/index.ts';
import type { DataRegion } from '../spend/index.ts';
import type { CacheWish } from './cached/wish.ts';
import type { DebugTrail } from './debug.ts';
import type { AnswerListener } from './listener.ts';
import type { Sink } from './sink.ts';
import type { ContentBounds } from './transcript.ts';

/** A conversation. */
export interface InferenceRequest extends AcceptedRequest {
  format: ServedFormat;
}

/** Of an operation with one public form. */
export interface SingleRequest<Request, Answer> extends AcceptedRequest {
  form: SingleForm<Request, Answer>;
}

/** What the pipeline knows of every request. */
export interface AcceptedRequest {
  /** `gen-...`, given before anything can go wrong. */
  id: string;
  /** Validated against the form's schema and rules. */
  document: JsonDocument;
  asked: Asked;
  caller: Caller;
  /** Wall time in ms at which the request's head arrived: the moment of acceptance. */
  startedAt: number;
  sink: Sink;
  /** Of a stream whose client wants to see how it comes about. */
  debug?: DebugTrail | undefined;
  /** Its contents are kept, as far as they are within this. */
  logged?: ContentBounds | undefined;
  /** Who hears what is answered; absent for most requests. */
  listeners?: readonly AnswerListener[];
  /** Headers of the answer beside those that all have; set by `addHeaders` only. */
  answerHeaders?: Readonly<Record<string, string>>;
  /** The upstream's own id of the answer that its thread continues. */
  previousId?: string;
  /** That of the answer whose prompt the upstream compares with this one. */
  comparedId?: string | undefined;
  /** What it has taken of rate limits; absent: nothing limits its caller. */
  standing?: Standing;
  /** What filters of guardrails found; absent: nothing. */
  hits?: readonly Hit[] | undefined;
  about: RequestAbout;
}

/** What headers say about a request. Nothing of it goes upstream but `forwarded`. */
export interface RequestAbout {
  requestId: string | null;
  region: DataRegion;
  userAgent: string | null;
  origin: string;
  title: string | null;
  sessionId: string | null;
  /** `X-Svc-Metadata: enabled`. */
  metadata: boolean;
  /** `X-Svc-Cache: true`; absent: the response cache is neither asked nor filled. */
  cache?: CacheWish | undefined;
  /** `X-Svc-Prompt-Caching`; absent: the workspace or the account decides. */
  promptCaching?: PromptCachingMode | undefined;
  /** Client headers, lower case; a provider's `forwards` picks from them. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
}
