/** Ways in which a service that speaks the responses form differs from its standard. Absent members mean the default. */
import type { ReasoningOrigin } from '../conversation/conversation.ts';

export interface ResponsesDialect {
  /** Who can read the reasoning of its answers. Default `openai-responses-v1`. */
  origin?: ReasoningOrigin;
  /** Smallest output cap that the service accepts; a smaller one is raised to it. Default none. */
  minOutputTokens?: number;
  /** The field for the hashed end user. Default `user`. */
  userField?: 'user' | 'safety_identifier' | 'none';
  /**
   * Earlier reasoning is taken back encrypted only, and with something of the same answer behind it (what is not stored
   * cannot be looked up). Default false: plain texts are taken as well.
   */
  encryptedReasoningOnly?: boolean;
  /** Every id of a call beyond 64 characters is shortened. Default false, as `strictCallIds` of the chat dialect. */
  strictCallIds?: boolean;
  /**
   * Types of tools besides `function` that the service takes: `all`, or those among `custom`, `namespace`, `tool_search`,
   * `additional_tools`, `local_shell` and `web_search`. Default: none, as with most services of this format. Tools that
   * only a provider can run (`mcp`, `file_search` and the like) are passed on regardless.
   */
  tools?: readonly string[] | 'all';
  /** Request parameters that the service refuses; dropped (relay: removed) and reported. */
  refuses?: readonly string[];
}
