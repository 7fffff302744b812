import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { npmProgram } from '../../src/testing/process/npm-program.ts';

/** A package in a folder, which npm installs without a registry. */
function packageFolder(t: { after(run: () => void): void }, script: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-package-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(path.join(folder, 'bin'));
  writeFileSync(path.join(folder, 'bin', 'hello.js'), `#!/usr/bin/env node\n${script}`, { mode: 0o755 });
  const manifest = { name: 'hello-of-the-tests', version: '1.0.0', bin: { 'hello-of-the-tests': 'bin/hello.js' } };
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  return folder;
}

test('a program that npm cannot provide is skipped with the reason', async () => {
  const program = await npmProgram({ package: 'file:/nowhere', version: 'at-all', command: 'nothing' });
  assert.match(String(program.skip), /^npm cannot provide file:\/nowhere@at-all here: .*/);
});

test('a program gets its arguments and input, a home of its own, and nothing of the environment around the test', async (t) => {
  const script = `
    let input = '';
    process.stdin.on('data', (chunk) => { input += chunk; });
    process.stdin.on('end', () => {
      console.log(JSON.stringify({ args: process.argv.slice(2), input, env: Object.keys(process.env).sort(), home: process.env.HOME }));
      process.exitCode = 3;
    });`;
  const folder = packageFolder(t, script);
  const program = await npmProgram({
    package: 'hello-of-the-tests',
    version: `file:${folder}`,
    command: 'hello-of-the-tests',
  });
  t.after(() => rmSync(path.dirname(path.dirname(path.dirname(program.path))), { recursive: true, force: true }));
  assert.equal(program.skip, false);
  const run = await program.run(t, ['a', 'b'], { env: { GIVEN: '1' }, input: 'text' });
  assert.equal(run.code, 3, run.errors);
  const seen = JSON.parse(run.output) as { args: string[]; input: string; env: string[]; home: string };
  assert.deepEqual([seen.args, seen.input, seen.env], [['a', 'b'], 'text', ['GIVEN', 'HOME', 'PATH', 'TMPDIR']]);
  assert.ok(seen.home.startsWith(tmpdir()));
});
