/**
 * Public agents mend a failing test in a small repository, as interns in a sandbox of this machine: one permission is asked and allowed,
 * one question answered where the agent can ask, and the intern is suspended and resumed in the middle. Only the model is scripted.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { agentProfiles } from '../../src/interns/index.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { type NpmProgram, npmProgram } from '../../src/testing/process/npm-program.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import type { Json } from '../workspaces/control.ts';
import { type ChatStream, chatWith } from './chat.ts';
import { chargedFor, internsOf } from './interns.ts';
import { ScriptedModel, type Step } from './scripted-model.ts';

const REPOSITORY = `cat > sum.mjs <<'X'
export const sum = (a, b) => a - b;
X
cat > check.mjs <<'X'
import assert from 'node:assert';
import { sum } from './sum.mjs';
assert.equal(sum(2, 2), 4);
console.log('all tests pass');
X
node check.mjs`;

/** Some take long to start. */
const PATIENCE_MS = 120_000;

interface PublicAgent {
  installed: NpmProgram;
  /** Whether its questions reach the caller. */
  asks: boolean;
}

const program = (name: string, version: string, command: string) => npmProgram({ package: name, version, command });

const AGENTS: Record<'opencode' | 'claude' | 'qwen' | 'codex', PublicAgent> = {
  opencode: { installed: await program('opencode-ai', '1.18.33', 'opencode'), asks: false },
  claude: {
    installed: await program('@agentclientprotocol/claude-agent-acp', '0.101.0', 'claude-agent-acp'),
    asks: true,
  },
  qwen: { installed: await program('@qwen-code/qwen-code', '0.24.4', 'qwen'), asks: false },
  codex: {
    installed: await program('@agentclientprotocol/codex-acp', '2.6.0', 'codex-acp'),
    asks: false,
  },
};

for (const [name, agent] of Object.entries(AGENTS)) {
  test(
    `${name} mends a failing test, with a suspend and a resume in the middle`,
    {
      skip: skip || agent.installed.skip,
    },
    (t) => task(t, name as keyof typeof AGENTS, agent),
  );
}

async function task(t: TestContext, name: keyof typeof AGENTS, { installed, asks }: PublicAgent) {
  const model = new ScriptedModel();
  t.after(() => model.stop());
  const folder = path.join(path.dirname(installed.path), '..', '..');
  const sandboxes = mkdtempSync(path.join(tmpdir(), 'gatehouse-task-'));
  // The sandbox has a user of its own.
  for (const shared of [folder, sandboxes]) chmodSync(shared, 0o755);
  t.after(() => rmSync(sandboxes, { recursive: true, force: true }));
  const agent = agentProfiles(systemClock, [{ name, program: name, folder, command: [] }], folder).get(name)!;
  const gateway = await startGateway(t, {
    ...{ providers: { text: { base_url: await model.start() } }, agent },
    yaml: { sandboxes: { folder: path.join(sandboxes, 'sandboxes') } },
  });
  const { made, reaches, call, shown } = internsOf(gateway);
  const { id } = await made({ name: 'mender', instructions: 'Mend what fails.' });
  await call('PATCH', `/${id}`, { model: 'test/text' });
  const starts = async () => {
    await call('POST', `/${id}/provision`);
    await reaches(id, 'running', PATIENCE_MS).catch(async () => assert.fail(JSON.stringify(await shown(id))));
  };
  await starts();
  const { prompt, answer } = chatWith(gateway, id);
  let costs = 0;
  const asked: Json[] = [];
  /** Reads a response to its end, and allows and answers what is asked. */
  const finished = async (stream: ChatStream): Promise<{ session: string; text: string }> => {
    const { finish, error, call: question, session, usage } = await stream.ending(PATIENCE_MS);
    if (finish === 'tool_calls') {
      const about = JSON.parse(question.function.arguments);
      asked.push(about);
      const after = await finished(await answer(question, session, answerTo(about)));
      return { session, text: stream.text() + after.text };
    }
    assert.equal(finish, 'stop', JSON.stringify(error));
    costs += usage.cost;
    return { session, text: stream.text() };
  };

  const steps: Step[] = [
    ({ shell }) => shell(REPOSITORY, true),
    () => ({ text: 'The sum is wrong; I will mend the code.' }),
  ];
  if (asks) steps.splice(1, 0, ({ ask }) => ask!('Mend the code or the test?', ['code', 'test']));
  model.turns = [...steps];
  const first = await finished(await prompt('See why the test fails.', { approval_mode: 'manual' }));
  assert.match(first.text, /I will mend the code/);
  assert.ok(
    JSON.stringify(model.requests).includes('AssertionError'),
    JSON.stringify(model.requests.at(-1)?.messages.slice(-3)),
  );
  const kinds = asked.map(({ kind }) => kind);
  assert.deepEqual(kinds, ['permission', ...(asks ? ['elicitation'] : [])], JSON.stringify(asked));

  assert.equal((await call('POST', `/${id}/suspend`)).status, 200);
  await starts();

  model.turns = [
    ({ shell }) => shell("sed -i 's/a - b/a + b/' sum.mjs && node check.mjs"),
    () => ({ text: 'Mended.' }),
  ];
  const second = await finished(await prompt('Go on.', { session_id: first.session }));
  assert.match(second.text, /Mended\./);
  assert.equal(asked.length, kinds.length, 'self-drive asks for nothing');
  // It remembers what was said before, and its workspace is as it was.
  const last = JSON.stringify(model.requests.at(-1));
  assert.match(last, /I will mend the code/);
  assert.match(last, /all tests pass/);
  const workspace = path.join(sandboxes, 'sandboxes', `i${id.replaceAll('-', '')}`, 'workspace');
  assert.match(readFileSync(path.join(workspace, 'sum.mjs'), 'utf8'), /a \+ b/);
  const { cost } = await chargedFor(gateway, id);
  t.diagnostic(
    `${name} asked ${JSON.stringify(kinds)}; its runs cost ${costs}, of ${Number(cost) / 1e9} in the ledger`,
  );
  assert.ok(costs > 0 && costs <= Number(cost) / 1e9 + 1e-9);
}

function answerTo({ kind, fields }: Json): string {
  if (kind === 'permission') return 'allow_once';
  const content = Object.fromEntries(fields.map(({ name, options }: Json) => [name, options?.[0] ?? 'code']));
  return JSON.stringify({ action: 'accept', content });
}
