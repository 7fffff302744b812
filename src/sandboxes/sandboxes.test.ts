import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { systemClock } from '../base/clock.ts';
import { DEFAULT_SANDBOXES, type SandboxesSettings } from '../base/config.ts';
import { silentLog } from '../base/log.ts';
import type { Blobs } from '../blobs/index.ts';
import type { EgressProxy } from '../egress-proxy/index.ts';
import { settle, TestClock } from '../testing/clock/clock.ts';
import type { DriverExecution, SandboxDriver } from './driver.ts';
import type { DriverChoice } from './drivers.ts';
import { type Ending, run, Sandboxes, type SandboxOptions } from './index.ts';

const OPTIONS: SandboxOptions = { id: 'box-1', owner: 'test' };

function parts(settings: Partial<SandboxesSettings> = {}, clock = systemClock) {
  return {
    settings: { ...DEFAULT_SANDBOXES, ...settings },
    ...{
      dataDir: '/nowhere',
      extraCa: null,
      egressProxy: {} as EgressProxy,
      clock,
      log: silentLog,
      blobs: {} as Blobs,
    },
  };
}

/** A driver whose commands do what the test says. */
function scripted(isolation: string | null = 'a test') {
  const commands: { execution: DriverExecution; out: PassThrough }[] = [];
  const driver: SandboxDriver = {
    examine: async () => ({
      driver: 'scripted',
      isolation,
      problems: isolation === null ? [{ message: 'bwrap is missing', remedy: 'install it' }] : [],
    }),
    create: async () => ({
      exec: async () => {
        const ended = Promise.withResolvers<Ending>();
        const [stdin, out, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
        const finish = (ending: Ending) => {
          ended.resolve(ending);
          out.end();
          stderr.end();
        };
        const execution: DriverExecution = {
          ...{ stdin, stdout: out, stderr, ended: ended.promise },
          signal: (name) => finish({ code: 128 + constants.signals[name], reason: 'exit' }),
          end: (reason) => finish({ code: null, reason }),
        };
        commands.push({ execution, out });
        return execution;
      },
      stop: async () => {
        for (const { execution } of commands) execution.end('stopped');
      },
    }),
    list: async () => [{ id: 'box-1', owner: 'test', running: false }],
    remove: async () => {},
    sweep: async () => 0,
  };
  const choice: DriverChoice = { name: 'scripted', automatic: true, load: async () => driver };
  return { choices: [choice], commands, driver };
}

test('what dead gateways have left is ended from time to time, more often while others have sandboxes', async () => {
  const clock = new TestClock();
  const { choices, driver } = scripted();
  const swept: number[] = [];
  let others = [{ id: 'box-2', owner: 'container', running: true }];
  driver.sweep = async () => swept.push(clock.monotonic());
  driver.list = async () => others;
  const removed: string[] = [];
  driver.remove = async (id) => void removed.push(id);
  const sandboxes = new Sandboxes(parts({}, clock), choices);
  await sandboxes.sweep((owner) => owner === 'container');
  const passes = async (ms: number) => {
    clock.advance(ms);
    await settle();
    return swept.length;
  };
  assert.equal(await passes(59_000), 1);
  // It has died, and what it worked for is over.
  others = [{ id: 'box-2', owner: 'container', running: false }];
  assert.equal(await passes(1_000), 2);
  assert.deepEqual(removed, ['box-2']);
  assert.equal(await passes(599_000), 2);
  assert.equal(await passes(1_000), 3);
  assert.deepEqual(removed, ['box-2'], 'later, a sandbox that does not run may be one of this process that starts');
  await sandboxes.close();
  assert.equal(await passes(600_000), 3);
});

test('without a driver that isolates, every operation is refused and says what to install', async () => {
  const off = new Sandboxes(parts({ driver: 'none' }));
  await assert.rejects(off.create(OPTIONS), { status: 503, message: /sandboxes\.driver is none \(set it to auto/ });
  await assert.rejects(off.destroy('box-1'), { status: 503 });
  assert.deepEqual(await off.list(), []);
  const missing = new Sandboxes(parts(), scripted(null).choices);
  await assert.rejects(missing.create(OPTIONS), { status: 503, message: /bwrap is missing \(install it\)/ });
  assert.deepEqual(await missing.examine(), {
    ...{ driver: 'none', isolation: null, mayChange: false },
    problems: [{ message: 'bwrap is missing', remedy: 'install it' }],
  });
});

for (const [wrong, path] of [
  [{ id: '../x' }, /^id must/],
  [{ id: 'A' }, /^id must/],
  [{ owner: '' }, /^owner must/],
  [{ environment: { 'A-B': '' } }, /^environment\.\* must/],
  [{ environment: { LD_PRELOAD: '/x' } }, /^environment\.LD_PRELOAD is set by the sandbox/],
  [{ environment: { A: 'a\0b' } }, /^environment\.A must not/],
  [{ limits: { memoryBytes: 2 ** 50 } }, /^limits\.memoryBytes must/],
  [{ limits: { processes: Number.NaN } }, /^limits\.processes must/],
  [{ programs: [{ name: '../etc', path: '/x' }] }, /^programs\[0\]\.name must/],
  [{ programs: [{ name: 'a', path: 'x' }] }, /^programs\[0\]\.path must/],
] as const) {
  test(`a sandbox with ${JSON.stringify(wrong)} is refused with the field's path`, async () => {
    const sandboxes = new Sandboxes(parts(), scripted().choices);
    await assert.rejects(sandboxes.create({ ...OPTIONS, ...wrong }), { status: 400, message: path });
  });
}

test('a sandbox runs once, and not more of them than the settings allow', async () => {
  const sandboxes = new Sandboxes(parts({ running: 1 }), scripted().choices);
  const sandbox = await sandboxes.create(OPTIONS);
  await assert.rejects(sandboxes.create(OPTIONS), { status: 409 });
  await assert.rejects(sandboxes.create({ ...OPTIONS, id: 'two' }), { status: 503, message: /runs 1 sandboxes/ });
  assert.equal(sandboxes.running('box-1'), sandbox);
  await sandbox.stop();
  await assert.rejects(sandbox.exec({ argv: ['true'] }), { status: 409 });
  assert.equal(sandboxes.running('box-1'), undefined);
  await sandboxes.create({ ...OPTIONS, id: 'two' });
  await sandboxes.close();
  await assert.rejects(sandboxes.create(OPTIONS), { status: 503 });
});

test('a command ends at its limit of output, which arrives up to there', async () => {
  const { choices, commands } = scripted();
  const sandbox = await new Sandboxes(parts(), choices).create(OPTIONS);
  const finished = run(sandbox, { argv: ['x'], outputBytes: 5 });
  await assert.rejects(sandbox.exec({ argv: ['a', 'b\0'] }), { message: /^argv\[1\] must not/ });
  commands[0]!.out.write('abc');
  commands[0]!.out.write('defg');
  const { stdout, ending } = await finished;
  assert.deepEqual([stdout.toString(), ending.reason], ['abcde', 'output']);
});

test('a command ends after its time, which may be longer than usual or unlimited', async () => {
  const clock = new TestClock();
  const { choices } = scripted();
  const sandbox = await new Sandboxes(parts({ commandMs: 1000 }, clock), choices).create(OPTIONS);
  const usual = await sandbox.exec({ argv: ['x'] });
  const longer = await sandbox.exec({ argv: ['x'], timeoutMs: 5000 });
  const unlimited = await sandbox.exec({ argv: ['x'], timeoutMs: null });
  clock.advance(1000);
  assert.equal((await usual.ended).reason, 'time');
  clock.advance(4000);
  assert.equal((await longer.ended).reason, 'time');
  unlimited.signal('SIGTERM');
  assert.deepEqual(await unlimited.ended, { code: 143, reason: 'exit' });
});
