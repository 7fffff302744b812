/**
 * Prompt tokens that the request's bytes do not cover: the model's template, a default system prompt, and the
 * upstream's instructions for tools and output formats. Roles and message separators are shorter than their JSON.
 */
import type { Endpoint } from '../../catalog/index.ts';
import type { PromptOverhead, RequestFacts } from '../../formats/conversation/format.ts';
import { spokenFormat } from '../../formats/index.ts';

/** Default system prompts of open models have up to about 200 tokens, and their tool instructions about 300. */
const USUAL: PromptOverhead = { plain: 256, tools: 512 };
/** Models with a public tokenizer also have public templates; the longest is that of gpt-oss. */
const COUNTED: PromptOverhead = { plain: 128, tools: 512 };

/** Cached by endpoint. */
const known = new WeakMap<Endpoint, PromptOverhead>();

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

function of({ plain, tools }: PromptOverhead, { needs }: RequestFacts): number {
  return needs === undefined || needs.features.length === 0 ? plain : tools;
}

/** The request decides which of the endpoint's formats is used, so the largest overhead counts. */
function overheadOf({ provider: { kind }, upstreamId, speaks }: Endpoint): PromptOverhead {
  const formats = speaks ?? kind.speaksFor?.(upstreamId) ?? [kind.speaks ?? 'chat', ...(kind.alsoSpeaks ?? [])];
  const all = formats.map((format) => spokenFormat(format).promptOverhead ?? USUAL);
  return {
    plain: Math.max(...all.map(({ plain }) => plain)),
    tools: Math.max(...all.map(({ tools }) => tools)),
  };
}
