/**
 * The Claude Code CLI, unmodified, against upstreams of other formats: a task with tools in three rounds, whole and with what
 * goes wrong on the way. All upstreams in all scenarios are in `claude-code.scale.ts`.
 */
import { after, test } from 'node:test';
import { claudeCode, doTask, startScene } from './claude-code-scene.ts';

const gateway = await startScene({ after: (close) => after(close as () => Promise<void>) });

for (const [upstream, scenario] of [
  ['chat', 'cut'],
  ['gemini', '529'],
] as const) {
  test(
    `Claude Code finishes a task of three rounds | ${upstream} upstream, ${scenario}`,
    { skip: claudeCode.skip },
    (t) => doTask(t, gateway, upstream, scenario),
  );
}
