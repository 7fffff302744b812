/**
 * The contract of operations with a single public format each: embeddings, rerank, images, speech and others. That format is also the
 * internal one, so there is no canonical conversation: a `DirectFormat` serves the client, and an `Adapter` per family of
 * services calls the upstream. Both are pure. `inference/` runs them under the same rules as conversations.
 */
import type { TSchema } from 'typebox';
import type { GatewayError } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import type { Usage } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import type { Closing, FailureContext, RequestFacts, Stamp } from '../conversation/format.ts';
import type { LoggedContent } from '../conversation/logged-content.ts';
import type { Renewal } from '../conversation/renewal.ts';
import type { VisitTexts } from '../conversation/texts.ts';

export type DirectFormatId =
  | 'embedding'
  | 'rerank'
  | 'image'
  | 'completion'
  | 'speech'
  | 'transcription'
  | 'moderation'
  | 'video';

/** The client side of an operation. Adapters work with `Request` and `Answer`. */
export interface DirectFormat<Request, Answer> {
  readonly id: DirectFormatId;
  /** Open body schema: names the members that the gateway uses and lets all others pass. */
  readonly schema: TSchema;
  /** Rules that the schema cannot express. Throws GatewayError 400 with the field path. */
  check(document: JsonDocument): void;
  facts(document: JsonDocument): RequestFacts;
  /** Visits the texts of a request, for guardrail filters. */
  readonly texts: VisitTexts;
  /** The content of a request, for the content log. */
  loggedContent(document: JsonDocument): LoggedContent;
  /** @param fetched media of the `remote` URLs; references missing from it are left out */
  decode(document: JsonDocument, fetched?: ReadonlyMap<string, FetchedMedium>): Request;
  /** Bytes that must fit into one context: the longest of several inputs. Default: the whole body. */
  longest?(document: JsonDocument): number;
  /** Images given by URL, to be fetched first: URL to field path. */
  remote?(document: JsonDocument): ReadonlyMap<string, string>;
  /**
   * Keys of image price lists for this request, such as quality and size.
   * @param adapter adapter of the chosen service, which may clamp them for this `model`
   */
  priceWords?(request: Request, adapter: Adapter<Request, Answer>, model: string): readonly string[];
  /** Upper bound of the charge for one reply. Budgets reserve it. */
  most(request: Request, limits: EndpointLimits): Demand;
  /** Estimated usage, recorded if the upstream did the work but reported no usage. */
  likely(request: Request): Usage;
  /**
   * The complete reply body, as JSON unless `mediaType` says otherwise.
   * @param closing final usage and its cost
   */
  encodeReply(answer: Answer, request: Request, stamp: Stamp, closing: Closing): WholeBody;
  encodeFailure(error: GatewayError, about: FailureContext): unknown;
  /** Media type of the complete reply; default JSON. */
  mediaType?(answer: Answer, request: Request): string;
  /** The text of an answer, for the content log. Absent: answers have none. */
  textOf?(answer: Answer): string;
  /**
   * The answer with its texts replaced by guardrail filters: `clean` counts what it finds, `recheck` is for parts of a
   * text that was cleaned. Absent: answers have no texts.
   */
  screened?(answer: Answer, clean: (text: string) => string, recheck: (text: string) => string): Answer;
  /** The reply is bytes, such as audio. Streamed bytes are passed on as they arrive. */
  readonly streamsBytes?: true;
  /** A cached reply as the reply to another request. Absent: replies of this operation are not cached. */
  renew?(json: string, renewal: Renewal): string;
  /** Encodes a streamed reply, including framing. Absent: replies are never streamed. */
  readonly events?: {
    /** Writes a complete reply as events, if the client asked for a stream. */
    readonly whole?: true;
    /** The last events of a complete reply and the end marker. */
    end(answer: Answer, request: Request, stamp: Stamp, closing: Closing): string;
    /** The event that ends a stream with an error; nothing follows it. */
    failure(error: GatewayError): string;
  };
}

/** A body in one piece or in several. Several are written in turn, which avoids copying them together. */
export type WholeBody = string | Buffer | readonly Buffer[];

interface EndpointLimits {
  /** Longest input in tokens; null if unknown. */
  contextLength: number | null;
}

/** Billable units. Absent means none. */
interface Demand {
  promptTokens: number;
  outputTokens?: number;
  /** How often the per-request price is due, e.g. search units. Default 1. */
  requests?: number;
  /** Images in the request. */
  inputImages?: number;
  /** Images in the reply and their area, for prices per image. */
  outputImages?: number;
  outputMegapixels?: number;
  /** Characters to speak. */
  inputCharacters?: number;
  /** Seconds of audio in the request, and of audio or video in the reply. */
  inputSeconds?: number;
  outputSeconds?: number;
}

