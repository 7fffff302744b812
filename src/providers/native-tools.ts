/**
 * Server tools that services have themselves, as their documentation describes them. Search prices are in the catalog
 * (`pricing.web_search`).
 */
import type { NativeTool } from '../formats/conversation/native-tool.ts';

/** docs.claude.com: "Web search tool", "Web fetch tool". */
const searchOfClaude: NativeTool = {
  tool: 'web_search',
  format: 'messages',
  request: { tool: { type: 'web_search_20250305', name: 'web_search' } },
  settings: {
    allowed_domains: 'allowed_domains',
    excluded_domains: 'blocked_domains',
    max_uses: 'max_uses',
    user_location: 'user_location',
  },
  choice: { type: 'tool', name: 'web_search' },
};

const fetchOfClaude: NativeTool = {
  tool: 'web_fetch',
  format: 'messages',
  request: { tool: { type: 'web_fetch_20250910', name: 'web_fetch' } },
  settings: {
    allowed_domains: 'allowed_domains',
    blocked_domains: 'blocked_domains',
    max_content_tokens: 'max_content_tokens',
    max_uses: 'max_uses',
  },
  choice: { type: 'tool', name: 'web_fetch' },
};

export const claudeTools: readonly NativeTool[] = [searchOfClaude, fetchOfClaude];

/** Vertex AI offers Claude's search, but no fetch. */
export const claudeOnVertexTools: readonly NativeTool[] = [{ ...searchOfClaude, models: /^(anthropic\/)?claude-/ }];

/** platform.openai.com: "Web search". */
export const openaiTools: readonly NativeTool[] = [
  {
    tool: 'web_search',
    format: 'responses',
    models: /^(ft:)?(gpt-4o(-mini)?(-\d|$)|gpt-4\.1(-mini)?(-\d{4}|$)|gpt-[5-9]|o[34](-|$))/,
    request: { tool: { type: 'web_search' } },
    settings: {
      allowed_domains: 'filters.allowed_domains',
      search_context_size: 'search_context_size',
      user_location: 'user_location',
    },
    choice: { type: 'web_search' },
  },
  {
    tool: 'web_search',
    format: 'chat',
    models: /-search-(preview|api)/,
    request: { members: { web_search_options: {} } },
    settings: { search_context_size: 'web_search_options.search_context_size' },
  },
];

/** docs.x.ai: "Web search", "X search". */
export const xaiTools: readonly NativeTool[] = [
  {
    tool: 'web_search',
    format: 'responses',
    request: { tool: { type: 'web_search' } },
    settings: { allowed_domains: 'filters.allowed_domains', excluded_domains: 'filters.excluded_domains' },
    further: { x_search: { type: 'x_search' } },
  },
];

/** ai.google.dev: "Grounding with Google Search", "URL context". Functions next to them: from the third generation on. */
const GEMINI = {
  format: 'gemini',
  models: /gemini-([2-9]|flash|pro)/,
  besideFunctions: /gemini-[3-9]/,
  settings: {},
} as const;

export const geminiTools: readonly NativeTool[] = [
  { ...GEMINI, tool: 'web_search', request: { tool: { googleSearch: {} } } },
  { ...GEMINI, tool: 'web_fetch', request: { tool: { urlContext: {} } } },
];

/** docs.perplexity.ai: every model searches, without being asked. */
export const perplexityTools: readonly NativeTool[] = [
  {
    tool: 'web_search',
    format: 'chat',
    request: { members: {} },
    settings: {
      allowed_domains: 'search_domain_filter',
      search_context_size: 'web_search_options.search_context_size',
    },
  },
];
