/** How a chat completions service deviates from the standard format. An absent member means the default. */
import type { Effort } from '../conversation/conversation.ts';
import type { MediumKind } from '../conversation/format.ts';

export interface ChatDialect {
  /** The name of the output cap. Default `max_tokens`, which every compatible service accepts. */
  maxTokens?: 'max_tokens' | 'max_completion_tokens';
  /** Smallest output cap that the service accepts; smaller values are raised to it. Default: no minimum. */
  minMaxTokens?: number;
  /** Accepts the role `developer`. Default false: sent as `system`. */
  developerRole?: boolean;
  /** Accepts `stream_options.include_usage`. Default true. */
  streamUsage?: boolean;
  /**
   * How thinking is requested: OpenAI's `reasoning_effort` (default), OpenRouter's `reasoning` object, a switch
   * `thinking: {type}` (DeepSeek, Z.AI, Kimi) or `reasoning: {enabled}` (Together) next to the effort, Qwen's
   * `enable_thinking` and `thinking_budget`, or not at all.
   */
  reasoning?: 'effort' | 'object' | 'thinking' | 'enabled' | 'enable_thinking' | 'none';
  /** Per-model deviations; the first matching rule applies. */
  reasoningRules?: readonly ReasoningRule[];
  /** The assistant member that accepts earlier plain thinking. Default none: thinking is dropped and reported. */
  reasoningReplay?: 'reasoning_content' | 'reasoning';
  /**
   * While the model thinks, earlier turns with tool calls must include their thinking. `unasked`: the models that think
   * by default. Default: not required.
   */
  requiresThinking?: { unasked: RegExp };
  /** Accepts `reasoning_details` in requests (OpenRouter). Default false. */
  reasoningDetails?: boolean;
  /**
   * Answers may begin with thinking between `<think>` and `</think>`. Default false: such text is part of the answer.
   */
  thinkTags?: boolean;
  /** Accepts `cache_control` on parts and tools. Default false: left out. */
  cacheControl?: boolean;
  /**
   * The template accepts only one leading system message and strict alternation (some vLLM servers): merge, never drop.
   */
  strictTemplate?: boolean;
  /**
   * Accepts custom tools as defined by OpenAI. `relayed`: unknown, so those of chat clients are sent as they are, others as
   * functions. Default false: all are sent as functions.
   */
  customTools?: boolean | 'relayed';
  /** Accepts a `tool_choice` among several tools (`allowed_tools`). Default false: the other tools are left out. */
  allowedTools?: boolean;
  /**
   * Accepts any text as arguments of earlier calls. Default false: text that is not a JSON object is wrapped in one.
   */
  anyArguments?: boolean;
  /** Every model accepts `web_search_options`. Default false: an optional search is left out. */
  webSearch?: boolean;
  /** The member for the hashed end user. Default `user`. */
  userField?: 'user' | 'safety_identifier' | 'user_id' | 'none';
  /** Request parameters that the service rejects; dropped (relay: removed) and reported. */
  refuses?: readonly string[];
  /** The same for some of its models. */
  refusesFor?: readonly { models: RegExp; parameters: readonly string[] }[];
  /** The service tiers it offers; others are dropped and reported. Default: all are sent. */
  serviceTiers?: readonly string[];
  /** Renamed parameters, by the format's own name. */
  renames?: Readonly<Record<string, string>>;
  /** Unsupported features: a request that uses one goes to another endpoint. */
  lacks?: readonly ('tools' | 'json_schema')[];
  /** `json_object` is not supported and is sent as a schema of any object. */
  jsonBySchema?: boolean;
  /**
   * The member for an output grammar: `response_format` as the client wrote it, `grammar` (llama.cpp), or
   * `structured_outputs` (vLLM). Default: grammars are not supported.
   */
  grammar?: 'response_format' | 'grammar' | 'structured_outputs';
  /** Accepts `response_format` of the type `python`. Default false. */
  python?: boolean;
  /** `tool_choice` must be a string: a forced tool is sent as `required` with that tool alone in the list. */
  toolChoiceWords?: boolean;
  /** Accepted message members by role; all others are left out. Default: all are sent. */
  messageFields?: Readonly<Record<string, readonly string[]>>;
  /** Call ids must be nine letters or digits; others are rewritten deterministically. */
  nineCharacterIds?: boolean;
  /**
   * Shortens every call id beyond 40 characters. Default false: ids with an embedded thought signature stay whole,
   * because the service that embedded it reads it.
   */
  strictCallIds?: boolean;
  /** The marker on a last assistant message that the model should continue. Default: not needed, or not supported. */
  prefill?: 'prefix' | 'partial';
  /** A user message must not follow a tool message: a short assistant message is inserted between them. */
  answersTools?: boolean;
  /** Media kinds accepted only as data URLs; the gateway fetches their URLs. Default: none. */
  mediaBytes?: readonly MediumKind[];
  /** Documents are sent in parts of the type `document_url`. Default `file`. */
  documentUrl?: boolean;
}

/** How some models of a service accept reasoning settings. */
export interface ReasoningRule {
  /** Absent: all models. */
  models?: RegExp;
  /** Effort words to replace; null: no effort is sent, which is reported. Words that are not listed stay. */
  words?: Partial<Record<Effort, string | null>>;
  /** Thinking cannot be switched off: only the effort is sent. */
  always?: boolean;
  /** Parameters to add when thinking is requested. */
  also?: Readonly<Record<string, unknown>>;
  /** Parameters that hide the thinking. Default: it cannot be hidden. */
  hide?: Readonly<Record<string, unknown>>;
}

declare module '../conversation/registry.ts' {
  interface Dialect {
    chat?: ChatDialect;
  }
}
