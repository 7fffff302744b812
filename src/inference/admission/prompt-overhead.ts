/**
 * Prompt tokens that the request's bytes do not cover: the model's template, a default system prompt, and the
 * upstream's instructions for tools and output formats. Roles and message separators are shorter than their JSON.
 */
import type { Endpoint } from '../../catalog/index.ts';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import type { RequestFacts } from '../../formats/conversation/format.ts';

interface Overhead {
  plain: number;
  /** With tools or an output format. */
  tools: number;
}

/**
 * Default system prompts of open models have up to about 200 tokens, and their tool instructions about 300. Anthropic
 * documents up to 804 for tools (platform.claude.com, "Tool use system prompt token count"); Converse serves the same
 * models.
 */
const BY_FORMAT: Readonly<Record<FormatId, Overhead>> = {
  chat: { plain: 256, tools: 512 },
  responses: { plain: 256, tools: 512 },
  messages: { plain: 256, tools: 1024 },
  converse: { plain: 256, tools: 1024 },
  gemini: { plain: 256, tools: 512 },
  cohere: { plain: 256, tools: 512 },
};
/** Models with a public tokenizer also have public templates; the longest is that of gpt-oss. */
const COUNTED: Overhead = { plain: 128, tools: 512 };

/** Cached by endpoint. */
const known = new WeakMap<Endpoint, Overhead>();

/** The overhead of a prompt that is bounded by its bytes. */
export function promptOverhead(endpoint: Endpoint, facts: RequestFacts): number {
  let overhead = known.get(endpoint);
  if (overhead === undefined) {
    overhead = overheadOf(endpoint);
    known.set(endpoint, overhead);
  }
  return of(overhead, facts);
}

/** The overhead of a prompt whose tokens were counted. */
export function countedOverhead(facts: RequestFacts): number {
  return of(COUNTED, facts);
}

function of({ plain, tools }: Overhead, { needs }: RequestFacts): number {
  return needs === undefined || needs.features.length === 0 ? plain : tools;
}

/** The request decides which of the endpoint's formats is used, so the largest overhead counts. */
function overheadOf({ provider: { kind }, upstreamId, speaks }: Endpoint): Overhead {
  const formats = speaks ?? kind.speaksFor?.(upstreamId) ?? [kind.speaks ?? 'chat', ...(kind.alsoSpeaks ?? [])];
  const all = formats.map((format) => BY_FORMAT[format]);
  return {
    plain: Math.max(...all.map(({ plain }) => plain)),
    tools: Math.max(...all.map(({ tools }) => tools)),
  };
}
