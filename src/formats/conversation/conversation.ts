/**
 * The middle of every translation: one conversation that holds what the richest wire form holds. A format decodes into
 * it and encodes from it; nothing here knows a wire name. Pure data: no clock, no network, no classes.
 *
 * Three rules keep it honest (decision 001):
 *  - parts are ordered and stay apart (three text blocks are three parts);
 *  - what only one vendor can read (signatures, encrypted reasoning, server tool blocks) carries its origin, is kept
 *    byte for byte and returns only there;
 *  - tool arguments are the text that came; they are parsed only where a form needs an object.
 */

/** The wire forms of a conversation. `chat`, `messages`, `responses` are served and spoken; the others spoken only. */
export type FormatId = 'chat' | 'messages' | 'responses' | 'gemini' | 'converse' | 'cohere';

/** Who can read a piece of reasoning (wire/chat.md, `format` of a reasoning detail). Plain text is `unknown`: anyone. */
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

/** Fields of a wire object that the conversation does not name, kept for the format that they came from. */
export type Extras = Partial<Record<FormatId, Record<string, unknown>>>;

/** A prompt cache breakpoint behind the part or tool that carries it. */
export interface CacheMark {
  ttl?: '5m' | '1h';
}

/** Where the bytes of an image, file, sound or video are. `data` is base64 without a `data:` prefix. */
export type Source =
  | { kind: 'bytes'; mediaType: string; data: string }
  | { kind: 'url'; url: string }
  | { kind: 'text'; text: string; mediaType: string }
  | { kind: 'parts'; parts: Part[] }
  | { kind: 'file'; id: string; origin: FormatId };

/**
 * A source of an answer. `url` citations exist in every form; `native` holds the vendor's own record, which is used
 * verbatim by the form it came from. A citation without `url` has no counterpart elsewhere.
 */
