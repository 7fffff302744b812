/** The repository explains itself: everything that documents, comments and tests refer to is part of it. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT } from './source-files.ts';

const FOLDERS = ['src', 'test', 'bench', 'build', 'bin', 'docs'];
/** This file and what only repeats the code. */
const EXCLUDED = new Set(['test/rules/citations.test.ts', 'openapi.json', 'package-lock.json']);

interface Text {
  /** Below the root, with `/`. */
  path: string;
  lines: string[];
}

const texts = listTexts();
const documents = texts.filter(({ path: file }) => file.endsWith('.md'));
const code = texts.filter(({ path: file }) => /\.(?:ts|js|mjs)$/.test(file));
const folders = new Set(texts.flatMap(({ path: file }) => parents(file)));

/** Every text of the project, without what installations and builds make. */
function listTexts(): Text[] {
  const below = FOLDERS.flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((entry) =>
      path.posix.join(folder, entry.replaceAll(path.sep, '/')),
    ),
  );
  const top = readdirSync(ROOT).filter((entry) => /\.(?:md|yaml|json)$|^Dockerfile$/.test(entry));
  return [...top, ...below]
    .filter((file) => !EXCLUDED.has(file) && !file.includes('node_modules'))
    .filter(
      (file) => /\.(?:ts|js|mjs|md|yaml|sql|c)$|^Dockerfile$/.test(file) && statSync(path.join(ROOT, file)).isFile(),
    )
    .map((file) => ({ path: file, lines: readFileSync(path.join(ROOT, file), 'utf8').split('\n') }));
}

function parents(file: string): string[] {
  const parts = file.split('/').slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
}

/** Fails with every violation, one a line. */
function none(violations: string[]): void {
  assert.deepEqual(violations, [], `\n${violations.join('\n')}\n`);
}

/** `pattern` in the given texts, as `file:line: found`, unless `accepts` the find. */
function findings(
  where: readonly Text[],
  pattern: RegExp,
  accepts: (found: RegExpMatchArray, file: string) => boolean = () => false,
): string[] {
  return where.flatMap(({ path: file, lines }) =>
    lines.flatMap((line, at) =>
      [...line.matchAll(pattern)]
        .filter((found) => !accepts(found, file))
        .map((found) => `${file}:${at + 1}: ${found[0]}`),
    ),
  );
}

test('no text refers to documents outside of the repository', () => {
  none([
    ...findings(texts, /\bwire\/[a-z-]+\.md|(?<![\w/-])(?:spec|design|faults|english)\.md\b/g),
    ...findings(texts, /\b[Pp]romises? \d+\b|\b[Ff]aults? [A-Z]\d+\b/g),
    // Recorded traffic belongs to its sources; docs/guides/testing.md says where the tests look for it.
    ...findings(texts, /(?:\.\.\/)+shared\/(?!corpus\b)[\w./-]*/g),
  ]);
});

test('every relative link of a document leads to a file and a heading', () => {
  none(
    documents.flatMap((document) =>
      links(document).flatMap(({ line, target }) => {
        const [file = '', heading] = target.split('#');
        const found = file === '' ? document.path : path.posix.join(path.posix.dirname(document.path), file);
        if (!existsSync(path.join(ROOT, found))) return [`${document.path}:${line}: ${target} does not exist`];
        if (heading === undefined || !found.endsWith('.md')) return [];
        const known = headings(readFileSync(path.join(ROOT, found), 'utf8').split('\n'));
        return known.includes(heading) ? [] : [`${document.path}:${line}: ${target} has no such heading`];
      }),
    ),
  );
});

function links({ lines }: Text): { line: number; target: string }[] {
  return outsideFences(lines).flatMap(({ line, text }) =>
    [...text.replaceAll(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)]
      .map((found) => ({ line, target: found[1] ?? '' }))
      .filter(({ target }) => !/^[a-z]+:/.test(target)),
  );
}

/** The anchors of a document's headings, as GitHub makes them. */
function headings(lines: readonly string[]): string[] {
  const seen = new Map<string, number>();
  return outsideFences(lines).flatMap(({ text }) => {
    const title = /^#{1,6} (.+)$/.exec(text)?.[1];
    if (title === undefined) return [];
    const anchor = title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    return [times === 0 ? anchor : `${anchor}-${times}`];
  });
}

