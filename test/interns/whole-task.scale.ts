/**
 * The agent that ships with the gateway mends a failing test in a small repository, in a sandbox of this machine: it asks for consent
 * and once for advice, and its intern is suspended and resumed in the middle. Only the model is scripted.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { bundleAgent } from '../../build/agent.ts';
import { systemClock } from '../../src/base/clock.ts';
import { agentProfiles } from '../../src/interns/index.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import type { Json } from '../workspaces/control.ts';
import { chatWith } from './chat.ts';
import { internsOf } from './interns.ts';

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

test('a task with a permission, a question, a suspend and a resume in the middle', { skip }, async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-task-'));
  // The sandbox has a user of its own.
  chmodSync(folder, 0o755);
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await bundleAgent(path.join(folder, 'agent'));
  const agent = agentProfiles(systemClock, [], path.join(folder, 'agent')).get('gatehouse')!;
  const gateway = await startGateway(t, {
    ...{ providers: { text: { kind: 'chat' } }, agent },
    yaml: { sandboxes: { folder: path.join(folder, 'sandboxes') } },
  });
  const { made, reaches, call } = internsOf(gateway);
  const { id } = await made({ name: 'mender', instructions: 'Mend what fails.' });
  await call('PATCH', `/${id}`, { model: 'test/text' });
  await call('POST', `/${id}/provision`);
  await reaches(id, 'running');
  const { prompt, answer } = chatWith(gateway, id);
  let calls = 0;
  const uses = (name: string, args: object) =>
    answerOf('chat', true, {
      calls: [{ id: `c${++calls}`, name, arguments: JSON.stringify(args) }],
      finish: 'tool_calls',
    });
  const says = (text: string) => answerOf('chat', true, { text, finish: 'stop' });
  const questionOf = (asked: Json) => JSON.parse(asked.function.arguments);

  gateway.upstream.script('text', [
    uses('shell', { command: REPOSITORY }),
    uses('ask', { question: 'Mend the code or the test?', choices: ['code', 'test'] }),
    says('The sum is wrong; I will mend the code.'),
  ]);
  const first = await prompt('See why the test fails.', { approval_mode: 'manual' });
  const permission = await first.ending();
  assert.deepEqual(questionOf(permission.call).operation, 'shell');
  const second = await answer(permission.call, permission.session, 'allow_once');
  const question = await second.ending();
  assert.deepEqual(questionOf(question.call).fields[0].options, ['code', 'test']);
  const accepted = JSON.stringify({ action: 'accept', content: { answer: 'code' } });
  const third = await answer(question.call, question.session, accepted);
  assert.equal((await third.ending()).finish, 'stop');
  assert.match(bodies(), /AssertionError/);
  assert.match(bodies(), /"code"/);

  assert.equal((await call('POST', `/${id}/suspend`)).status, 200);
  await call('POST', `/${id}/provision`);
  await reaches(id, 'running');

  gateway.upstream.script('text', [
    uses('edit_file', { path: 'sum.mjs', old_text: 'a - b', new_text: 'a + b' }),
    uses('shell', { command: 'node check.mjs' }),
    says('Mended.'),
  ]);
  const resumed = await prompt('Go on.', { session_id: question.session });
  const { finish, error } = await resumed.ending();
  assert.equal(finish, 'stop', JSON.stringify(error));
  assert.equal(resumed.text(), 'Mended.');
  // It remembers what was said before, and its workspace is as it was.
  const asked = gateway.upstream.requests('text').at(-1)!.body.toString();
  assert.match(asked, /I will mend the code/);
  assert.match(asked, /all tests pass/);
  const workspace = path.join(folder, 'sandboxes', `i${id.replaceAll('-', '')}`, 'workspace');
  assert.match(readFileSync(path.join(workspace, 'sum.mjs'), 'utf8'), /a \+ b/);

  function bodies(): string {
    return gateway.upstream
      .requests('text')
      .map(({ body }) => body.toString())
      .join('\n');
  }
});