/** One HTTP call, relative to the provider's base URL and with its credential. */
export interface Outgoing {
  /** Default POST. */
  method?: 'GET';
  /** The format's path; a provider kind may override it. */
  path: string;
  /** Empty for a GET. */
  body: Buffer | string;
  /** Default JSON. */
  contentType?: string;
  /** Replaces base URL and path: a URL from the service, checked by `serviceUrl`. */
  url?: string;
}

/** Media fetched through the checked egress. `data` is base64. */
export interface FetchedMedium {
  mediaType: string;
  data: string;
}

/** The response to one call, with a status below 300. */
export interface Reply {
  status: number;
  /** Lower case; only those that `providers/send/answer-headers.ts` keeps. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

/**
 * The meaning of a reply: the answer, a failure despite the good status, or one more call (the next batch of a long
 * list, or a result to poll for).
 */
export type Step<Answer> =
  | {
      answer: Answer;
      usage?: Usage;
      /** Output tokens by the answer's text, for an estimate if the upstream reported no usage. */
      shownTokens?: number;
      upstreamId?: string;
    }
  | { failure: UpstreamFailure }
  | {
      next: CallPlan<Answer>;
      usage?: Usage;
      upstreamId?: string;
      afterMs?: number;
      /** The reply only confirms that work has begun, so a later failure may still cost nothing. */
      accepted?: boolean;
    }
  /**
   * Images given only by URL: the caller fetches them and continues with `withMedia`. The service's work is done, so
   * `usage` is charged even if a fetch fails; the usage from `withMedia` replaces it.
   */
  | {
      fetch: readonly string[];
      usage?: Usage;
      upstreamId?: string;
      withMedia(media: ReadonlyMap<string, FetchedMedium>): Step<Answer>;
    };

/** One call and how to read its reply. Holds the results of earlier calls of the same answer. */
export interface CallPlan<Answer> {
  readonly call: Outgoing;
  /** Share of the request that this call carries, 0 to 1; used for the estimate if the call breaks off. Default 1. */
  readonly share?: number;
  /** How many times in a row a failed call is repeated, and after what delay. Default: never. */
  readonly again?: { times: number; afterMs: number };
  read(reply: Reply): Step<Answer>;
  /** How a reply that is a medium is passed on. Events may carry bytes. */
  readonly bytes?: ByteReply;
  /** Reads an event-stream reply. Absent: such a reply is malformed. */
  events?(): ReplyEvents<Answer>;
}

/** A reply whose bytes are passed on. */
export interface ByteReply {
  /** For the client, if the service does not name a type of audio or video. */
  mediaType: string;
  /** The part of the usage that the size of a complete reply shows; the rest is estimated. */
  known(bytes: number): Partial<Usage>;
}

/** Reads the events of one streamed reply, in order. */
export interface ReplyEvents<Answer> {
  read(name: string, data: string): EventStep<Answer>;
}

/** The meaning of one event. Nothing may follow a failure or an answer. */
export interface EventStep<Answer> {
  /** Text for a streaming client, including framing; empty or absent sends nothing. */
  text?: string;
  /** Bytes for the client, if the plan passes bytes on. */
  bytes?: Buffer;
  /** The stream of bytes is complete. */
  ended?: true;
  /** The complete answer, which ends the stream. */
  answer?: Answer;
  /** Replaces every earlier count. */
  usage?: Usage;
  /** Output tokens by the text up to this event, for an estimate if the upstream reports no usage. */
  shownTokens?: number;
  upstreamId?: string;
  failure?: UpstreamFailure;
}

/** The chosen endpoint. */
export interface DirectTarget {
  /** The upstream's own name of the model. */
  model: string;
  /** Keyed hash of the end user, or of the account. */
  user: string;
  /** Whether the client requested a stream. */
  stream: boolean;
  /** Our own members for the events of the reply. */
  stamp: Stamp;
  contextLength: number | null;
  /** As configured, without a trailing slash. */
  baseUrl: string;
  /** Provider slug, for options that the client addresses to it. */
  providerId: string;
}

/** The upstream side: how a family of services performs one operation. */
export interface Adapter<Request, Answer> {
  /** @throws Uncarried if the service cannot express the request; the router then tries the next endpoint */
  start(request: Request, target: DirectTarget): CallPlan<Answer>;
  /** Continues with a job that the service has accepted, in this process or another. Absent: the service has no jobs. */
  resume?(request: Request, job: string): CallPlan<Answer>;
  /** Decodes a reply with an error status; `body` may not be JSON. A provider whose errors differ overrides it. */
  decodeFailure(status: number, body: string): UpstreamFailure;
}

/** An average over texts and tokenizers. */
const BYTES_PER_TOKEN = 4;

/** The tokens of a text of so many bytes, estimated. */
export function estimatedTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** A usage of input tokens only. */
export function inputUsage(input: number): Usage {
  return { input, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };
}
