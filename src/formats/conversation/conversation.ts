/**
 * The common model between all wire formats: one conversation that can hold everything the richest format can. Every
 * format decodes into it and encodes from it, and it knows no wire names. Pure data: no clock, no network, no classes.
 * Three rules (docs/decisions/001-canonical-conversation-and-relay.md):
 *  - parts keep their order and are never merged (three text blocks are three parts);
 *  - vendor-specific content (signatures, encrypted reasoning, server tool blocks) carries its origin, is kept byte for
 *    byte and is sent back only to that origin;
 *  - tool arguments stay the original text and are parsed only where a format needs an object.
 */

import type { DeferredSearch } from './deferred-search.ts';
import type { UpstreamFailure } from './failure.ts';
import type { NativeWish } from './native-tool.ts';
import type { FormatId } from './registry.ts';
import type { ServedCall, ToolReport } from './served-call.ts';
import type { UsageCall } from './usage.ts';

export type { FormatId } from './registry.ts';

/** Which vendors can read reasoning: the `format` of a `reasoning_details` entry. Plain text is `unknown`, for all. */
export type ReasoningOrigin =
  | 'unknown'
  | 'anthropic-claude-v1'
  | 'openai-responses-v1'
  | 'azure-openai-responses-v1'
  | 'bedrock-openai-responses-v1'
  | 'bedrock-xai-responses-v1'
  | 'xai-responses-v1'
  | 'meta-responses-v1'
  | 'google-gemini-v1';

/** Members of a wire object that the conversation does not model, kept for the format they came from. */
export type Extras = Partial<Record<FormatId, Record<string, unknown>>>;

/** A prompt cache breakpoint after the part or tool that carries it. */
export interface CacheMark {
  ttl?: '5m' | '1h';
}

/** Where the bytes of an image, file, audio or video are. `data` is base64 without a `data:` prefix. */
export type Source =
  | { kind: 'bytes'; mediaType: string; data: string }
  | { kind: 'url'; url: string }
  | { kind: 'text'; text: string; mediaType: string }
  | { kind: 'parts'; parts: Part[] }
  | { kind: 'file'; id: string; origin: FormatId; mediaType?: string };

/**
 * A source cited by an answer. Every format has `url` citations; `native` holds the vendor's own record, which its own
 * format sends unchanged. A citation without `url` cannot be expressed in other formats.
 */
export interface Citation {
  url?: string;
  title?: string | null;
  citedText?: string;
  /** Character range of the answer text that the source supports. */
  start?: number;
  end?: number;
  native?: { origin: FormatId; value: unknown };
}

interface PartBase {
  cache?: CacheMark;
  extras?: Extras;
}

export interface TextPart extends PartBase {
  type: 'text';
  text: string;
  citations?: Citation[];
}

export interface ImagePart extends PartBase {
  type: 'image';
  source: Source;
  detail?: string;
}

/** A document: PDF, plain text, or parts. `citations` asks the model to cite it, `address` is where a search found it. */
export interface FilePart extends PartBase {
  type: 'file';
  source: Source;
  filename?: string;
  address?: string;
  context?: string;
  citations?: boolean;
}

/** Audio in a request (`source`, `format` such as `wav`) or in an answer (`id`, `transcript`, `expiresAt`). */
export interface AudioPart extends PartBase {
  type: 'audio';
  source?: Source;
  format?: string;
  id?: string;
  transcript?: string;
  expiresAt?: number;
}

export interface VideoPart extends PartBase {
  type: 'video';
  source: Source;
  processing?: string;
}

/**
 * Thinking. `text` is the visible text ('' when hidden), `signature` authenticates that text to its origin, and
 * `encrypted` replaces it. `summary` marks a summary of the thinking.
 */
export interface ReasoningPart extends PartBase {
  type: 'reasoning';
  text: string;
  summary?: boolean;
  signature?: string;
  encrypted?: string;
  id?: string;
  origin: ReasoningOrigin;
}

/** A call of a client-side function. `arguments` is JSON text exactly as received; '' when nothing was received. */
export interface ToolCallPart extends PartBase {
  type: 'toolCall';
  id: string;
  name: string;
  arguments: string;
  /** A custom (free-text) tool: `arguments` is not JSON. */
  custom?: boolean;
  /** A tool of the responses format whose calls are their own item type; `arguments` holds the item's members. */
  native?: 'local_shell' | 'tool_search' | 'apply_patch';
  /** Reasoning bound to this call (Gemini's thought signature). */
  signature?: { value: string; origin: ReasoningOrigin };
}

