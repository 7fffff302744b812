/** Streamed responses of services in four formats to an agent: a text or one tool call, complete or broken off. */
import { answerOf, streamOf, type Told } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

export const AGENT_UPSTREAMS = ['chat', 'messages', 'responses', 'gemini'] as const;
export type AgentUpstream = (typeof AGENT_UPSTREAMS)[number];

export function agentAnswer(format: AgentUpstream, told: Told): Answer {
  if (format === 'gemini') return geminiAnswer(told);
  return format === 'responses' ? responsesAnswer(true, told) : answerOf(format, true, told);
}

/** The connection breaks in the last call or text, before its end. */
export function brokenAnswer(format: AgentUpstream, told: Told): Answer {
  const { chunks = [] } = agentAnswer(format, told);
  const ends = { chat: 3, messages: 4, responses: 4, gemini: 1 }[format];
  return streamOf(chunks.slice(0, -ends), { end: 'reset' });
}

/** ai.google.dev/api/generate-content: text in pieces, calls whole. */
function geminiAnswer({ text = '', calls = [] }: Told): Answer {
  const pieces = text.match(/[\s\S]{1,3}/gu) ?? [];
  const parts: Record<string, unknown>[] = pieces.map((piece) => ({ text: piece }));
  for (const call of calls) {
    const functionCall = { id: call.id, name: call.name, args: JSON.parse(call.arguments) as unknown };
    parts.push({ functionCall, thoughtSignature: 'c2lnbmF0dXJl' });
  }
  const events: Record<string, unknown>[] = parts.map((part) => ({
    candidates: [{ content: { role: 'model', parts: [part] } }],
  }));
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
  events.push({
    candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP' }],
    usageMetadata,
  });
  return streamOf(events.map((event) => `data: ${JSON.stringify(event)}\n\n`));
}
