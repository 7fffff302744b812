import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../testing/clock/clock.ts';
import { Progress } from './progress.ts';

function start(isTTY: boolean, columns = 80) {
  const clock = new TestClock();
  const written: string[] = [];
  const screen = { isTTY, columns, write: (text: string) => void written.push(text) };
  return { clock, progress: new Progress(screen, clock), written: () => written.join('') };
}

test('a terminal shows one line that is drawn again, no wider than the terminal, with the time that is left', async () => {
  const { clock, progress, written } = start(true, 60);
  progress.show('in_progress', 0, 8, '0/8');
  await clock.advance(10_000);
  progress.show('in_progress', 2, 8, '2/8');
  const lines = written().split('\r\u001b[2K').slice(1);
  assert.equal(lines.length, 2);
  assert.ok(
    lines.every((line) => line.length < 60 && !line.includes('\n')),
    written(),
  );
  assert.match(lines[1]!, /^in_progress \[#{8}\.{22}\] +25% 2\/8/);
  progress.say('done');
  assert.ok(written().endsWith('\ndone\n'));
  const wide = start(true, 200);
  wide.progress.show('x', 0, 8, '0/8');
  await wide.clock.advance(10_000);
  wide.progress.show('x', 2, 8, '2/8');
  assert.match(wide.written(), /2\/8, about 30 s left$/);
});

test('elsewhere there are plain lines: for each new state, at the end, and at most every ten seconds', async () => {
  const { clock, progress, written } = start(false);
  for (let done = 0; done < 8; done += 1) {
    progress.show('in_progress', done, 8, `${done}/8`);
    await clock.advance(3_000);
  }
  progress.show('in_progress', 8, 8, '8/8');
  progress.show('in_progress', 8, 8, '8/8');
  progress.show('completed', 8, 8, '8/8');
  progress.end();
  assert.deepEqual(written().split('\n'), [
    'in_progress 0% 0/8',
    'in_progress 50% 4/8',
    'in_progress 100% 8/8',
    'completed 100% 8/8',
    '',
  ]);
});
