/** Interns and their runs against a model of their states; `model.scale.ts` plays more and longer histories. */
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
  const property = fc.asyncProperty(histories(20), (steps) => play({ gateway, agent, sandboxes }, steps));
  await fc.assert(property, { numRuns: 5, endOnFailure: true });
});
