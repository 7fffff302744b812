/**
 * Tokens of a prompt that its bytes do not cover: the template of the model, a default system prompt, and what an upstream
 * writes about tools and output formats. Roles and borders of messages are shorter than their JSON.
 */
import type { Endpoint } from '../catalog/index.ts';
import type { FormatId } from '../formats/conversation/conversation.ts';
import type { Asked } from '../formats/conversation/format.ts';

interface Overhead {
  plain: number;
  /** With tools or a format of the answer. */
  tools: number;
}

/**
 * Default system prompts of open models have at most some 200 tokens, and their instructions for tools some 300. Anthropic
 * documents up to 804 for tools (platform.claude.com, "Tool use system prompt token count"); Converse serves the same models.
 */
const BY_FORMAT: Readonly<Record<FormatId, Overhead>> = {
  chat: { plain: 256, tools: 512 },
  responses: { plain: 256, tools: 512 },
  messages: { plain: 256, tools: 1024 },
  converse: { plain: 256, tools: 1024 },
  gemini: { plain: 256, tools: 512 },
  cohere: { plain: 256, tools: 512 },
};
/** Models with a public tokenizer have public templates as well; the longest is that of gpt-oss. */
const COUNTED: Overhead = { plain: 128, tools: 512 };

/** By endpoint. */
const known = new WeakMap<Endpoint, Overhead>();

/** Of a prompt that is bounded by its bytes. */
export function promptOverhead(endpoint: Endpoint, asked: Asked): number {
  let overhead = known.get(endpoint);
  if (overhead === undefined) {
    overhead = overheadOf(endpoint);
    known.set(endpoint, overhead);
  }
  return of(overhead, asked);
}

/** Of a prompt whose tokens were counted. */
export function countedOverhead(asked: Asked): number {
  return of(COUNTED, asked);
}

function of({ plain, tools }: Overhead, { needs }: Asked): number {
  return needs === undefined || needs.features.length === 0 ? plain : tools;
}

/** Which of its formats an endpoint is sent depends on the request, so the largest counts. */
function overheadOf({ provider: { kind }, upstreamId, speaks }: Endpoint): Overhead {
  const formats = speaks ?? kind.speaksFor?.(upstreamId) ?? [kind.speaks ?? 'chat', ...(kind.alsoSpeaks ?? [])];
  const all = formats.map((format) => BY_FORMAT[format]);
  return {
    plain: Math.max(...all.map(({ plain }) => plain)),
    tools: Math.max(...all.map(({ tools }) => tools)),
  };
}