export interface ToolResultPart extends PartBase {
  type: 'toolResult';
  callId: string;
  parts: Part[];
  isError?: boolean;
}

/** A refusal given as text next to the content (chat, responses). */
export interface RefusalPart extends PartBase {
  type: 'refusal';
  text: string;
}

/** A vendor's block that the conversation does not model. Sent back only to its origin. */
export interface OpaquePart extends PartBase {
  type: 'opaque';
  origin: FormatId;
  value: unknown;
  /** In an answer: the tool that the upstream ran. `value` is undefined if the upstream has no block for it. */
  served?: ServedCall;
}

export type Part =
  | TextPart
  | ImagePart
  | FilePart
  | AudioPart
  | VideoPart
  | ReasoningPart
  | ToolCallPart
  | ToolResultPart
  | RefusalPart
  | OpaquePart;

/**
 * One message. Tool results are in messages of the role `tool`: one per message where the format does so, several where
 * it groups them. Formats whose user turns mix results and text split and join here.
 */
export interface Message {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  parts: Part[];
  name?: string;
  cache?: CacheMark;
  extras?: Extras;
}

export interface FunctionTool {
  type: 'function';
  name: string;
  description?: string;
  /** JSON Schema of the arguments; absent when the client gave none. */
  parameters?: unknown;
  strict?: boolean | null;
  /** Hidden from the model until it finds the tool by a search (`Conversation.deferred`). */
  deferred?: true;
  /** A server tool of the gateway that the upstream may have itself. */
  native?: NativeWish;
  cache?: CacheMark;
  extras?: Extras;
}

/** A tool that only its origin understands (a vendor's server tool, a custom tool with a grammar). */
export interface OpaqueTool {
  type: 'opaque';
  origin: FormatId;
  value: unknown;
}

export type Tool = FunctionTool | OpaqueTool;

export type ToolChoice =
  | { mode: 'auto' | 'none' | 'required' }
  | { mode: 'tool'; name: string; namespace?: string }
  | { mode: 'opaque'; origin: FormatId; value: unknown };

export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

/** How much to think. `effort` and `budgetTokens` are mutually exclusive. */
export interface ReasoningSettings {
  enabled?: boolean;
  effort?: Effort;
  budgetTokens?: number;
  /** The model chooses its own budget (`adaptive` of the messages format). */
  adaptive?: boolean;
  /** Think, but do not return the thinking. */
  exclude?: boolean;
  summary?: 'auto' | 'concise' | 'detailed';
  extras?: Extras;
}

export type OutputFormat =
  | { type: 'text' }
  | { type: 'json' }
  | { type: 'schema'; name?: string; description?: string; schema?: unknown; strict?: boolean | null }
  | { type: 'grammar'; grammar: string }
  | { type: 'python' };

/** Tuning parameters. A format that cannot carry one drops and reports it. */
export interface Settings {
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  topA?: number;
  minP?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  repetitionPenalty?: number;
  seed?: number;
  stop?: string[];
  logprobs?: boolean;
  topLogprobs?: number;
  logitBias?: Record<string, number>;
  parallelToolCalls?: boolean;
  serviceTier?: string;
  verbosity?: string;
  prediction?: unknown;
  promptCacheKey?: string;
}

