/** Ways in which a service that speaks the messages form differs from its standard. Absent members mean the default. */
export interface MessagesDialect {
  /** Cache breakpoints that the service takes; further ones are left out. Default 4. */
  maxCacheMarks?: number;
  /**
   * How an effort is asked for: as a thinking budget, which every thinking model of this form knows (default), or as
   * `thinking: adaptive` with `output_config.effort`, for models that take no budget.
   */
  thinking?: 'budget' | 'adaptive';
  /** Request parameters that the service refuses; dropped (relay: removed) and reported. */
  refuses?: readonly string[];
  /** The service holds conversations between requests (`thread`). Default false: such requests are refused. */
  threads?: boolean;
  /** Thinking without a signature is taken back (servers that sign nothing). Default false: it is left out. */
  unsignedThinking?: boolean;
  /** The service searches the web itself (`web_search_20250305`). Default false. */
  webSearch?: boolean;
  /** The form at a cloud provider, where the model stands in the path of the call. */
  hosted?: {
    /** `anthropic_version` of the body. */
    version: string;
    /** The path says whether the answer is streamed too, and the body must not. Default false. */
    streamInPath?: boolean;
    /** Betas stand in the body (`anthropic_beta`) instead of in a header. Default false. */
    betasInBody?: boolean;
  };
}
