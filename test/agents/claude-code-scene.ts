/** What the tests of the Claude Code CLI share: the program, a gateway in front of upstreams of every format, and one task. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { npmProgram } from '../../src/testing/process/npm-program.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { AGENT_UPSTREAMS, type AgentScenario, type AgentUpstream, agentAnswers } from './agent-scene.ts';

// biome-ignore lint/suspicious/noExplicitAny: events of the program
type Json = any;

/** Its install script puts the binary of this machine in place. */
export const claudeCode = await npmProgram({
  package: '@anthropic-ai/claude-code',
  version: '2.1.332',
  command: 'claude',
  scripts: true,
});

export function startScene(test: Pick<TestContext, 'after'>): Promise<Gateway> {
  const kinds = Object.fromEntries(AGENT_UPSTREAMS.map((kind) => [kind, { kind }]));
  // The program asks a small model for titles and the like.
  return startGateway(test, { providers: { ...kinds, small: {} } });
}

/** Lets the program do a task of three rounds of tools, and asserts that it did it, whatever came between. */
export async function doTask(
  t: TestContext,
  gateway: Gateway,
  upstream: AgentUpstream,
  scenario: AgentScenario,
): Promise<void> {
  const cwd = workFolder(t);
  const file = path.join(cwd, 'note.txt');
  const rounds: Told[] = [
    call('Write', { file_path: file, content: 'written by the agent\n' }),
    call('Bash', { command: 'wc -c note.txt', description: 'Count its bytes' }),
    call('Read', { file_path: file }),
    { text: 'The note has 21 bytes.' },
  ];
  const before = gateway.upstream.requests(upstream).length;
  gateway.upstream.script(upstream, agentAnswers(upstream, scenario, rounds));
  const { events, about } = await runClaude(t, gateway, upstream, 'Write note.txt, count its bytes and read it.', cwd);
  const result = events.findLast(({ type }) => type === 'result');
  assert.deepEqual(
    [result.subtype, result.is_error, result.result],
    ['success', false, 'The note has 21 bytes.'],
    about,
  );
  assert.ok(existsSync(file) && readFileSync(file, 'utf8') === 'written by the agent\n', about);
  const asked = gateway.upstream.requests(upstream).slice(before);
  assert.equal(asked.length, scenario === 'whole' ? 4 : 5, about);
  // The results of the tools are in the last request.
  const last = JSON.stringify(asked.at(-1)!.json);
  assert.match(last, /21 note\.txt/, about);
  assert.match(last, /written by the agent/, about);
}

/** Runs the program with one prompt; the events that it prints, and a summary of them for a failing test. */
export async function runClaude(
  t: TestContext,
  gateway: Gateway,
  upstream: AgentUpstream,
  prompt: string,
  cwd: string,
): Promise<{ events: Json[]; about: string }> {
  gateway.upstream.script('small', answerOf('chat', true, { text: 'A title' }));
  const options = ['--output-format', 'stream-json', '--verbose', '--allowedTools', 'Write,Bash,Read'];
  const run = await claudeCode.run(t, ['-p', prompt, ...options], {
    cwd,
    env: {
      ANTHROPIC_BASE_URL: `${gateway.url}/api`,
      ANTHROPIC_AUTH_TOKEN: INFERENCE_KEY,
      ANTHROPIC_MODEL: `test/${upstream}`,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: 'test/small',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      NO_PROXY: '127.0.0.1',
    },
  });
  const about = `${upstream}: ${run.errors.slice(-2_000)}${run.output.slice(-4_000)}`;
  assert.equal(run.code, 0, about);
  return {
    events: run.output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
    about,
  };
}

/** A fresh folder to work in. */
export function workFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-agent-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

let calls = 0;

/** A round in which the model calls a tool. */
export function call(name: string, input: object): Told {
  calls += 1;
  return { text: 'I do that now.', calls: [{ id: `toolu_${calls}`, name, arguments: JSON.stringify(input) }] };
}
