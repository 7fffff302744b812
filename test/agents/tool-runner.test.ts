/**
 * `toolRunner` of `@anthropic-ai/sdk`, as it comes, against upstreams of every format: a task with tools in three rounds,
 * whole and with what goes wrong on the way.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Told } from '../../src/testing/upstream/answers.ts';
import { AGENT_SCENARIOS, AGENT_UPSTREAMS, type AgentUpstream, agentAnswers } from './agent-scene.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: Object.fromEntries(AGENT_UPSTREAMS.map((kind) => [kind, { kind }])) },
);
const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: INFERENCE_KEY, authToken: null });

const ROUNDS: Told[] = [
  { text: 'First I look.', calls: [{ id: 'toolu_1', name: 'look', arguments: '{"at":"one"}' }] },
  { text: 'Then again.', calls: [{ id: 'toolu_2', name: 'look', arguments: '{"at":"two"}' }] },
  { text: 'Once more.', calls: [{ id: 'toolu_3', name: 'look', arguments: '{"at":"three"}' }] },
  { text: 'I have seen it all.' },
];

/** A runner of the task, and what its tool was asked. */
function start(upstream: AgentUpstream, stream: boolean) {
  const looked: string[] = [];
  const look = betaTool({
    name: 'look',
    description: 'Look at something',
    inputSchema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
    run: ({ at }) => {
      looked.push(at);
      return `seen ${at}`;
    },
  });
  const runner = anthropic.beta.messages.toolRunner({
    model: `test/${upstream}`,
    max_tokens: 1_000,
    messages: [{ role: 'user', content: 'Look at one, two and three.' }],
    tools: [look],
    stream,
  });
  return { looked, runner };
}

for (const upstream of AGENT_UPSTREAMS) {
  for (const scenario of AGENT_SCENARIOS) {
    for (const stream of [false, true]) {
      if (scenario === 'cut' && stream) continue;
      const how = `${upstream} upstream, ${scenario}${stream ? ', streamed' : ''}`;
      test(`the tool runner finishes a task of three rounds | ${how}`, async () => {
        const before = gateway.upstream.requests(upstream).length;
        gateway.upstream.script(upstream, agentAnswers(upstream, scenario, ROUNDS, stream));
        const { looked, runner } = start(upstream, stream);
        const last = await runner.runUntilDone();
        assert.deepEqual(looked, ['one', 'two', 'three']);
        assert.deepEqual(
          last.content.map((block) => block.type === 'text' && block.text),
          ['I have seen it all.'],
        );
        const asked: Json[] = gateway.upstream.requests(upstream).slice(before);
        assert.equal(asked.length, scenario === 'whole' ? 4 : 5);
        // A thread brings what is new; where there is none, everything comes each time.
        for (const at of upstream === 'messages' ? ['three'] : looked)
          assert.ok(JSON.stringify(asked.at(-1).json).includes(`seen ${at}`), at);
      });
    }
  }

  test(`a stream that breaks off inside a call ends the run, and the half call is not run | ${upstream} upstream`, async () => {
    gateway.upstream.script(upstream, agentAnswers(upstream, 'cut', ROUNDS));
    const { looked, runner } = start(upstream, true);
    await assert.rejects(async () => {
      for await (const message of runner) await (message as { finalMessage(): Promise<unknown> }).finalMessage();
    }, Anthropic.APIError);
    assert.deepEqual(looked, ['one']);
  });
}
