/** `@openrouter/sdk`, unmodified: interns and their chat. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { thrownBy } from '../../src/testing/gateway/sdk.ts';
import { ScriptedAgent } from '../../src/testing/interns/scripted-agent.ts';
import { ScriptedSandboxes } from '../../src/testing/interns/scripted-sandboxes.ts';

const agent = new ScriptedAgent();
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    sandboxDrivers: new ScriptedSandboxes().choices,
    agent: agent.profile,
  },
);
const { interns } = new OpenRouter({
  apiKey: INFERENCE_KEY,
  serverURL: gateway.api,
  retryConfig: { strategy: 'none' },
});

type Chatted = Awaited<ReturnType<typeof interns.chat>>;

async function chunksOf({ result }: Chatted) {
  assert.ok(Symbol.asyncIterator in result);
  const chunks = [];
  for await (const chunk of result) chunks.push(chunk);
  return chunks;
}

test('an intern is created, started, talked to with a question, suspended and deleted', async () => {
  const made = await interns.createIntern({ createInternRequest: { name: 'sdk-intern', provision: true } });
  const internId = made.id;
  await until(async () => (await interns.getIntern({ internId })).status === 'running', 'it runs');
  const listed = await interns.listInterns({ status: ['running', 'failed'] });
  assert.deepEqual(
    listed.data.map(({ id }) => id),
    [internId],
  );

  const first = await interns.chat({
    internId,
    internChatCompletionRequest: { stream: true, approvalMode: 'manual', messages: [{ role: 'user', content: 'go' }] },
  });
  const turn = await agent.nextTurn();
  const answered = turn.ask({ kind: 'permission', operation: 'shell', options: ['allow_once', 'reject_once'] });
  const asked = await chunksOf(first);
  const [call] = asked.flatMap(({ choices }) => choices[0]?.delta.toolCalls ?? []);
  assert.equal(call!.function.name, 'openrouter.provide_input');
  const sessionId = asked.at(-1)!.sessionId!;

  const second = await interns.chat({
    internId,
    internChatCompletionRequest: {
      ...{ stream: true, sessionId },
      messages: [
        { role: 'assistant', toolCalls: [{ id: call!.id, function: call!.function }] },
        { role: 'tool', toolCallId: call!.id, content: 'allow_once' },
      ],
    },
  });
  assert.deepEqual(await answered, { action: 'option', option: 'allow_once' });
  turn.say('done');
  turn.complete({ promptTokens: 3, completionTokens: 2, cachedTokens: 0 });
  const rest = await chunksOf(second);
  assert.deepEqual(rest.at(-1)!.usage, {
    ...{ promptTokens: 3, completionTokens: 2, totalTokens: 5, promptTokensDetails: { cachedTokens: 0 } },
  });

  assert.equal((await interns.suspendIntern({ internId })).suspended, true);
  const refused = await thrownBy(() =>
    interns.chat({
      internId,
      internChatCompletionRequest: { stream: true, messages: [{ role: 'user', content: 'go' }] },
    }),
  );
  assert.equal(refused.statusCode, 409);
  await interns.updateIntern({ internId, updateInternRequest: { description: 'rests' } });
  assert.equal((await interns.provisionIntern({ internId })).provisioning, true);
  await until(async () => (await interns.getIntern({ internId })).status === 'running', 'it runs again');
  assert.equal((await interns.deleteIntern({ internId, deleteInternRequest: {} })).deleting, true);
  await until(async () => (await interns.listInterns()).data.length === 0, 'it is gone');
  const gone = await thrownBy(() => interns.getIntern({ internId }));
  assert.equal(gone.statusCode, 404);
});
