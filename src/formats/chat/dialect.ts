/** Ways in which a service that speaks chat completions differs from the form's standard. Absent members mean the default. */
import type { Effort } from '../conversation/conversation.ts';
import type { MediumKind } from '../conversation/format.ts';

export interface ChatDialect {
  /** The name of the output cap. Default `max_tokens`, which every compatible server knows. */
  maxTokens?: 'max_tokens' | 'max_completion_tokens';
  /** Smallest output cap that the service accepts; a smaller one is raised to it. Default none. */
  minMaxTokens?: number;
  /** The service knows the role `developer`. Default false: it is sent as `system`. */
  developerRole?: boolean;
  /** The service takes `stream_options.include_usage`. Default true. */
  streamUsage?: boolean;
  /**
   * How thinking is asked for: OpenAI's `reasoning_effort` (default), OpenRouter's `reasoning` object, a switch
   * `thinking: {type}` (DeepSeek, Z.AI, Kimi) or `reasoning: {enabled}` (Together) beside the effort, Qwen's `enable_thinking` and `thinking_budget`, or not at all.
   */
  reasoning?: 'effort' | 'object' | 'thinking' | 'enabled' | 'enable_thinking' | 'none';
  /** What its models make of that, by their names; the first rule that fits counts. */
  reasoningRules?: readonly ReasoningRule[];
  /** The assistant's field that takes earlier plain thinking back. Default none: it is dropped and reported. */
  reasoningReplay?: 'reasoning_content' | 'reasoning';
  /**
   * While the model thinks, turns that called tools must come back with thinking. `unasked`: the models that think unless
   * they are told not to. Default: they need not.
   */
  requiresThinking?: { unasked: RegExp };
  /** `reasoning_details` are understood on the way in (OpenRouter). Default false. */
  reasoningDetails?: boolean;
  /** An answer may begin with its thinking between `<think>` and `</think>`. Default false: such a text is the answer. */
  thinkTags?: boolean;
  /** `cache_control` marks on parts and tools are understood. Default false: left out. */
  cacheControl?: boolean;
  /** The template takes one leading system message and strict alternation (some vLLM servers): merge, never drop. */
  strictTemplate?: boolean;
  /** Custom tools are known, as OpenAI has them. Default false: they go out as functions. */
  customTools?: boolean;
  /** Arguments of earlier calls may be any text. Default false: what is no JSON object is put into one. */
  anyArguments?: boolean;
  /** `web_search_options` is taken by every model. Default false: a search that is merely allowed is left out. */
  webSearch?: boolean;
  /** The field for the hashed end user. Default `user`. */
  userField?: 'user' | 'safety_identifier' | 'user_id' | 'none';
  /** Request parameters that the service refuses; dropped (relay: removed) and reported. */
  refuses?: readonly string[];
  /** The same for some of its models. */
  refusesFor?: readonly { models: RegExp; parameters: readonly string[] }[];
  /** The tiers of service that it has; others are left out. Default: whatever is asked for goes out. */
  serviceTiers?: readonly string[];
  /** Parameters under another name, the form's own first. */
  renames?: Readonly<Record<string, string>>;
  /** Features that the service lacks: a request that uses one goes to another endpoint. */
  lacks?: readonly ('tools' | 'json_schema')[];
  /** `json_object` is not known, only a schema: it is sent as the schema of any object. */
  jsonBySchema?: boolean;
  /**
   * Where a grammar for the answer stands: in the `response_format` as the client wrote it, in a member `grammar`
   * (llama.cpp), in `structured_outputs` (vLLM). Default: the service takes none.
   */
  grammar?: 'response_format' | 'grammar' | 'structured_outputs';
  /** The `response_format` of the type `python` is known. Default false. */
  python?: boolean;
  /** `tool_choice` is a word, never an object: a forced tool goes out as `required`, alone in the list. */
  toolChoiceWords?: boolean;
  /** Messages: members by role that are taken, all others are refused and left out. Default: all are sent. */
  messageFields?: Readonly<Record<string, readonly string[]>>;
  /** Ids of tool calls must be nine letters or digits; others are rewritten, the same one always to the same. */
  nineCharacterIds?: boolean;
  /**
   * Every id of a call beyond 40 characters is shortened. Default false: ids with an embedded thought signature stay whole,
   * because the service that put it there reads it.
   */
  strictCallIds?: boolean;
  /** The mark on a last assistant message that is to be continued. Default none is needed, or it cannot be. */
  prefill?: 'prefix' | 'partial';
  /** A user's message must not follow a tool's: a short one of the assistant is put between. */
  answersTools?: boolean;
  /** Kinds of media that are read as data URLs only; their addresses are fetched for it. Default: none. */
  mediaBytes?: readonly MediumKind[];
  /** Documents stand in parts of the type `document_url`. Default `file`. */
  documentUrl?: boolean;
}

/** How some models of a service are asked to think. */
export interface ReasoningRule {
  /** Absent: all models. */
  models?: RegExp;
  /** The word of effort that goes out instead; null: none does, which is reported. A word that is not listed stays. */
  words?: Partial<Record<Effort, string | null>>;
  /** Thinking cannot be switched: no switch is sent, only the effort. */
  always?: boolean;
  /** Parameters that go along when thinking is asked for. */
  also?: Readonly<Record<string, unknown>>;
  /** Parameters that hide the thinking. Default: it cannot be hidden. */
  hide?: Readonly<Record<string, unknown>>;
}
