/**
 * The contract of a format. A format is one folder with up to two halves, both pure: `ServedFormat` faces the client,
 * `SpokenFormat` faces an upstream. Where both sides are of one form, `Relay` edits the original bytes instead.
 */
import type { TSchema } from 'typebox';
import type { GatewayError } from '../../base/errors.ts';
import type { Edit, JsonDocument } from '../../base/json.ts';
import type { PromptCaching } from './cache-breakpoints.ts';
import type { Conversation, FormatId, ReasoningOrigin, Turn, TurnEvent, Usage } from './conversation.ts';
import type { UpstreamFailure } from './failure.ts';
import type { Losses } from './losses.ts';
import type { ProviderPreferences } from './preferences.ts';
import type { Renewal } from './renewal.ts';

export type { ProviderPreferences } from './preferences.ts';

/** What the gateway itself wants to know of a request, whatever its form. Texts are as the client sent them. */
export interface Asked {
  model: string | undefined;
  /** Further models, in order, without `model`. */
  fallbackModels: string[];
  /** True for the messages form's `fallbacks`: a refusal moves on to the next model too. */
  fallbackOnRefusal: boolean;
  provider: ProviderPreferences;
  stream: boolean;
  /** Chat `stream_options.include_usage`; undefined when absent. */
  includeUsage?: boolean;
  /** Chat `debug.echo_upstream_body`; means something for streams only. */
  echoUpstreamBody?: boolean;
  /** The output cap that the client gave. */
  maxOutputTokens?: number;
  /** How many answers are asked for; 1 when absent. */
  choices: number;
  /** End-user id, as given. */
  user?: string;
  sessionId?: string;
  metadata?: Record<string, string>;
  /** Media in the request, inline or by address: what they count in tokens their bytes do not say. */
  media: { images: number; documents: number };
  /** Absent: nothing but text. */
  needs?: Needs;
  /** As given; the aliases are told apart where the request is routed. */
  serviceTier?: string;
  /** `prompt_cache_key`: requests that have it in common share a prefix. */
  cacheKey?: string;
  /** The request marks what the provider should cache. */
  marksCache?: boolean;
  /** Calls that the upstream may make by itself within the answer. Absent: none. */
  inner?: InnerCalls;
  /** The upstream shall hold the conversation. `previousId`: our id of the answer that the request continues. */
  thread?: { previousId?: string };
  /** Our id of an earlier answer whose prompt the upstream compares with this one (`diagnostics`). */
  comparedId?: string;
}

/** Calls of an upstream within one answer, each with tokens of its own that the answer's output cap does not cover. */
export interface InnerCalls {
  /** The upstream summarizes a conversation of so many tokens before it answers; absent: never. */
  compactsFrom?: number;
  /** Other models that the answering one may ask. */
  advisors: readonly { model: string; uses: number; maxOutputTokens?: number }[];
  /** Tools of the upstream bring text into the conversation while it answers. */
  serverTools: boolean;
}

/** What an endpoint must be able to do for a request, in the words of the catalog. */
export interface Needs {
  /** Kinds of input besides text: `image`, `file`, `audio`, `video`. */
  inputs: readonly string[];
  /** Kinds of output besides text: `image`, `audio`. */
  outputs: readonly string[];
  /** Those of `supported_parameters` that change what the answer is, so that no endpoint may ignore them. */
  features: readonly string[];
  /** Names of the declared tools; absent: there are none. */
  tools?: readonly string[];
  /** Names of `supported_parameters` for everything that was sent, each with its aliases; for `require_parameters`. */
  parameters: readonly (readonly string[])[];
}

/** What an answer carries of ours; the same for relayed and translated ones. */
export interface Stamp {
  /** Generation id, `gen-...`. */
  id: string;
  /** The catalog id of the model that serves, e.g. `acme/large`. */
  model: string;
  /** The display name of the provider that serves. */
  provider: string;
  /** Unix seconds, for upstreams that give no time. */
  created: number;
  /** Of the prompt, estimated: for forms that tell a count before the upstream has told its own. */
  promptTokens?: number;
  /** Chat streams: a last chunk with empty choices, on the finish chunk, or not at all. */
  usage: 'chunk' | 'finish' | 'none';
  /** Members of the request that the form's answers repeat (`ServedFormat.echo`); absent for forms that repeat none. */
  echo?(): Record<string, unknown>;
}

/** The cost of an answer as `usage` shows it. USD. */
export interface Cost {
  /** null: the model has no price. */
  cost: number | null;
  is_byok: boolean;
  cost_details: {
    upstream_inference_cost: number | null;
    upstream_inference_prompt_cost: number;
    upstream_inference_completions_cost: number;
  };
}

