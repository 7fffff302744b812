/** A public agent as an intern, in a sandbox of this machine: only the model is scripted. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { agentProfiles } from '../../src/interns/index.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { npmProgram } from '../../src/testing/process/npm-program.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { chatWith } from './chat.ts';
import { internsOf } from './interns.ts';

const opencode = await npmProgram({ package: 'opencode-ai', version: '1.18.33', command: 'opencode' });

test('OpenCode runs in bubblewrap, and its model calls go through the gateway', { skip: opencode.skip }, async (t) => {
  const folder = path.join(path.dirname(opencode.path), '..', '..');
  // The sandbox has a user of its own.
  chmodSync(folder, 0o755);
  const installations = [{ name: 'opencode', program: 'opencode' as const, folder, command: [] }];
  const agent = agentProfiles(systemClock, installations, folder).get('opencode')!;
  const sandboxes = mkdtempSync(path.join(tmpdir(), 'gatehouse-opencode-'));
  chmodSync(sandboxes, 0o755);
  t.after(() => rmSync(sandboxes, { recursive: true, force: true }));
  const gateway = await startGateway(t, {
    providers: { text: { kind: 'chat' } },
    agent,
    yaml: { sandboxes: { folder: path.join(sandboxes, 'sandboxes') } },
  });
  const { made, reaches, shown, call } = internsOf(gateway);
  const { id } = await made({ name: 'coder' });
  await call('PATCH', `/${id}`, { model: 'test/text' });
  await call('POST', `/${id}/provision`);
  await reaches(id, 'running').catch(async () => assert.fail(JSON.stringify(await shown(id))));
  gateway.upstream.script('text', answerOf('chat', true, { text: 'Done.', finish: 'stop' }));
  const stream = await chatWith(gateway, id).prompt('Say that it is done.');
  assert.equal((await stream.ending()).finish, 'stop');
  assert.match(stream.text(), /Done\./);
  assert.doesNotMatch(
    gateway.upstream
      .requests('text')
      .map(({ body }) => body.toString())
      .join(),
    /sk-svc-/,
  );
});
