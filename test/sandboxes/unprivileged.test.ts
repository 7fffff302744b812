/** The table of escapes again, as an ordinary user: other rights, no users for sandboxes, no control groups. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { accessSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { skip as noSandbox } from '../../src/testing/sandboxes/sandboxes.ts';

const USER = '27001';
const FILE = path.join(import.meta.dirname, 'escapes.test.ts');

/** Whether other users can read the sources and run Node. */
function isReadable(file: string): boolean {
  for (let each = file; each !== '/'; each = path.dirname(each)) {
    if ((statSync(each).mode & 0o001) === 0 && each !== file) return false;
  }
  accessSync(file);
  return true;
}

const skip =
  noSandbox ||
  (process.getuid?.() !== 0 && 'the tests run as an ordinary user already') ||
  (!(isReadable(FILE) && isReadable(process.execPath)) && 'other users cannot read the sources');

test('nothing escapes where the gateway is not root', { skip }, () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const user = ['--reuid', USER, '--regid', USER, '--clear-groups'];
  const { stdout, status } = spawnSync('setpriv', [...user, process.execPath, '--test', '--test-reporter=tap', FILE], {
    env: { ...env, HOME: '/', NODE_DISABLE_COMPILE_CACHE: '1' },
    encoding: 'utf8',
    cwd: '/',
  });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /# skipped 0/);
});
