/** Two hundred runs at once on one gateway process: each gets what its agent says, and the process stays small. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { type GatewayProcess, gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { type ChatStream, chatWith } from '../interns/chat.ts';
import { internsOf } from '../interns/interns.ts';
import { obedient, readText } from '../interns/obedient.ts';

const RUNS = 200;
/** Of an intern, at once. */
const SESSIONS = 16;
const PATIENCE_MS = 120_000;
const MOST_MORE_MB = 250;
const FLOOD_SECONDS = 30;

test('two hundred runs at once', { skip }, async (t) => {
  const home = await gatewayHome(t);
  const agents = obedient(t);
  const gateway = await startGatewayProcess(t, { home, yaml: agents.yaml });
  const { made, reaches } = internsOf(gateway);
  const ids: string[] = [];
  for (let number = 0; number < Math.ceil(RUNS / SESSIONS); number += 1) {
    const { id } = await made({ name: `many-${number}`, provision: true });
    await reaches(id, 'running');
    ids.push(id);
  }
  const chats = Array.from({ length: RUNS }, (_, run) => chatWith(gateway, ids[Math.floor(run / SESSIONS)]!));
  const before = residentMb(gateway);

  const text = Array.from({ length: 100 }, (_, line) => `line ${line} of a run that says something\n`).join('');
  const code = `for (let i = 0; i < 100; i++) { say('line ' + i + ' of a run that says something\\n'); await sleep(10); }
    while (!fs.existsSync('go')) await sleep(100);`;
  const streams: ChatStream[] = await Promise.all(chats.map((chat) => chat.prompt(code)));
  await until(() => streams.every((stream) => stream.text() === text), 'all have said everything', PATIENCE_MS);
  const during = residentMb(gateway);
  for (const id of ids) writeFileSync(path.join(agents.workspace(id), 'go'), '');
  for (const stream of streams) {
    await until(() => stream.isOver, 'it ends', PATIENCE_MS);
    assert.equal((await stream.ending()).finish, 'stop');
  }

  // Nobody reads what these say.
  const flood = "for (;;) { say('x'.repeat(10_000)); await sleep(20); }";
  const unread: AbortController[] = [];
  for (const { send } of chats) unread.push((await send({ messages: [{ role: 'user', content: flood }] })).abort);
  let most = 0;
  for (let second = 0; second < FLOOD_SECONDS; second += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    most = Math.max(most, residentMb(gateway));
  }
  for (const abort of unread) abort.abort();
  t.diagnostic(`resident: ${before} MB idle, ${during} MB with ${RUNS} runs, at most ${most} MB while all flood`);
  assert.ok(Math.max(during, most) - before < MOST_MORE_MB, `${before} -> ${during}, ${most} MB`);
});

function residentMb({ pid }: GatewayProcess): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readText(`/proc/${pid}/status`))?.[1]) / 1024);
}
