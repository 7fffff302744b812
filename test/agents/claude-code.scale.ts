/** The Claude Code CLI against upstreams of every format, in every scenario. The normal suite runs a few of these. */
import { after, test } from 'node:test';
import { AGENT_SCENARIOS, AGENT_UPSTREAMS } from './agent-scene.ts';
import { claudeCode, doTask, startScene } from './claude-code-scene.ts';

const gateway = await startScene({ after: (close) => after(close as () => Promise<void>) });

for (const upstream of AGENT_UPSTREAMS) {
  for (const scenario of AGENT_SCENARIOS) {
    test(
      `Claude Code finishes a task of three rounds | ${upstream} upstream, ${scenario}`,
      { skip: claudeCode.skip },
      (t) => doTask(t, gateway, upstream, scenario),
    );
  }
}