export interface Conversation {
  messages: Message[];
  tools?: Tool[];
  toolChoice?: ToolChoice;
  /** How deferred tools are found. Absent in conversations sent to an upstream (formats/deferred). */
  deferred?: DeferredSearch;
  reasoning?: ReasoningSettings;
  output?: OutputFormat;
  settings: Settings;
  /** Number of answers; default 1. More than one is a required feature, not a tuning parameter. */
  choices?: number;
  /** Requested kinds of output besides text, and the options for audio and images. */
  modalities?: string[];
  audio?: unknown;
  imageConfig?: unknown;
  webSearch?: unknown;
  /** An automatic cache breakpoint on the last cacheable block. */
  cache?: CacheMark;
  /** Other request members: sent to upstreams of the same format, reported as dropped otherwise. */
  extras?: Extras;
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'error';
export interface Finish {
  unified: FinishReason;
  /** The upstream's own finish reason; null when it gave none. */
  native: string | null;
  /** The upstream's own tools are not done: it continues when it gets its turn back. */
  paused?: true;
  /** The stop sequence that matched, when the upstream names it. */
  stopSequence?: string | null;
  /** Why the model refused (`stop_details` of the messages format). */
  refusal?: { category: string | null; explanation: string | null };
}

/**
 * Token counts that add up: total = input + cacheRead + cacheWrite5m + cacheWrite1h + output. Formats that count
 * differently convert when they decode and encode. `reasoning` and the media counts are included in the input and
 * output counts, not added to them.
 */
export interface Usage {
  /** Input tokens neither read from nor written to a cache. */
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  /** All output tokens, reasoning included. */
  output: number;
  reasoning: number;
  inputAudio?: number;
  inputImage?: number;
  outputAudio?: number;
  outputImage?: number;
  acceptedPrediction?: number;
  rejectedPrediction?: number;
  webSearches?: number;
  /** Calls of tools that the upstream runs itself: requested by the model, and executed. */
  toolCallsRequested?: number;
  toolCallsExecuted?: number;
  /** The counts that the vendor bills, where they differ from those it reports. */
  billed?: { input: number; output: number };
  webFetches?: number;
  /** Rerank: the unit of billing, one query with up to 100 documents. */
  searchUnits?: number;
  /** Generated images, for models billed per image, and their area in megapixels, rounded up. */
  outputImages?: number;
  outputMegapixels?: number;
  /** Speech: characters of the text. */
  inputCharacters?: number;
  /** Started seconds of audio in the request, and of audio or video in the reply. */
  inputSeconds?: number;
  outputSeconds?: number;
  /**
   * The individual calls in the totals, each priced separately, where one answer took several. Tokens in the totals
   * that are in no call belong to the requested model. Absent: one call.
   */
  calls?: readonly UsageCall[];
  /** Calls of image models by a tool of the upstream. The totals are without them. */
  imageCalls?: readonly UsageCall[];
  /** The upstream's own record, unchanged, for its own format. */
  native?: { origin: FormatId; value: Record<string, unknown> };
}

export interface Logprobs {
  content: unknown[] | null;
  refusal?: unknown[] | null;
}

export interface Choice {
  parts: Part[];
  finish: Finish;
  logprobs?: Logprobs;
}

export interface Turn {
  /** The upstream's id, model and time (Unix seconds). */
  id?: string;
  model?: string;
  created?: number;
  serviceTier?: string | null;
  fingerprint?: string | null;
  choices: Choice[];
  usage?: Usage;
  /** The upstream's verdicts on the tool calls (`safeguard_results`), unchanged. */
  safeguards?: unknown[];
  extras?: Extras;
}

/** The addition of a delta to its part: texts are concatenated, `citation` is appended. */
export interface PartDelta {
  text?: string;
  arguments?: string;
  signature?: string;
  encrypted?: string;
  citation?: Citation;
  /** Base64 of audio. */
  data?: string;
  transcript?: string;
  /** Replaces the value of an opaque part. */
  value?: unknown;
  /** A progress report of the running tool of an opaque part. */
  report?: ToolReport;
}

/**
 * One step of a streamed answer. Per choice, part indexes count up from 0 in the order of `partStart`, and parts may interleave.
 * An opaque part is complete unless a later delta replaces its value. All parts stop before `finish`; the end marker `end` is last.
 */
export type TurnEvent =
  | {
      type: 'start';
      id?: string;
      model?: string;
      created?: number;
      serviceTier?: string | null;
      fingerprint?: string | null;
    }
  | { type: 'partStart'; choice: number; index: number; part: Part }
  | { type: 'partDelta'; choice: number; index: number; delta: PartDelta }
  | { type: 'partStop'; choice: number; index: number }
  | { type: 'logprobs'; choice: number; logprobs: Logprobs }
  | { type: 'finish'; choice: number; finish: Finish }
  /** The upstream's verdicts on the tool calls; replaces earlier ones. */
  | { type: 'safeguards'; results: unknown[] }
  /** Replaces all earlier counts of this answer. */
  | { type: 'usage'; usage: Usage }
  | { type: 'failure'; failure: UpstreamFailure }
  | { type: 'end' };