function outsideFences(lines: readonly string[]): { line: number; text: string }[] {
  let fenced = false;
  return lines.flatMap((text, at) => {
    if (/^\s*```/.test(text)) fenced = !fenced;
    return fenced || /^\s*```/.test(text) ? [] : [{ line: at + 1, text }];
  });
}

test('every path that a comment or document names exists', () => {
  const named = /(?<![\w./@-])(?:src|test|docs|bench|build|bin)\/[\w@./-]*[\w-]\.(?:ts|js|mjs|md|json|c)\b(?!\w)/g;
  const exists = ([found]: RegExpMatchArray) => existsSync(path.join(ROOT, found ?? ''));
  const commented = comments();
  // Comments also name files by their folder below src, or below their own: `spend/ledger.ts`, `ledger.ts`.
  const known = code.map(({ path: file }) => `/${file}`);
  const short = /`((?:[\w-]+\/)*[\w-]+(?:\.test|\.scale)?\.ts)`/g;
  none([
    ...findings([...documents, ...commented], named, exists),
    ...findings(
      [...documents, ...commented],
      short,
      ([, name = '']) =>
        EXAMPLES.test(name) || known.some((each) => each.endsWith(`/${name}`)) || existsSync(path.join(ROOT, name)),
    ),
  ]);
});

/** File names that mean any file of a kind. */
const EXAMPLES = /^(?:x|NNNN-[\w-]+)(?:\.test)?\.ts$/;

test('every folder of the sources that a document names exists', () => {
  const named = /`((?:src|test|docs|bench|build|bin)\/(?:[\w.-]+\/)*[\w-]+)\/?`/g;
  none(
    findings(documents, named, (found) => folders.has(found[1] ?? '') || existsSync(path.join(ROOT, found[1] ?? ''))),
  );
});

test('every folder that a comment names exists', () => {
  const named = /`((?:[a-z][\w-]*\/)*[a-z][\w-]*)\/`/g;
  const known = FOLDERS.flatMap((root) =>
    readdirSync(path.join(ROOT, root), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.parentPath.includes('node_modules'))
      .map((entry) => path.join(entry.parentPath, entry.name).replaceAll(path.sep, '/')),
  );
  none(
    findings(
      comments(),
      named,
      ([, name = '']) => NO_FOLDERS.has(name) || known.some((each) => each.endsWith(`/${name}`)),
    ),
  );
});

/** Prefixes of names, and folders of others. */
const NO_FOLDERS = new Set(['svc', 'gatehouse', 'models', 'native']);

/** The files of code, with everything that is no comment blanked out. */
function comments(): Text[] {
  return code.map(({ path: file, lines }) => {
    let open = false;
    return {
      path: file,
      lines: lines.map((line) => {
        const begins = !open && /^\s*\/\*/.test(line);
        const inside = open || begins;
        if (begins) open = true;
        if (open && line.includes('*/')) open = false;
        if (inside) return line;
        return /(?:^|\s)\/\/ .*$/.exec(line)?.[0] ?? '';
      }),
    };
  });
}

test('every reported bug that a test or comment cites is listed in docs/reported-bugs.md', () => {
  const listed = new Set(
    [...readFileSync(path.join(ROOT, 'docs/reported-bugs.md'), 'utf8').matchAll(/^\| (\d+) \|/gm)].map(
      (row) => row[1] ?? '',
    ),
  );
  assert.ok(listed.size > 40);
  const numbers = (found: RegExpMatchArray) => found[1]?.match(/\d+/g) ?? [];
  const isListed = (found: RegExpMatchArray) => numbers(found).every((number) => listed.has(number));
  none(findings(code, /\b[Bb]ugs? (\d+(?:(?:, | and )\d+)*)/g, isListed));
  none(findings(code, /\btest\(\s*['"`](\d{1,2}(?:, \d{1,2})*)(?: and its kind)?(?::| \|)/g, isListed));
});

test('every reported bug that is listed names tests that exist', () => {
  const rows = documents.find(({ path: file }) => file === 'docs/reported-bugs.md')?.lines ?? [];
  const listed = rows.filter((row) => /^\| \d+ \|/.test(row));
  none(listed.filter((row) => !/\| `[^|]+` \|$/.test(row)));
});
