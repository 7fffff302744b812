/**
 * The contract of the operations that have one public form each: embeddings, rerank, images. That form is the internal
 * one as well, so there is no conversation in the middle: a `SingleForm` faces the client, an `Adapter` for each family
 * of services faces the upstream. Both are pure. `inference/` runs them with the same rules as conversations.
 */
import type { TSchema } from 'typebox';
import type { GatewayError } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import type { Usage } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import type { Asked, Closing, FailureContext, Stamp } from '../conversation/format.ts';
import type { Renewal } from '../conversation/renewal.ts';

export type SingleFormId = 'embedding' | 'rerank' | 'image' | 'completion';

/** The client's side of an operation. `Request` and `Answer` are what adapters work with. */
export interface SingleForm<Request, Answer> {
  readonly id: SingleFormId;
  /** Open schema of the body: names what we act on, lets the rest pass. */
  readonly schema: TSchema;
  /** What the schema cannot say; throws GatewayError 400 with the path. */
  check(document: JsonDocument): void;
  asked(document: JsonDocument): Asked;
  /** @param fetched what stands at the addresses of `remote`; what is missing there is left out */
  decode(document: JsonDocument, fetched?: ReadonlyMap<string, FetchedMedium>): Request;
  /** Bytes that have to fit into a context at once, the longest of several inputs. Default: all of the body. */
  longest?(document: JsonDocument): number;
  /** Pictures of the request that stand elsewhere and are fetched first: by address, the field that holds it. */
  remote?(document: JsonDocument): ReadonlyMap<string, string>;
  /**
   * What a price list of pictures may tell apart in this request: its quality, its size.
   * @param adapter of the service that is asked, which may have clamped them for this `model`
   */
  priceWords?(request: Request, adapter: Adapter<Request, Answer>, model: string): readonly string[];
  /** An upper bound of what one answer can be charged for. Budgets reserve it. */
  most(request: Request, limits: EndpointLimits): Demand;
  /** The likely usage: what is entered when an upstream worked and reported nothing. */
  likely(request: Request): Usage;
  /**
   * The body of the whole answer, JSON.
   * @param closing has the final usage, and its cost
   */
  encodeReply(answer: Answer, request: Request, stamp: Stamp, closing: Closing): WholeBody;
  encodeFailure(error: GatewayError, about: FailureContext): unknown;
  /** An answer that was given before as that of another request. Absent: answers of this form are not given twice. */
  renew?(json: string, renewal: Renewal): string;
  /** How an answer is streamed, framing included. Absent: it never is. */
  readonly events?: {
    /** Everything that closes the stream of a complete answer: the last events and the end marker. */
    end(answer: Answer, request: Request, stamp: Stamp, closing: Closing): string;
    /** The event that ends a stream with an error; nothing follows it. */
    failure(error: GatewayError): string;
  };
}

/** A body in one piece or in several, which are written one after the other without being copied together. */
export type WholeBody = string | Buffer | readonly Buffer[];

export interface EndpointLimits {
  /** Longest input in tokens, null when unknown. */
  contextLength: number | null;
}

/** Units that are paid for. What is absent is none. */
export interface Demand {
  promptTokens: number;
  outputTokens?: number;
  /** How often the price by the request is due, e.g. search units. Default 1. */
  requests?: number;
  /** Images in the request. */
  inputImages?: number;
  /** Images in the answer, for those that are charged by the piece, and their area. */
  outputImages?: number;
  outputMegapixels?: number;
}

/** One HTTP call, below the provider's base URL and with its credential. */
export interface Outgoing {
  /** Default POST. */
  method?: 'GET';
  /** Where the form has it; a provider kind may have it elsewhere. */
  path: string;
  /** '' for a GET. */
  body: Buffer | string;
  /** Default JSON. */
  contentType?: string;
  /** Instead of base URL and path: an address that the service told and that `serviceUrl` has checked. */
  url?: string;
}

/** Something that was fetched through the checked egress. `data` is base64. */
export interface FetchedMedium {
  mediaType: string;
  data: string;
}

/** The answer to one call, with a status below 300. */
export interface Reply {
  status: number;
  /** Lower case; those that `providers/exchange.ts` keeps. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

/**
 * What a reply means: the answer; a failure that came with a good status; or one more call, for answers that take
 * several (a long list that goes out in batches, a result that has to be fetched).
 */
export type Step<Answer> =
  | { answer: Answer; usage?: Usage; upstreamId?: string }
  | { failure: UpstreamFailure }
  | {
      next: Course<Answer>;
      usage?: Usage;
      upstreamId?: string;
      afterMs?: number;
      /** The reply only says that the work is under way: what follows may still cost nothing. */
      accepted?: boolean;
    }
  /**
   * Pictures that the service only names by address: they are fetched, and `withMedia` goes on. The service's work is
   * done: `usage` is what it charges even when a picture cannot be had, and what `withMedia` tells replaces it.
   */
  | {
      fetch: readonly string[];
      usage?: Usage;
      upstreamId?: string;
      withMedia(media: ReadonlyMap<string, FetchedMedium>): Step<Answer>;
    };

/** One call and how its reply is read. Holds whatever earlier calls of the same answer brought. */
export interface Course<Answer> {
  readonly call: Outgoing;
  /** How much of the request this call carries, from 0 to 1; for the estimate when it breaks off. Default 1. */
  readonly share?: number;
  read(reply: Reply): Step<Answer>;
  /** Reads a reply that comes as an event stream. Absent: such a reply is malformed. */
  events?(): EventCourse<Answer>;
}

/** Reads the events of one streamed reply, in order. */
export interface EventCourse<Answer> {
  read(name: string, data: string): EventStep<Answer>;
}

/** What one event means. Nothing may follow a failure or an answer. */
export interface EventStep<Answer> {
  /** Text for a client that asked for a stream, framing included; '' and absent show nothing. */
  text?: string;
  /** The complete answer: the end of the stream. */
  answer?: Answer;
  /** Replaces every earlier count. */
  usage?: Usage;
  upstreamId?: string;
  failure?: UpstreamFailure;
}

/** Where the request goes. */
export interface SingleTarget {
  /** The upstream's own name of the model. */
  model: string;
  /** Keyed hash of the end user, or of the account. */
  user: string;
  /** The client wants a stream. */
  stream: boolean;
  /** What events of the answer carry of ours. */
  stamp: Stamp;
  contextLength: number | null;
  /** As configured, without a trailing slash. */
  baseUrl: string;
  /** The provider's slug, for options that the client addresses to it. */
  providerId: string;
}

/** The upstream's side: how one family of services is asked for one operation. */
export interface Adapter<Request, Answer> {
  /** @throws Uncarried for a request that the service has no place for; the router goes on to the next endpoint */
  start(request: Request, target: SingleTarget): Course<Answer>;
  /** A reply with an error status; `body` is text, perhaps not JSON. A provider whose errors differ has its own reader. */
  decodeFailure(status: number, body: string): UpstreamFailure;
}

/** A usage of nothing but so many tokens of input. */
export function inputUsage(input: number): Usage {
  return { input, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };
}
