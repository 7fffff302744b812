/** On folders that look like the kernel's: what the machine of the tests has is tried in `test/sandboxes`. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { findGroups } from './groups.ts';

const LIMITS = { memoryBytes: 1000, processes: 7, cpus: 1.5, diskBytes: 1, files: 1 };

function tree(t: TestContext, files: Record<string, string>) {
  const root = mkdtempSync(path.join(tmpdir(), 'groups-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), text.replaceAll('ROOT', root));
  }
  return { root, read: (name: string) => readFileSync(path.join(root, name), 'utf8') };
}

const SANDBOXES = 'service/gatehouse-sandboxes';

function versionTwo(own = '0::/service\n', controllers = 'cpu memory pids'): Record<string, string> {
  return {
    'proc/mountinfo': '30 25 0:26 / ROOT rw,nosuid - cgroup2 cgroup2 rw\n',
    'proc/cgroup': own,
    'service/cgroup.controllers': controllers,
    'service/cgroup.subtree_control': controllers,
    [`${SANDBOXES}/cgroup.subtree_control`]: controllers,
    ...Object.fromEntries(
      ['memory.max', 'memory.swap.max', 'memory.oom.group', 'pids.max', 'cpu.max', 'memory.events'].map((name) => [
        `${SANDBOXES}/box/${name}`,
        '',
      ]),
    ),
  };
}

test('version 2 gets limits in a part of the own group', (t) => {
  const { root, read } = tree(t, versionTwo());
  const groups = findGroups(systemClock, path.join(root, 'proc'));
  assert.equal(groups?.kind, 'cgroup v2');
  const group = groups.make('box', LIMITS);
  const values = ['memory.max', 'memory.swap.max', 'pids.max', 'cpu.max'].map((name) =>
    read(`${SANDBOXES}/box/${name}`),
  );
  assert.deepEqual(values, ['1000', '0', '7', '150000 100000']);
  assert.deepEqual(group.joinFiles, [path.join(root, SANDBOXES, 'box', 'cgroup.procs')]);
  writeFileSync(path.join(root, SANDBOXES, 'box', 'memory.events'), 'low 0\noom 3\noom_kill 2\n');
  assert.equal(group.memoryKills(), 2);
});

test('a process that was moved into its own part finds the group above', (t) => {
  const { root } = tree(t, versionTwo('0::/service/gatehouse\n'));
  const group = findGroups(systemClock, path.join(root, 'proc'))?.make('box', LIMITS);
  assert.deepEqual(group?.joinFiles, [path.join(root, SANDBOXES, 'box', 'cgroup.procs')]);
});

test('without the controllers of memory and processes there are no groups', (t) => {
  const { root } = tree(t, versionTwo('0::/service\n', 'cpu hugetlb'));
  assert.equal(findGroups(systemClock, path.join(root, 'proc')), null);
  assert.equal(findGroups(systemClock, path.join(root, 'nowhere')), null);
});

test('a limit of memory that cannot be set fails, others may be missing', (t) => {
  const { [`${SANDBOXES}/box/cpu.max`]: _, ...withoutCpu } = versionTwo();
  const one = tree(t, withoutCpu);
  assert.ok(findGroups(systemClock, path.join(one.root, 'proc'))?.make('box', LIMITS));
  const { [`${SANDBOXES}/box/memory.max`]: __, ...withoutMemory } = versionTwo();
  const other = tree(t, withoutMemory);
  assert.throws(() => findGroups(systemClock, path.join(other.root, 'proc'))?.make('box', LIMITS), /memory\.max/);
});
