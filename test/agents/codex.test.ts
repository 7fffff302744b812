/** The Codex CLI as its users run it. Every kind of upstream and failure: `codex.scale.ts`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Told } from '../../src/testing/upstream/answers.ts';
import { agentAnswer } from './agent-answers.ts';
import { codex, runCodex } from './codex.ts';
import { assertDone, outcome, PROVIDERS, runTask } from './codex-task.ts';

const program = await codex();
const { skip } = program;

for (const [format, scenario] of [
  ['chat', 'cut'],
  ['messages', '529'],
  ['responses', 'whole'],
  ['gemini', '429'],
] as const) {
  test(`Codex finishes a task with tools | ${format} upstream | ${scenario}`, { skip }, async (t) => {
    const gateway = await startGateway(t, { providers: PROVIDERS });
    assertDone(await runTask(t, program, gateway, format, scenario));
  });
}

test('Codex retries a 429 of the only endpoint, also where the provider does not say when', { skip }, async (t) => {
  const gateway = await startGateway(t, { providers: { chat: { kind: 'chat' } } });
  const refused = { status: 429, chunks: ['{"error":{"message":"slow down"}}'] };
  gateway.upstream.script('chat', [refused, agentAnswer('chat', outcome)]);
  const run = await runCodex(t, program, {
    baseUrl: gateway.api,
    key: INFERENCE_KEY,
    model: 'test/chat',
    prompt: 'Tell me.',
  });
  assert.equal(run.code, 0, `${run.errors}\n${run.output}`);
  assert.equal(run.items.at(-1)?.['text'], outcome.text);
});

test('under the name of a model that Codex knows, it finds deferred tools and edits files on a chat upstream', {
  skip,
}, async (t) => {
  const gateway = await startGateway(t, {
    providers: { chat: { kind: 'chat', model: { id: 'openai/gpt-5.5' } } },
  });
  const call = (name: string, written: unknown): Told => ({
    calls: [{ id: `call_${name}`, name, arguments: JSON.stringify(written) }],
  });
  const patch = '*** Begin Patch\n*** Add File: hello.txt\n+"hello" \\ 世界\n*** End Patch';
  const turns = [
    call('tool_search', { query: 'look up the value of a key' }),
    call('mcp__notes__lookup', { key: 'answer' }),
    call('apply_patch', { input: patch }),
    outcome,
  ];
  gateway.upstream.script(
    'chat',
    turns.map((told) => agentAnswer('chat', told)),
  );
  const run = await runCodex(t, program, {
    baseUrl: gateway.api,
    key: INFERENCE_KEY,
    model: 'gpt-5.5',
    prompt: 'Look up the answer and write hello.txt.',
  });
  const told = `${run.errors}\n${run.output}`;
  assert.equal(run.code, 0, told);
  assert.deepEqual(
    run.items.filter(({ type }) => type !== 'error').map(({ type, status }) => [type, status]),
    [
      ['mcp_tool_call', 'completed'],
      ['file_change', 'completed'],
      ['agent_message', undefined],
    ],
    told,
  );
});