export interface Citation {
  url?: string;
  title?: string | null;
  citedText?: string;
  /** Character range of the answer's text that the source supports. */
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

/** A document: PDF, plain text, or parts. `citations` asks for (request) citations of it. */
export interface FilePart extends PartBase {
  type: 'file';
  source: Source;
  filename?: string;
  context?: string;
  citations?: boolean;
}

/** Sound in a request (`source`, `format` such as `wav`) or in an answer (`id`, `transcript`, `expiresAt`). */
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
 * Thinking. `text` is what may be shown ('' when it is hidden), `signature` binds that text for its origin,
 * `encrypted` replaces it. `summary` tells a summary from the thinking itself.
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

/** A call of a function of the client. `arguments` is JSON text as it came; '' until something came, never invented. */
export interface ToolCallPart extends PartBase {
  type: 'toolCall';
  id: string;
  name: string;
  arguments: string;
  /** A custom (free text) tool: `arguments` is not JSON. */
  custom?: boolean;
  /** A tool of the responses format whose calls are items of their own; `arguments` holds what such an item says. */
  native?: 'local_shell' | 'tool_search';
  /** Reasoning bound to this call (Gemini's thought signature). */
  signature?: { value: string; origin: ReasoningOrigin };
}

export interface ToolResultPart extends PartBase {
  type: 'toolResult';
  callId: string;
  parts: Part[];
  isError?: boolean;
}

/** A refusal told as text beside the content (chat, responses). */
export interface RefusalPart extends PartBase {
  type: 'refusal';
  text: string;
}

/** A vendor's block that has no name here. Goes back to its origin, nowhere else. */
export interface OpaquePart extends PartBase {
  type: 'opaque';
  origin: FormatId;
  value: unknown;
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
 * One message. Tool results stand in messages of the role `tool` (one per message where the form has it so, several in
 * one where it groups them); a form with user turns of mixed results and text splits and joins at that border.
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
  /** Shown to the model only once it has searched for it (`Conversation.deferred`). */
  deferred?: true;
  cache?: CacheMark;
  extras?: Extras;
}

/** A tool that only its origin knows (a vendor's server tool, a custom tool with a grammar). */
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

/** How much to think. `effort` and `budgetTokens` exclude each other (wire/chat.md, "reasoning"). */
export interface ReasoningSettings {
  enabled?: boolean;
  effort?: Effort;
  budgetTokens?: number;
  /** The model chooses its own budget (messages form, `adaptive`). */
  adaptive?: boolean;
  /** Think, but do not show it. */
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

/** Knobs. Each may be dropped (and reported) by a form that cannot carry it. */
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
  /** How deferred tools are found. What goes to an upstream has none (formats/deferred). */
  deferred?: import('../deferred/index.ts').DeferredSearch;
  reasoning?: ReasoningSettings;
  output?: OutputFormat;
  settings: Settings;
  /** How many answers; absent is one. More than one is a feature, not a knob. */
  choices?: number;
  /** Wanted kinds of output beyond text, and how the sound or image should be. */
  modalities?: string[];
  audio?: unknown;
  imageConfig?: unknown;
  webSearch?: unknown;
  /** An automatic cache breakpoint on the last cacheable block. */
  cache?: CacheMark;
  /** Request fields with no name here: sent when the same format is spoken, reported as lost otherwise. */
  extras?: Extras;
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'error';

export interface Finish {
  unified: FinishReason;
  /** The upstream's own word; null when it gave none. */
  native: string | null;
  /** The stop text that matched, when the upstream names it. */
  stopSequence?: string | null;
  /** Why it refused (messages form, `stop_details`). */
  refusal?: { category: string | null; explanation: string | null };
}

/**
 * Token counts whose parts add up: total = input + cacheRead + cacheWrite5m + cacheWrite1h + output. Formats that count
 * otherwise convert at their border. `reasoning` and the media counts are parts of what they name, not additions.
 */
export interface Usage {
  /** Everything read that came from no cache and was written to none. */
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  /** Everything written, reasoning included. */
  output: number;
  reasoning: number;
  inputAudio?: number;
  inputImage?: number;
  outputAudio?: number;
  outputImage?: number;
  acceptedPrediction?: number;
  rejectedPrediction?: number;
  webSearches?: number;
  /** Calls of tools that the upstream runs itself: what its model asked for, and what it ran. */
  toolCallsRequested?: number;
  toolCallsExecuted?: number;
  /** What the vendor charges for, where it does not charge for all that it counts. */
  billed?: { input: number; output: number };
  webFetches?: number;
  /** Rerank: what a request is charged by, one query with up to 100 documents each. */
  searchUnits?: number;
  /** Pictures that were made, for models that charge them by the piece, and their area in begun millions of pixels. */
  outputImages?: number;
  outputMegapixels?: number;
  /**
   * The calls that the counts are the sum of, where an answer took several: each is priced for itself. What the counts have
   * beyond them belongs to the model that was asked. Absent: one call.
   */
  calls?: readonly UsageCall[];
  /** The upstream's record as it came, for the form that it belongs to. */
  native?: { origin: FormatId; value: Record<string, unknown> };
}

export interface UsageCall {
  /** As the upstream names it; absent: the model that was asked. */
  model?: string;
  usage: Usage;
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

/** One whole answer. */
export interface Turn {
  /** The upstream's id, model and time (Unix seconds). */
  id?: string;
  model?: string;
  created?: number;
  serviceTier?: string | null;
  fingerprint?: string | null;
  choices: Choice[];
  usage?: Usage;
  /** What the upstream's safeguards say of the calls (spec.md, `safeguard_results`), as they came. */
  safeguards?: unknown[];
  extras?: Extras;
}

/** What a delta adds to its part; every present member is appended (`citation`, `logprobs`) or concatenated. */
export interface PartDelta {
  text?: string;
  arguments?: string;
  signature?: string;
  encrypted?: string;
  citation?: Citation;
  /** Base64 of sound. */
  data?: string;
  transcript?: string;
}

/**
 * One step of a streamed answer. Per choice, part indexes rise from 0 in the order of `partStart`; parts of one choice
 * may interleave (parallel calls). `partStart` holds the part as far as it is known; an opaque part comes whole.
 * Every started part is stopped before `finish`; `end` is the upstream's end marker and the last event.
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
  /** What the upstream's safeguards say of the calls; replaces what they said before. */
  | { type: 'safeguards'; results: unknown[] }
  /** Replaces every earlier count of this answer. */
  | { type: 'usage'; usage: Usage }
  | { type: 'failure'; failure: import('./failure.ts').UpstreamFailure }
  | { type: 'end' };
