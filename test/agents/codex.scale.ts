/** The Codex CLI against every kind of upstream and every way in which one fails. */
import { test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { AGENT_UPSTREAMS } from './agent-answers.ts';
import { codex } from './codex.ts';
import { assertDone, PROVIDERS, runTask, SCENARIOS } from './codex-task.ts';

const program = await codex();

for (const format of AGENT_UPSTREAMS) {
  for (const scenario of SCENARIOS) {
    test(`Codex finishes a task with tools | ${format} upstream | ${scenario}`, { skip: program.skip }, async (t) => {
      const gateway = await startGateway(t, { providers: PROVIDERS });
      assertDone(await runTask(t, program, gateway, format, scenario));
    });
  }
}
