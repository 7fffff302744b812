/** One run of the agent that ships with the gateway, in a real sandbox: only the model is scripted. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { bundleAgent } from '../../build/agent.ts';
import { systemClock } from '../../src/base/clock.ts';
import { agentProfiles } from '../../src/interns/index.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import type { Json } from '../workspaces/control.ts';
import { chatWith } from './chat.ts';
import { chargedFor, internsOf, rowsOf } from './interns.ts';

/** @param sandboxes the section of the yaml, for a folder of the test and the agent in it */
export async function sandboxedRun(t: TestContext, sandboxes: (folder: string, agent: string) => Promise<Json>) {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-agent-'));
  // The sandbox has a user of its own.
  chmodSync(folder, 0o755);
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await bundleAgent(path.join(folder, 'agent'));
  const agent = agentProfiles(systemClock, [], path.join(folder, 'agent')).get('gatehouse')!;
  const yaml = { sandboxes: await sandboxes(folder, path.join(folder, 'agent')) };
  const gateway = await startGateway(t, { ...{ providers: { text: { kind: 'chat' } }, agent }, yaml });
  const { made, reaches, shown, call } = internsOf(gateway);
  const { id } = await made({ name: 'real' });
  await call('PATCH', `/${id}`, { model: 'test/text' });
  await call('POST', `/${id}/provision`);
  await reaches(id, 'running').catch(async () => assert.fail(JSON.stringify(await shown(id))));
  const shell = { id: 'c1', name: 'shell', arguments: JSON.stringify({ command: 'env; cat /proc/*/environ; id -u' }) };
  gateway.upstream.script('text', [
    answerOf('chat', true, { calls: [shell], finish: 'tool_calls' }),
    answerOf('chat', true, { text: 'Done.', finish: 'stop' }),
  ]);
  const stream = await chatWith(gateway, id).prompt('Look around.');
  const { finish, usage } = await stream.ending();
  assert.equal(finish, 'stop');
  assert.equal(stream.text(), 'Done.');
  const { cost, ...tokens } = await chargedFor(gateway, id);
  assert.deepEqual(usage, { ...tokens, prompt_tokens_details: { cached_tokens: 0 }, cost: Number(cost) / 1e9 });
  assert.notEqual(usage.cost, 0);
  const requests = gateway.upstream.requests('text');
  assert.equal(requests.length, 2);
  const seen = requests[1]!.body.toString();
  assert.match(seen, /HTTPS_PROXY=/);
  assert.doesNotMatch(seen, /sk-svc-/);
  const [{ count }] = await rowsOf(
    gateway,
    'select count(*)::int as count from api_keys k join key_aliases a on a.key_id = k.id where k.intern_id = $1',
    [id],
  );
  assert.equal(count, 1);
  assert.equal((await call('POST', `/${id}/suspend`)).status, 200);
}
