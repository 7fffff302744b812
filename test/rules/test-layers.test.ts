/** The layers that `test/run.ts` can run alone keep their promises. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layerOf } from './layers.ts';
import { type SourceFile, sourceFiles } from './source-files.ts';

const files = sourceFiles(['src', 'test']);
const byPath = new Map(files.map((file) => [file.path, file]));
const isTestCode = (file: string) => /^(?:test|src\/testing)\//.test(file) || /\.(?:test|scale)\.ts$/.test(file);
const tests = files.filter((file) => /\.(?:test|scale)\.ts$/.test(file.path));

/** Fails with every violation, one a line. */
function none(violations: string[]): void {
  assert.deepEqual(violations, [], `\n${violations.join('\n')}\n`);
}

/** Everything that a file and the test code that it uses load. Sources may open what a unit test does not ask them to. */
function loadedBy(file: SourceFile, seen = new Set<string>()): Set<string> {
  for (const { target, typeOnly } of file.imports) {
    if (typeOnly || seen.has(target)) continue;
    seen.add(target);
    const next = byPath.get(target);
    if (next && isTestCode(target)) loadedBy(next, seen);
  }
  return seen;
}

test('every test file is next to its source or in a folder of test/', () => {
  const flat = files.filter((file) => /^test\/[^/]+$/.test(file.path));
  assert.deepEqual(
    flat.map((file) => file.path),
    ['test/run.ts'],
  );
});

test('unit tests and rules use no database, no gateway, no process of it and no sockets', () => {
  const refused = /^(?:src\/testing\/(?:database|gateway|process)\/.*|pg|undici|node:(?:net|tls|https?|http2))$/;
  none(
    tests
      .filter((file) => ['unit', 'rules'].includes(layerOf(file.path)))
      .flatMap((file) =>
        [...loadedBy(file)].filter((each) => refused.test(each)).map((each) => `${file.path}: ${each}`),
      ),
  );
});

test('a test file that shares its process leaves nothing behind for the others', () => {
  // Hooks outside of a suite run around the tests of all files; memory counts what all of them use.
  const spoils =
    /^(?:before|after)Each\(|\bprocess\.(?:memoryUsage|on|once|exit|chdir)\b|^\S.*(?:delete |assign\()process\.env\b/m;
  const sharing = tests.filter((file) => file.path.endsWith('.test.ts') && layerOf(file.path) !== 'process');
  none(sharing.filter((file) => spoils.test(file.code)).map((file) => `${file.path}: ${spoils.exec(file.code)?.[0]}`));
});