/**
 * The members of `usage` that tell the cost. Without a price there are no amounts: clients such as
 * `@openrouter/ai-sdk-provider` 3 refuse a cost that is not a number, and 0 would be wrong.
 */
export function costMembers(cost: Cost | undefined): Partial<Cost> {
  if (cost === undefined) return {};
  return cost.cost === null ? { is_byok: cost.is_byok } : cost;
}

/** The figures that close an answer. `metadata` is `svc_metadata`, when opted in, under the key `metadataKey`. */
export interface Closing {
  /** Unix seconds at which the answer was complete. */
  completed?: number;
  usage?: Usage;
  cost?: Cost;
  metadata?: { key: string; value: Record<string, unknown> };
}

/**
 * Turns a streamed answer into the text of the client's event stream, framing included. Calls: `event` any number of
 * times, then exactly one of `end` (the upstream completed) and `failure` (it did not; nothing may follow).
 */
export interface StreamEncoder {
  event(event: TurnEvent): string;
  /** Everything held back for the closing figures, then the form's end marker. */
  end(closing: Closing): string;
  /** One typed error event; no end marker behind it. `usage` so far, where the form has a place. */
  failure(error: GatewayError, closing: Closing): string;
}

/** The same for an upstream of the client's own form: unknown fields and number literals survive. */
export interface RelayStream {
  /**
   * @param name the SSE event name, '' when absent; @param data the event's text; @param value the parsed data
   * @param events what the form's decoder made of it
   * @returns text to forward, '' when the event is dropped or held back
   */
  event(name: string, data: string, value: unknown, events: readonly TurnEvent[]): string;
  end(closing: Closing): string;
  failure(error: GatewayError, closing: Closing): string;
}

/** How the request goes to one endpoint. */
export interface EncodeTarget {
  /** The upstream's own name of the model. */
  model: string;
  stream: boolean;
  /** The endpoint's output limit, null when unknown. Forms that require a cap take it from here (bug 46). */
  maxOutputTokens: number | null;
  /** A cap that the gateway lays on the output (a budget's remainder); wins over the client's larger one. */
  capOutputTokens?: number;
  /** The tier to ask for in place of the client's wish; null: none. Absent: as the client has it. */
  serviceTier?: string | null;
  /**
   * Where the gateway places cache breakpoints for a client that sets none. Absent: nowhere. Formats whose providers cache
   * without breakpoints ignore it.
   */
  promptCaching?: PromptCaching | undefined;
  /** Whose signed or encrypted reasoning this endpoint can read. */
  origin: ReasoningOrigin;
  /** Keyed hash of the end user, or of the account. */
  user: string;
  /** Beta features that the client opted into by header (`anthropic-beta`), for services that have them in the body. */
  betas?: readonly string[];
  /** The upstream's own id of the answer that a thread continues. */
  previousId?: string | undefined;
  /** That of the answer whose prompt is compared. */
  comparedId?: string | undefined;
  /** For deferred tools that are searched for by expressions; linear in the text, undefined for what cannot be read. */
  compileRegex?: import('../deferred/index.ts').CompileRegex;
  /** Ways in which the upstream differs from its form's standard; each format reads its own member. */
  dialect: Dialect;
}

/** Quirks of providers as data; a member is meaningful to the format it is named after. */
export interface Dialect {
  chat?: import('../chat/dialect.ts').ChatDialect;
  messages?: import('../messages/dialect.ts').MessagesDialect;
  responses?: import('../responses/dialect.ts').ResponsesDialect;
  gemini?: import('../gemini/dialect.ts').GeminiDialect;
  converse?: import('../converse/dialect.ts').ConverseDialect;
}

export interface Relay {
  /** Edits of top-level members: model, our own fields removed, usage reporting forced, `user` hashed, quirks. */
  edits(document: JsonDocument, target: EncodeTarget, losses?: Losses): Edit[];
  /**
   * The upstream's whole answer with our fields in it. `text` is the answer as it came, `value` its parsed form
   * (`parseJson`), `turn` what `decodeReply` made of it.
   */
  reply(text: string, value: unknown, turn: Turn, stamp: Stamp, closing: Closing, dialect: Dialect): string;
  stream(stamp: Stamp, dialect: Dialect): RelayStream;
  /** A member and its value by which the form's clients ask for a faster tier, beside `service_tier`. */
  readonly tierWord?: { readonly key: string; readonly value: string };
}

