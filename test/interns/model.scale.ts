/** More and longer histories than `model.test.ts` plays. */
import { after, test } from 'node:test';
import fc from 'fast-check';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { ScriptedAgent } from '../../src/testing/interns/scripted-agent.ts';
import { ScriptedSandboxes } from '../../src/testing/interns/scripted-sandboxes.ts';
import { histories, play } from './model.ts';

const sandboxes = new ScriptedSandboxes();
const agent = new ScriptedAgent();
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { sandboxDrivers: sandboxes.choices, agent: agent.profile, jobs: 'now' },
);

test('whatever happens, an intern and its run are where the model says', async () => {
  const property = fc.asyncProperty(histories(60), (steps) => play({ gateway, agent, sandboxes }, steps));
  await fc.assert(property, { numRuns: 80 });
});
