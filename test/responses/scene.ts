/** A gateway in front of upstreams of three formats, and OpenAI's SDK as its client. */
import { after } from 'node:test';
import OpenAI from 'openai';
import { type Gateway, type GatewayOptions, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Json } from '../../src/testing/gateway/sdk.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

export const UPSTREAMS = ['chat', 'messages', 'openai'] as const;
export type UpstreamName = (typeof UPSTREAMS)[number];

export function clientOf(gateway: Gateway, apiKey = INFERENCE_KEY): OpenAI {
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
}

export function replyOf(upstream: UpstreamName, stream: boolean, told: Told): Answer {
  return upstream === 'openai' ? responsesAnswer(stream, told) : answerOf(upstream, stream, told);
}

export async function startScene(options: GatewayOptions = {}) {
  const gateway = await startGateway(
    { after: (close) => after(close as () => Promise<void>) },
    {
      providers: { chat: { kind: 'openrouter' }, messages: { kind: 'messages' }, openai: { kind: 'openai' } },
      ...options,
    },
  );
  /** Sets the upstream's answers; yields a reader of the bodies that it got since. */
  const script = (upstream: UpstreamName, stream: boolean, ...turns: Told[]): (() => Json[]) => {
    const before = gateway.upstream.requests(upstream).length;
    gateway.upstream.script(
      upstream,
      turns.map((told) => replyOf(upstream, stream, told)),
    );
    return () =>
      gateway.upstream
        .requests(upstream)
        .slice(before)
        .map(({ json }) => json);
  };
  return { gateway, openai: clientOf(gateway), script };
}
