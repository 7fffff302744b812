/**
 * Runs test files, several of them in one process: `node test/run.ts [pattern…]`, by default all there are.
 *
 * A process for every file would spend as much time on loading the gateway's 1,700 modules and on starting a PostgreSQL
 * as on tests. What concerns the process itself has one of its own, see `ALONE`.
 */
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { pathToFileURL } from 'node:url';

const ROOT = path.join(import.meta.dirname, '..');
const PATTERNS = ['src/**/*.test.ts', 'test/**/*.test.ts'];
const CONCURRENCY = 2;
/** More would save little, and leave a core without work at the end. */
const FILES_A_PROCESS = 12;
/** Reads or changes the environment or the memory of its process, or has hooks that would run around the tests of others. */
const ALONE = /\bprocess\.(?:env|memoryUsage|cpuUsage|on|once)\b|^(?:before|after)Each\(/m;

const patterns = process.argv.slice(2);
const files = globSync(patterns.length > 0 ? patterns : PATTERNS, { cwd: ROOT }).sort();
if (files.length === 0) throw new Error('no test file is named so');
// Half of what a process spends on loading is compiling what the one before it has compiled.
process.env['NODE_COMPILE_CACHE'] ??= path.join(ROOT, 'node_modules', '.cache', 'gatehouse-tests');
const entries = mkdtempSync(path.join(tmpdir(), 'gatehouse-test-entries-'));
process.on('exit', () => rmSync(entries, { recursive: true, force: true }));

const tests = run({ files: processes().map(entryOf), concurrency: CONCURRENCY });
tests.on('test:summary', ({ file, success }) => {
  if (file === undefined && !success) process.exitCode = 1;
});
for await (const text of tests.compose(spec)) process.stdout.write(text as string);

/** The files of each process. Neighbours stay together: they load the same modules. */
function processes(): string[][] {
  const alone = files.filter((file) => ALONE.test(readFileSync(path.join(ROOT, file), 'utf8')));
  const others = files.filter((file) => !alone.includes(file));
  const groups: string[][] = [];
  for (let at = 0; at < others.length; at += FILES_A_PROCESS) groups.push(others.slice(at, at + FILES_A_PROCESS));
  return [...alone.map((file) => [file]), ...groups];
}

/**
 * A module that loads all of a group, named after them for the case that their process dies. No test runs before every
 * file is loaded: the runner would take the end of the first file's tests for the end of all, and close what they share.
 */
function entryOf(group: string[], index: number): string {
  const name = `${index + 1}: ${group[0]}${group.length > 1 ? ` to ${group.at(-1)}` : ''}`.replaceAll('/', '∕');
  const entry = path.join(entries, `${name}.mjs`);
  const imports = group.map((file) => `await import(${JSON.stringify(pathToFileURL(path.join(ROOT, file)).href)});`);
  const lines = [
    "import { before } from 'node:test';",
    'const loaded = Promise.withResolvers();',
    'before(() => loaded.promise);',
    ...imports,
    'loaded.resolve();',
  ];
  writeFileSync(entry, lines.join('\n'));
  return entry;
}
