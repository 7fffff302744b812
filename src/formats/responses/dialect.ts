/** How a service's responses API differs from OpenAI's. Absent members take the default. */
import type { ReasoningOrigin } from '../conversation/conversation.ts';

export interface ResponsesDialect {
  /** Origin of the reasoning in its replies: only this origin can read it again. Default `openai-responses-v1`. */
  origin?: ReasoningOrigin;
  /** Smallest accepted output cap; smaller ones are raised to it. Default: no minimum. */
  minOutputTokens?: number;
  /** The field that carries the hashed end user. Default `user`. */
  userField?: 'user' | 'safety_identifier' | 'none';
  /**
   * The service accepts earlier reasoning only if it is encrypted and followed by another item of the same reply,
   * because unstored reasoning cannot be looked up. Default false: plain text is accepted too.
   */
  encryptedReasoningOnly?: boolean;
  /** Shorten every call id over 64 characters. Default false; see `strictCallIds` of the chat dialect. */
  strictCallIds?: boolean;
  /**
   * Tool types that the service accepts besides `function`: `all`, or some of `custom`, `namespace`, `tool_search`,
   * `additional_tools`, `apply_patch`, `local_shell` and `web_search`. Default: none, as with most services of this format. Tools that
   * only a provider can run (`mcp`, `file_search` and similar) always pass through.
   */
  tools?: readonly string[] | 'all';
  /** Request parameters that the service rejects. They are dropped (removed in a relay) and reported. */
  refuses?: readonly string[];
}

declare module '../conversation/registry.ts' {
  interface Dialect {
    responses?: ResponsesDialect;
  }
}
