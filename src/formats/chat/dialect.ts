/** Ways in which a service that speaks chat completions differs from the form's standard. Absent members mean the default. */
export interface ChatDialect {
  /** The name of the output cap. Default `max_tokens`, which every compatible server knows. */
  maxTokens?: 'max_tokens' | 'max_completion_tokens';
  /** Smallest output cap that the service accepts; a smaller one is raised to it. Default none. */
  minMaxTokens?: number;
  /** The service knows the role `developer`. Default false: it is sent as `system`. */
  developerRole?: boolean;
  /** The service takes `stream_options.include_usage`. Default true. */
  streamUsage?: boolean;
  /** How thinking is asked for: OpenAI's `reasoning_effort` (default), OpenRouter's `reasoning` object, or not at all. */
  reasoning?: 'effort' | 'object' | 'none';
  /** The assistant's field that takes earlier plain thinking back. Default none: it is dropped and reported. */
  reasoningReplay?: 'reasoning_content' | 'reasoning';
  /** `reasoning_details` are understood on the way in (OpenRouter). Default false. */
  reasoningDetails?: boolean;
  /** `cache_control` marks on parts and tools are understood. Default false: left out. */
  cacheControl?: boolean;
  /** The template takes one leading system message and strict alternation (some vLLM servers): merge, never drop. */
  strictTemplate?: boolean;
  /** The field for the hashed end user. Default `user`. */
  userField?: 'user' | 'safety_identifier' | 'none';
  /** Request parameters that the service refuses; dropped (relay: removed) and reported. */
  refuses?: readonly string[];
}
