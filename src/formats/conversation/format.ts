/**
 * The contract of a format. A format is one folder with up to two pure halves: `ServedFormat` faces the client,
 * `SpokenFormat` faces an upstream. When client and upstream use the same format, `Relay` edits the original bytes
 * instead of translating.
 */
import type { TSchema } from 'typebox';
import type { GatewayError } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import type { Edit } from '../../base/json-edits.ts';
import type { PromptCaching } from './cache-breakpoints.ts';
import type { Conversation, FormatId, ImagePart, ReasoningOrigin, Turn, TurnEvent, Usage } from './conversation.ts';
import type { SearchTrace } from './deferred-search.ts';
import type { UpstreamFailure } from './failure.ts';
import type { Fields } from './fields.ts';
import type { FileWords } from './file-words.ts';
import type { HistoryWords } from './history.ts';
import type { LoggedContent } from './logged-content.ts';
import type { Losses } from './losses.ts';
import type { NativeTool } from './native-tool.ts';
import type { Dialect } from './registry.ts';
import type { Renewal } from './renewal.ts';
import type { RequestFacts } from './request-facts.ts';
import type { VisitTexts } from './texts.ts';
import type { ToolTrace } from './tool-steps.ts';

export type { ProviderPreferences } from './preferences.ts';
export type { Dialect } from './registry.ts';
export { type InnerCalls, type Needs, type RequestFacts, requestedModels, type UpstreamWork } from './request-facts.ts';

/** The gateway's own members of an answer, the same for relayed and translated answers. */
export interface Stamp {
  /** Generation id, `gen-...`. */
  id: string;
  /** Catalog id of the serving model, e.g. `acme/large`. */
  model: string;
  /** Display name of the serving provider. */
  provider: string;
  /** Unix seconds, for upstreams that give no time. */
  created: number;
  /** Estimated prompt tokens, for formats that report a count before the upstream has. */
  promptTokens?: number;
  /** Chat streams: usage in a last chunk with empty choices, in the finish chunk, or not at all. */
  usage: 'chunk' | 'finish' | 'none';
  /** Chat: the client has declared custom tools; others get the free text of a custom call as JSON arguments. */
  customTools?: boolean;
  /** Request members that answers of this format repeat (`ServedFormat.echo`); absent for formats that repeat none. */
  echo?(): Record<string, unknown>;
}

/** The cost of an answer as shown in `usage`, in USD. */
export interface Cost {
  /** null: the model has no price. */
  cost: number | null;
  is_byok: boolean;
  cost_details: {
    upstream_inference_cost: number | null;
    upstream_inference_prompt_cost: number;
    upstream_inference_completions_cost: number;
    /** Cost of the server tools that the gateway ran; absent if it ran none. */
    server_tool_cost?: number;
  };
}

/**
 * The cost members of `usage`. Without a price the amounts are left out: clients such as `@openrouter/ai-sdk-provider`
 * 3 reject a cost that is not a number, and 0 would be wrong.
 */
export function costMembers(cost: Cost | undefined): Partial<Cost> {
  if (cost === undefined) return {};
  return cost.cost === null ? { is_byok: cost.is_byok } : cost;
}

/** The figures that complete an answer. `metadata` is `svc_metadata`, when opted in, under the member `key`. */
export interface Closing {
  /** Unix seconds at which the answer was complete. */
  completed?: number;
  usage?: Usage;
  cost?: Cost;
  metadata?: { key: string; value: Record<string, unknown> };
  /** A plugin's verdicts on the turns of the answer, for formats that have a member for them. */
  alignment?: { readonly calls: readonly object[] };
}

/**
 * Encodes a streamed answer as the client's event stream, framing included. Call `event` any number of times, then
 * exactly one of `end` (the upstream completed) and `failure` (it did not; nothing may follow).
 */
export interface StreamEncoder {
  event(event: TurnEvent): string;
  /** Everything held back until the closing figures are known, then the format's end marker. */
  end(closing: Closing): string;
  /**
   * One typed error event, with no end marker after it. Includes `usage` so far where the format has a member for it.
   */
  failure(error: GatewayError, closing: Closing): string;
}

