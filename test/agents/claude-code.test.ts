/**
 * The Claude Code CLI, unmodified, against upstreams of other formats: a task with tools in three rounds, whole and with what
 * goes wrong on the way. All upstreams in all scenarios are in `claude-code.scale.ts`.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { toldBy } from './agent-scene.ts';
import { call, claudeCode, doTask, runClaude, startScene, workFolder } from './claude-code-scene.ts';

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

test('Claude Code compacts its history when a provider of another format says that the prompt does not fit', {
  skip: claudeCode.skip,
}, async (t) => {
  const cwd = workFolder(t);
  const write = (name: string) => toldBy('chat', call('Write', { file_path: path.join(cwd, name), content: name }));
  const message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
  gateway.upstream.script('chat', [
    write('one.txt'),
    write('two.txt'),
    wholeOf({ error: { message, code: 'context_length_exceeded' } }, { status: 400 }),
    toldBy('chat', { text: '<summary>Two files are written.</summary>' }),
    toldBy('chat', { text: 'Both files are there.' }),
  ]);
  const { events, about } = await runClaude(t, gateway, 'chat', 'Write two files.', cwd);
  assert.ok(
    events.some(({ subtype }) => subtype === 'compact_boundary'),
    about,
  );
  assert.equal(events.findLast(({ type }) => type === 'result').result, 'Both files are there.', about);
});
