/**
 * Runs tests, several files in one process: `node test/run.ts [layer or pattern…]`, by default all layers.
 *
 * A process for every file would spend as much time on loading the gateway's 1,700 modules and on starting a PostgreSQL
 * as on tests. The files of a group share both; the longest groups start first, so that no core is idle at the end.
 */
import { globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { type EventData, run } from 'node:test';
import { spec } from 'node:test/reporters';
import { pathToFileURL } from 'node:url';
import { LAYERS, type Layer, layerOf } from './rules/layers.ts';

const ROOT = path.join(import.meta.dirname, '..');
const CACHE = path.join(ROOT, 'node_modules', '.cache', 'gatehouse-tests');
/** What each file took last time, in milliseconds. */
const DURATIONS = path.join(CACHE, 'durations.json');
/** The same of files that take 4 s and longer, for a clone that has run no test; from time to time a copy of the other. */
const LONG_FILES = path.join(import.meta.dirname, 'durations.json');
/** More than cores, because tests wait for processes and for PostgreSQL. */
const CONCURRENCY = Math.min(8, availableParallelism() + 2);
/** More would save little loading, and a file that ends its process takes its group along; gateways also add up. */
const MAX_FILES: Readonly<Record<Layer, number>> = { unit: 64, rules: 64, api: 24, wire: 24, process: 1 };
const MAX_GROUP_MS = 50_000;
/** What a file without a duration is taken to need. */
const MS_PER_BYTE = 0.15;

const files = filesOf(process.argv.slice(2));
if (files.length === 0) throw new Error(`no test file matches; layers are ${LAYERS.join(', ')}`);
// A file that is run alone, and `npm run test:exhaustive`, have more samples.
if (process.env['GATEHOUSE_TEST_EXHAUSTIVE'] !== '1') process.env['GATEHOUSE_TEST_QUICK'] ??= '1';
// Half of what a process spends on loading is compiling what the one before it has compiled.
process.env['NODE_COMPILE_CACHE'] ??= CACHE;
const entries = mkdtempSync(path.join(tmpdir(), 'gatehouse-test-entries-'));
process.on('exit', () => rmSync(entries, { recursive: true, force: true }));
const lastTook = { ...readDurations(LONG_FILES), ...readDurations(DURATIONS) };
const took = new Map<string, number>();

const tests = run({ files: groups().map(entryOf), concurrency: CONCURRENCY });
tests.on('test:summary', ({ file, success }) => {
  if (file === undefined && !success) process.exitCode = 1;
});
tests.on('test:pass', count);
tests.on('test:fail', count);
for await (const text of tests.compose(spec)) process.stdout.write(text as string);
writeDurations();

function filesOf(args: readonly string[]): string[] {
  const all = () => globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: ROOT });
  const layers = args.filter((arg) => LAYERS.includes(arg as Layer));
  const patterns = args.filter((arg) => !layers.includes(arg));
  const found = layers.length > 0 || args.length === 0 ? all() : [];
  const chosen = found.filter((file) => args.length === 0 || layers.includes(layerOf(file)));
  return [...new Set([...chosen, ...globSync(patterns, { cwd: ROOT })])].sort();
}

/** The files of each process, longest first. Neighbours in a layer stay together: they load the same modules. */
function groups(): string[][] {
  const closed: string[][] = [];
  for (const layer of LAYERS) {
    let open: string[] = [];
    for (const file of files.filter((each) => layerOf(each) === layer)) {
      if (open.length === MAX_FILES[layer] || expected([...open, file]) > MAX_GROUP_MS) {
        closed.push(open);
        open = [];
      }
      open.push(file);
    }
    closed.push(open);
  }
  return closed.filter((group) => group.length > 0).sort((a, b) => expected(b) - expected(a));
}

function expected(group: readonly string[]): number {
  return group.reduce((sum, file) => sum + (lastTook[file] ?? statSync(path.join(ROOT, file)).size * MS_PER_BYTE), 0);
}

function count({ file, nesting, details }: EventData.TestPass | EventData.TestFail): void {
  if (nesting !== 0 || file === undefined) return;
  const name = path.relative(ROOT, file).replaceAll(path.sep, '/');
  took.set(name, (took.get(name) ?? 0) + details.duration_ms);
}

function readDurations(file: string): Record<string, number> {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}

function writeDurations(): void {
  const measured = files.flatMap((file) => (took.has(file) ? [[file, Math.round(took.get(file) ?? 0)]] : []));
  mkdirSync(CACHE, { recursive: true });
  const temporary = `${DURATIONS}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify({ ...lastTook, ...Object.fromEntries(measured) }, null, 1));
  renameSync(temporary, DURATIONS);
}

/**
 * A module that loads all of a group, named after them for the case that their process dies. No test runs before every
 * file is loaded: the runner would take the end of the first file's tests for the end of all, and close what they share.
 */
function entryOf(group: string[], index: number): string {
  const name = `${index + 1}: ${group[0]}${group.length > 1 ? ` to ${group.at(-1)}` : ''}`.replaceAll('/', '∕');
  const entry = path.join(entries, `${name}.mjs`);
  const imports = group.map((file) => `  await import(${JSON.stringify(pathToFileURL(path.join(ROOT, file)).href)});`);
  const lines = [
    "import { before } from 'node:test';",
    'const loaded = Promise.withResolvers();',
    'before(() => loaded.promise);',
    'try {',
    ...imports,
    '  loaded.resolve();',
    // Without it the tests of the group would wait for ever.
    '} catch (error) {',
    '  loaded.reject(error);',
    '  throw error;',
    '}',
  ];
  writeFileSync(entry, lines.join('\n'));
  return entry;
}