/** The same for an upstream of the client's own format: unknown members and number literals survive. */
export interface RelayStream {
  /**
   * @param name the SSE event name, '' when absent; @param data the event's text; @param value the parsed data
   * @param events what the format's decoder read from it
   * @returns text to forward, '' when the event is dropped or held back
   */
  event(name: string, data: string, value: unknown, events: readonly TurnEvent[]): string;
  end(closing: Closing): string;
  failure(error: GatewayError, closing: Closing): string;
}

/** How the request is sent to one endpoint. */
export interface EncodeTarget {
  /** The upstream's own name of the model. */
  model: string;
  stream: boolean;
  /**
   * The endpoint's output limit, null when unknown. Formats with a required cap default to it
   * (envoyproxy/ai-gateway#893).
   */
  maxOutputTokens: number | null;
  /**
   * An output cap that the gateway sets, because a budget allows no more; takes precedence over a larger one of the
   * client.
   */
  capOutputTokens?: number;
  /** The tier to request instead of the client's; null: none. Absent: the client's. */
  serviceTier?: string | null;
  /**
   * Where the gateway places cache breakpoints for a client that sets none. Absent: nowhere. Formats whose providers
   * cache without breakpoints ignore it.
   */
  promptCaching?: PromptCaching | undefined;
  /** The origin whose signed or encrypted reasoning this endpoint can read. */
  origin: ReasoningOrigin;
  /** Keyed hash of the end user, or of the account. */
  user: string;
  /** Beta features that the client enabled by header (`anthropic-beta`), for services that expect them in the body. */
  betas?: readonly string[];
  /** Server tools that the upstream has itself. Absent: none. */
  nativeTools?: readonly NativeTool[] | undefined;
  /** The gateway runs tools itself wherever the request allows it. */
  ownToolsOnly?: boolean | undefined;
  /** The upstream's own id of the answer that a thread continues. */
  previousId?: string | undefined;
  /** The upstream's own id of the answer whose prompt is compared. */
  comparedId?: string | undefined;
  /** The upstream's deviations from its format's standard; each format reads its own member. */
  dialect: Dialect;
}

/**
 * A complete answer to relay. All texts here, and the texts of a `RelayStream`, may be byte text (`base/byte-text.ts`): a relay
 * looks for ASCII only, and writes what it quotes as it got it.
 */
export interface RelayedAnswer {
  /** As received. */
  text: string;
  /** The parsed text (`parseJson`). */
  value: unknown;
  /** The result of `decodeReply`. */
  turn: Turn;
  stamp: Stamp;
  closing: Closing;
}

export interface Relay {
  /** Edits of top-level members: model, gateway members removed, usage reporting enabled, `user` hashed, quirks. */
  edits(document: JsonDocument, target: EncodeTarget, losses?: Losses): Edit[];
  /** The upstream's complete answer with the gateway's members in it. */
  reply(answer: RelayedAnswer): string;
  stream(stamp: Stamp, dialect: Dialect): RelayStream;
  /** The member of a request that names the tier; default `service_tier`. */
  readonly tierMember?: string;
  /** A member and value by which this format's clients request a faster tier, besides that member. */
  readonly tierWord?: { readonly key: string; readonly value: string };
}

/** Reads answers of a format. */
export interface AnswerReader {
  /**
   * A complete answer, or the failure it reports with status 200. `seed` (letters, digits, dashes; here and below) is
   * unique to this answer; ids are derived from it where the upstream gives none.
   */
  decodeReply(value: unknown, dialect: Dialect, seed?: string): { turn: Turn } | { failure: UpstreamFailure };
  decoder(dialect: Dialect, seed?: string): TurnDecoder;
}

/**
 * Clients that name the model in the path, `/models/acme/large:generate`, and what they want of it after the colon. The
 * body then has the members `model` and those of the method, wherever the gateway reads it.
 */
