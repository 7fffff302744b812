/** A task of three rounds that Codex does through the gateway: look something up (MCP), run a command, report the outcome. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type Gateway, INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import type { NpmProgram } from '../../src/testing/process/npm-program.ts';
import type { Told } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { AGENT_UPSTREAMS, type AgentUpstream, agentAnswer, brokenAnswer } from './agent-answers.ts';
import { type CodexRun, runCodex } from './codex.ts';

export const SCENARIOS = ['whole', 'cut', '429', '529'] as const;
export type Scenario = (typeof SCENARIOS)[number];

/** The endpoint that is asked second. */
const DEAR = { prompt: '0.03', completion: '0.15' };

/** One provider of each format with the model `test/<format>`, and a second endpoint `<format>-other` of the same model. */
export const PROVIDERS = Object.fromEntries(
  AGENT_UPSTREAMS.flatMap((format) => [
    [format, { kind: format, model: { id: `test/${format}` } }],
    [`${format}-other`, { kind: format, model: { id: `test/${format}`, pricing: DEAR } }],
  ]),
);

export function lookup(format: AgentUpstream, id = 'call_lookup'): Told {
  const written = '{"key":"answer"}';
  // An upstream with namespaces answers with one; another knows the tool by the joined name.
  const named = format === 'responses' ? { name: 'lookup', namespace: 'mcp__notes' } : { name: 'mcp__notes__lookup' };
  return { calls: [{ id, arguments: written, ...named }] };
}

export const command: Told = {
  calls: [{ id: 'call_command', name: 'exec_command', arguments: '{"cmd":"echo value-$((40+2))"}' }],
};
export const outcome: Told = { text: 'The value is 42.' };

function refusal(status: number): Answer {
  const type = status === 429 ? 'rate_limit_error' : 'overloaded_error';
  return {
    status,
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify({ type: 'error', error: { type, message: 'try later', code: status } })],
  };
}

export function answersOf(format: AgentUpstream, scenario: Scenario): { first: Answer[]; other: Answer[] } {
  const [one, two, three] = [lookup(format), command, outcome].map((told) => agentAnswer(format, told)) as [
    Answer,
    Answer,
    Answer,
  ];
  if (scenario === 'whole') return { first: [one, two, three], other: [] };
  // Gemini sends calls whole: the client has this one when the connection breaks, and continues after it.
  if (scenario === 'cut')
    return {
      first: [one, brokenAnswer(format, command), two, three],
      other: format === 'gemini' ? [three] : [two, three],
    };
  const refused = { ...refusal(Number(scenario)), repeat: true };
  return { first: [one, refused], other: [two, three] };
}

export async function runTask(
  t: TestContext,
  program: NpmProgram,
  gateway: Gateway,
  format: AgentUpstream,
  scenario: Scenario,
): Promise<CodexRun> {
  const { first, other } = answersOf(format, scenario);
  gateway.upstream.script(format, first);
  gateway.upstream.script(`${format}-other`, other);
  return runCodex(t, program, {
    baseUrl: gateway.api,
    key: INFERENCE_KEY,
    model: `test/${format}`,
    prompt: 'Look up the answer, print it, and tell me.',
  });
}

/** Each tool ran once, with its whole arguments, and the outcome was reported. */
export function assertDone(run: CodexRun): void {
  const told = `${run.errors}\n${run.output}`;
  assert.equal(run.code, 0, told);
  const tools = run.items.filter(({ type }) => type === 'mcp_tool_call' || type === 'command_execution');
  assert.deepEqual(
    tools.map(({ type, status }) => [type, status]),
    [
      ['mcp_tool_call', 'completed'],
      ['command_execution', 'completed'],
    ],
    told,
  );
  const [mcp, shell] = tools;
  assert.deepEqual([mcp?.['server'], mcp?.['tool'], mcp?.['arguments']], ['notes', 'lookup', { key: 'answer' }]);
  assert.match(String(shell?.['aggregated_output']), /value-42/);
  assert.equal(run.items.at(-1)?.['text'], 'The value is 42.', told);
}
