/** How a service that speaks the messages format deviates from its standard. An absent member means the default. */
export interface MessagesDialect {
  /** Cache breakpoints that the service accepts; further ones are left out. Default 4. */
  maxCacheMarks?: number;
  /**
   * How effort is requested: as a thinking budget, which most thinking models of this format accept (default), or as
   * `thinking: adaptive` with `output_config.effort`, for models without budgets.
   */
  thinking?: 'budget' | 'adaptive';
  /** Request parameters that the service rejects; dropped (relay: removed) and reported. */
  refuses?: readonly string[];
  /** Stores conversations between requests (`thread`). Default false: such requests are rejected. */
  threads?: boolean;
  /** Accepts thinking without a signature (servers that do not sign). Default false: it is left out. */
  unsignedThinking?: boolean;
  /** Offers server-side web search (`web_search_20250305`). Default false. */
  webSearch?: boolean;
  /** The format at a cloud provider, where the model is in the path. */
  hosted?: {
    /** `anthropic_version` of the body. */
    version: string;
    /** Streaming is selected by the path and must not be in the body. Default false. */
    streamInPath?: boolean;
    /** Betas are in the body (`anthropic_beta`) instead of a header. Default false. */
    betasInBody?: boolean;
  };
}

declare module '../conversation/registry.ts' {
  interface Dialect {
    messages?: MessagesDialect;
  }
}
