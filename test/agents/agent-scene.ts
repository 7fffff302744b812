/**
 * A coding agent at work: upstreams of every format that make it write a file, list it in a shell and read it, round by
 * round, with failures between. Shares no code with `src/formats`.
 */
import { answerOf, type Told, wholeOf } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

export const AGENT_UPSTREAMS = ['chat', 'messages', 'responses', 'gemini'] as const;
export type AgentUpstream = (typeof AGENT_UPSTREAMS)[number];

/** `cut`: the second answer breaks off in the middle of its call; `429` and `529`: the second request is refused once. */
export const AGENT_SCENARIOS = ['whole', 'cut', '429', '529'] as const;
export type AgentScenario = (typeof AGENT_SCENARIOS)[number];

/** A streamed answer, or a whole one. */
export function toldBy(upstream: AgentUpstream, told: Told, stream = true): Answer {
  if (upstream === 'gemini') return geminiAnswer(told, stream);
  return upstream === 'responses' ? responsesAnswer(stream, told) : answerOf(upstream, stream, told);
}

function geminiAnswer({ text, calls = [] }: Told, stream: boolean): Answer {
  const parts = [
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map(({ name, arguments: args }) => ({ functionCall: { name, args: JSON.parse(args) } })),
  ];
  const chunk = (list: readonly object[], finishReason?: string) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: list }, ...(finishReason && { finishReason }) }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  });
  if (!stream) return wholeOf(chunk(parts, 'STOP'));
  const events = [...parts.map((part) => chunk([part])), chunk([], 'STOP')];
  return {
    headers: { 'content-type': 'text/event-stream' },
    chunks: events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`),
  };
}

/** The answers of an upstream to the rounds of one task. */
export function agentAnswers(
  upstream: AgentUpstream,
  scenario: AgentScenario,
  rounds: readonly Told[],
  stream = true,
): Answer[] {
  const answers = rounds.map((told) => toldBy(upstream, told, stream));
  const second = answers[1]!;
  if (scenario === 'cut') answers.splice(1, 0, cutInside(second));
  else if (scenario !== 'whole') answers.splice(1, 0, refusal(upstream, Number(scenario)));
  return answers;
}

/** Something of the answer is there, its end is not. */
function cutInside(answer: Answer): Answer {
  const length = (answer.chunks as string[]).join('').length;
  return { ...answer, truncateAt: Math.floor(length * 0.6), end: 'reset' };
}

function refusal(upstream: AgentUpstream, status: number): Answer {
  const message = status === 429 ? 'Rate limit reached' : 'Overloaded';
  const type = status === 429 ? 'rate_limit_error' : 'overloaded_error';
  const error =
    upstream === 'gemini'
      ? { code: status, message, status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'UNAVAILABLE' }
      : { type, message, code: type };
  return wholeOf(upstream === 'messages' ? { type: 'error', error } : { error }, {
    status,
    headers: { 'content-type': 'application/json', ...(status === 429 && { 'retry-after': '1' }) },
  });
}