export interface PathWords {
  /** Roots besides the usual ones below which the path is served, and what their operations' ids end with. */
  readonly roots: readonly { readonly path: string; readonly suffix: string }[];
  /** Members of the body, by method. */
  readonly methods: Readonly<Record<string, Readonly<Record<string, boolean>>>>;
  /** Methods that clients know and the gateway does not serve, with what to use instead. */
  readonly unserved: Readonly<Record<string, string>>;
  /** The value of the query's `alt` for a stream of events; any other stream is a JSON list of their data. */
  readonly eventsAs: string;
}

/** The HTTP operation of a format. The schemas of replies describe them; they are not validated. */
export interface ServedOperation {
  readonly id: string;
  readonly path: string;
  readonly summary: string;
  readonly reply: TSchema;
  /** A streamed reply; the schema describes the data of an event. */
  readonly events: { schema: TSchema; description: string };
  /** Default: the common error. */
  readonly errorSchema?: TSchema;
  /** A response header that clients of the format expect the generation's id in. */
  readonly requestIdHeader?: string;
  /** `path` is followed by the model and a method. Absent: the body names the model. */
  readonly inPath?: PathWords;
}

/** As `AnswerReader`, reads its own answers, with an empty dialect. */
export interface ServedFormat extends AnswerReader {
  readonly id: FormatId;
  readonly operation: ServedOperation;
  /** Open schema of the request body: names the members the gateway acts on, lets the rest pass. */
  readonly schema: TSchema;
  /**
   * Rules a schema cannot express; throws GatewayError 400 with the path, also for unsupported features.
   * @param isPart more is added later: the tools of a preset, or the history of a stored conversation
   */
  check(body: unknown, isPart?: boolean): void;
  /** The checked request with the changes that its own messages make to its settings; undefined if they make none. */
  settled?(document: JsonDocument): JsonDocument | undefined;
  facts(body: unknown): RequestFacts;
  /** Members whose texts are in the facts. Only these are decoded exactly when a body has text outside of ASCII. */
  readonly factMembers: readonly string[];
  decode(body: unknown): Conversation;
  /** Ids of the tool calls in the request's history. */
  callIds(body: unknown): string[];
  /** Visits the texts of a request, for guardrail filters; `formats/texts` makes one from a format's own words. */
  readonly texts: VisitTexts;
  /** The content of a request, for the content log. */
  loggedContent(document: JsonDocument): LoggedContent;
  /**
   * The parts of the body that are counted in `media.images`. Images have a token rate of their own, so they are left
   * out where the texts of a request are counted.
   */
  images(body: unknown): ReadonlySet<unknown>;
  /** How content references stored files. Absent: it cannot. */
  readonly fileWords?: FileWords;
  /** How the request's history is written. */
  readonly history: HistoryWords;
  /** How searches for deferred tools are shown in answers and read from histories. */
  readonly searchTrace: SearchTrace;
  /** How calls of server tools are shown in answers and read from histories. */
  readonly toolTrace: ToolTrace;
  /**
   * Request members that have no counterpart in other formats and change the content of the answer. A request with one
   * is routed to endpoints of this format only.
   */
  readonly ownFeatures?: readonly string[];
  /**
   * The path of the first content that only endpoints of this format understand, such as a compaction that replaces earlier
   * messages. Routed like `ownFeatures`.
   */
  ownContent?(request: Fields): string | undefined;
  /** The request member that continues a conversation which the upstream has stored. */
  readonly threadMember?: string;
  /** Clients may not send reasoning back; the gateway keeps it for requests with tools. */
  readonly losesReasoning?: true;
  /** Answers cannot carry images. */
  readonly lacksImages?: true;
  /** Request members that answers of this format repeat; called only when such an answer is built. */
  echo?(document: JsonDocument): Record<string, unknown>;
  /** The JSON value of a complete answer. */
  encodeReply(turn: Turn, stamp: Stamp, closing: Closing): unknown;
  encoder(stamp: Stamp): StreamEncoder;
  /**
   * One stream event that carries the `debug` output, framing included. Absent: the format has none.
   * @param debug JSON without line breaks
   */
  debugEvent?(stamp: Stamp, debug: string): string;
  /** The error envelope of this format (docs/guides/errors.md). */
  encodeFailure(error: GatewayError, about: FailureContext): unknown;
  /** A stored answer, or one event of it, rewritten for another request. @param json its text as stored */
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

/** Decodes a streamed answer. One instance per upstream call. */
export interface TurnDecoder {
  /** One upstream event. `value` is the parsed data, undefined when the data is not JSON (a marker, or malformed). */
  read(name: string, data: string, value: unknown): TurnEvent[];
  /** The connection closed cleanly: returns the closing events, or a `cut` failure when the end marker is missing. */
  close(): TurnEvent[];
  /** Whether every choice has finished while the end marker is missing: `close` would then complete the answer. */
  toldFinish(): boolean;
}

/** Kinds of parts whose bytes may be given by URL. */
export type MediumKind = 'image' | 'file' | 'audio' | 'video';

/**
 * Prompt tokens that a request's bytes do not cover: the template, a default system prompt, and the upstream's
 * instructions for tools and output formats.
 */
export interface PromptOverhead {
  plain: number;
  /** With tools or an output format. */
  tools: number;
}

export interface SpokenFormat extends AnswerReader {
  readonly id: FormatId;
  /**
   * Path below the provider's base URL, e.g. `/chat/completions`; a function where it depends on the model or on
   * streaming.
   */
  readonly path: string | ((upstreamModel: string, stream: boolean) => string);
  /** Throws `Uncarried` for content or features that this format cannot express. Deterministic and prefix-stable. */
  encode(conversation: Conversation, target: EncodeTarget, losses: Losses): unknown;
  /**
   * An answer with an error status. `body` is text, possibly not JSON; `headers` are those that the gateway keeps, in
   * lower case.
   */
  decodeFailure(status: number, body: string, headers?: Readonly<Record<string, string>>): UpstreamFailure;
  /**
   * Whether the upstream cannot fetch this kind of media from its http(s) URL. The gateway then fetches it (checked
   * egress) before `encode`, which gets the bytes. Absent: URLs are passed on.
   */
  wantsBytes?(kind: MediumKind, url: string, dialect: Dialect): boolean;
  /** Whether the upstream stores conversations that later requests continue. Absent: it does not. */
  keepsThreads?(dialect: Dialect): boolean;
  /** Whether the upstream returns reasoning that the request hides. Absent: it does not. */
  showsHiddenReasoning?(dialect: Dialect): boolean;
  /** Tokens of a prompt besides those of its text. Absent: the usual ones. */
  readonly promptOverhead?: PromptOverhead;
  /** The longest tool name that upstreams accept; longer ones are shortened (formats/adapters). Absent: no limit. */
  readonly longestToolName?: number;
  /** Whether an assistant message can hold the image. Absent: no (`formats/adapters/answer-images.ts`). */
  holdsAnswerImage?(image: ImagePart): boolean;
  /** Whether `tool_choice` can name several tools. Absent: no (`formats/adapters/allowed-tools.ts`). */
  choosesAmong?(dialect: Dialect): boolean;
  /** Types of client tools that a relayed request may contain. Absent: all. */
  relayedTools?(dialect: Dialect): readonly string[] | 'all';
  /**
   * Tool types besides functions that an upstream accepts as clients write them (`formats/adapters/client-tools/`). Absent: none.
   */
  nativeTools?(dialect: Dialect): readonly string[] | 'all';
  /**
   * Whether the model can search the web by `Conversation.webSearch` when the client only allows it. Absent: it cannot.
   * @param withFunctions whether the request also has function tools
   */
  searchesWeb?(target: EncodeTarget, withFunctions: boolean): boolean;
  /** The format's token counting operation; absent: it has none. */
  readonly tokenCount?: TokenCount;
}

export interface TokenCount {
  /** Path below the provider's base URL. */
  path(upstreamModel: string): string;
  /** @param request as `encode` made it, or the client's own request in this format */
  body(request: unknown, upstreamModel: string): unknown;
  /** The count from the reply, unvalidated. */
  read(reply: unknown): unknown;
}