export interface ServedFormat {
  readonly id: FormatId;
  /** Open schema of the request body: names what we act on, lets the rest pass. */
  readonly schema: TSchema;
  /** Rules that a schema cannot say; throws GatewayError 400 with the path, also for features that are not built. */
  check(body: unknown): void;
  asked(body: unknown): Asked;
  decode(body: unknown): Conversation;
  /** The ids of the calls in the request's history. */
  callIds(body: unknown): string[];
  /**
   * Request members that no other form has a place for and that are no knobs: without them the answer would be another
   * one. A request that has one goes to endpoints of this form only.
   */
  readonly ownFeatures?: readonly string[];
  /** What the answers of this form repeat of their request; asked for only when such an answer is made. */
  echo?(document: JsonDocument): Record<string, unknown>;
  /** The JSON value of a whole answer. */
  encodeReply(turn: Turn, stamp: Stamp, closing: Closing): unknown;
  encoder(stamp: Stamp): StreamEncoder;
  /**
   * One event of a stream that shows what was asked for with `debug`, framing included. Absent: the form has none.
   * @param debug JSON without line breaks
   */
  debugEvent?(stamp: Stamp, debug: string): string;
  /** The error envelope of this form (wire/common.md, wire/messages.md "Errors"). */
  encodeFailure(error: GatewayError, about: FailureContext): unknown;
  /** An answer that was given before, or one event of it, as that of another request. @param json as it was written */
  renew(json: string, renewal: Renewal): string;
  readonly relay: Relay;
}

export interface FailureContext {
  /** null before routing. */
  generationId: string | null;
  /** Id of the account; absent before authentication. */
  userId?: string | null;
  metadata?: { key: string; value: Record<string, unknown> };
}

/** Reads a streamed answer. One instance per upstream call. */
export interface TurnDecoder {
  /** One upstream event. `value` is the parsed data, undefined when the data is not JSON (a marker, or malformed). */
  read(name: string, data: string, value: unknown): TurnEvent[];
  /** The connection closed cleanly: the closing events, or a `cut` failure when the end was not reached. */
  close(): TurnEvent[];
  /** The finish of every choice has come and the end marker has not: `close` would end the answer in order. */
  toldFinish(): boolean;
}

/** Parts of a conversation whose bytes may stand somewhere else. */
export type MediumKind = 'image' | 'file' | 'audio' | 'video';

export interface SpokenFormat {
  readonly id: FormatId;
  /** Path below the provider's base URL, e.g. `/chat/completions`; a function where it names the model or the streaming. */
  readonly path: string | ((upstreamModel: string, stream: boolean) => string);
  /** Throws `Uncarried` for content or features that this form has no place for. Deterministic and prefix-stable. */
  encode(conversation: Conversation, target: EncodeTarget, losses: Losses): unknown;
  /**
   * A whole answer, or the failure that it reports with status 200. `seed` (letters, digits, dashes; here and below) names
   * this answer among all others, for ids where the upstream gives none.
   */
  decodeReply(value: unknown, dialect: Dialect, seed?: string): { turn: Turn } | { failure: UpstreamFailure };
  decoder(dialect: Dialect, seed?: string): TurnDecoder;
  /** An answer with an error status; `body` is text, perhaps not JSON; `headers` those of the answer that are kept, lower case. */
  decodeFailure(status: number, body: string, headers?: Readonly<Record<string, string>>): UpstreamFailure;
  /**
   * Whether the upstream cannot read such a medium by its http(s) address. The gateway then fetches it (checked egress)
   * before `encode`, which gets its bytes. Absent: addresses are passed on.
   */
  wantsBytes?(kind: MediumKind, url: string, dialect: Dialect): boolean;
  /** Types of tools besides functions that an upstream takes as clients have them (formats/client-tools). Absent: none. */
  nativeTools?(dialect: Dialect): readonly string[] | 'all';
  /**
   * Whether the model can search the web by `Conversation.webSearch` when the client merely allows it. Absent: it cannot.
   * @param withFunctions there are functions as well
   */
  searchesWeb?(target: EncodeTarget, withFunctions: boolean): boolean;
  /** The form's operation that counts the tokens of a request; absent: it has none. */
  readonly tokenCount?: TokenCount;
}

export interface TokenCount {
  /** Below the provider's base URL. */
  path(upstreamModel: string): string;
  /** @param request as `encode` made it, or a client's own in this form */
  body(request: unknown, upstreamModel: string): unknown;
  /** The count as the answer has it, whatever that is. */
  read(reply: unknown): unknown;
}
