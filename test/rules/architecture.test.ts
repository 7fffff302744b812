/** The rules of ARCHITECTURE.md that a reader of the sources can check by machine. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT, readSource, type SourceFile, sourceFiles } from './source-files.ts';

const files = sourceFiles(['src', 'test', 'bench']);
const isTest = (file: SourceFile) =>
  /\.(?:test|scale)\.ts$/.test(file.path) || /^(?:test|bench|src\/testing)\//.test(file.path);
/** Declarations of what a package lacks are types: they do nothing and load nothing. */
const sources = files.filter((file) => !isTest(file) && !file.path.endsWith('.d.ts'));

/** Fails with every violation, one a line. */
function none(violations: string[]): void {
  assert.deepEqual(violations, [], `\n${violations.join('\n')}\n`);
}

/** Which folders may be imported from; a folder not listed at the left may import nothing of ours. */
const LAYERS: readonly (readonly string[])[] = [
  ['base'],
  ['http', 'storage', 'formats', 'egress', 'otlp'],
  ['agent', 'providers', 'jobs', 'egress-proxy', 'peers'],
  [
    'access',
    'analytics',
    'audit',
    'blobs',
    'byok',
    'cache',
    'catalog',
    'rate-limits',
    'sealing',
    'sign-in',
    'spend',
    'transcripts',
    'workspaces',
    'guardrails',
    'files',
    'scim',
    'vault',
    'sandboxes',
    'observability',
    'tracing',
    'pages',
    'console',
    'destinations',
    'containers',
    'memories',
    'presets',
    'vector-stores',
    'callbacks',
  ],
  ['inference'],
  ['batches', 'interns', 'responses', 'videos'],
  ['conformance'],
  ['operator'],
  ['server'],
];
/** Layers whose folders may use each other, as long as no circle comes of it. */
const SIDEWAYS = new Set([3]);
/** Folders whose files are imported directly; any other is entered by its `index.ts`. */
const OPEN = ['base', 'http', 'storage', 'server', 'formats/conversation', 'testing'];

const folderOf = (file: string) => (/^src\/[^/]+\//.test(file) ? (file.split('/')[1] ?? '') : '');
/** The folder of src that a file belongs to or tests. */
const areaOf = (file: string) => folderOf(file.replace(/^test\//, 'src/'));
const layerOf = (folder: string) => LAYERS.findIndex((layer) => layer.includes(folder));

test('every folder of src has a layer', () => {
  const folders = new Set(sources.map((file) => folderOf(file.path)).filter(Boolean));
  none([...folders].filter((folder) => layerOf(folder) === -1).map((folder) => `src/${folder} stands in no layer`));
});

test('imports point from the outer layers to the inner ones', () => {
  const violations = sources.flatMap((file) => {
    const from = folderOf(file.path);
    const own = file.imports.filter((each) => each.own && folderOf(each.target) !== from && from !== '');
    return own.flatMap(({ target }) => {
      const to = folderOf(target);
      const [inner, outer] = [layerOf(to), layerOf(from)];
      // The files at the root of src and `server` wire each other.
      if (to === '' ? from === 'server' : inner < outer || (inner === outer && SIDEWAYS.has(inner))) return [];
      return [`${file.path} imports ${target}`];
    });
  });
  none(violations);
});

test('the conversation in the middle of all formats knows none of them', () => {
  const violations = sources.flatMap((file) => {
    if (!file.path.startsWith('src/formats/conversation/')) return [];
    const leaves = file.imports.filter(
      ({ own, target }) => own && !/^src\/(?:base|formats\/conversation)\//.test(target),
    );
    return leaves.map(({ target }) => `${file.path} imports ${target}`);
  });
  none(violations);
});

/** The nodes that lead back to themselves. */
function circular(edges: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const reaches = (from: string, goal: string, seen = new Set<string>()): boolean =>
    [...(edges.get(from) ?? [])].some((next) => {
      if (next === goal) return true;
      if (seen.has(next)) return false;
      seen.add(next);
      return reaches(next, goal, seen);
    });
  return [...edges.keys()].filter((node) => reaches(node, node));
}

test('no circle of imports runs through two folders', () => {
  const edges = new Map<string, Set<string>>();
  for (const file of sources) {
    const from = folderOf(file.path);
    for (const { target, own } of file.imports) {
      const to = folderOf(target);
      if (own && from && to && from !== to) edges.set(from, (edges.get(from) ?? new Set()).add(to));
    }
  }
  none(circular(edges).map((folder) => `src/${folder} leads back to itself`));
});

test('no circle of imports runs through two files, types aside', () => {
  const edges = sources.map((file): [string, Set<string>] => {
    const values = file.imports.filter(({ own, typeOnly }) => own && !typeOnly);
    return [file.path, new Set(values.map(({ target }) => target))];
  });
  none(circular(new Map(edges)).map((file) => `${file} leads back to itself`));
});

test('a folder is entered by its door', () => {
  // What src/testing offers for the tests of one folder may know that folder from inside.
  const bound = files.filter((file) => !file.path.startsWith('src/testing/'));
  const violations = bound.flatMap((file) =>
    file.imports
      .filter((each) => each.own && each.target.startsWith('src/') && !isInside(file.path, each.target))
      .filter(({ target }) => path.posix.basename(target) !== 'index.ts')
      .map(({ target }) => `${file.path} imports ${target}`),
  );
  none(violations);
});

/** Whether `target` is at the root of src, in an open folder, or in the same top folder as `file`; `test/x` belongs to `src/x`. */
function isInside(file: string, target: string): boolean {
  const folder = folderOf(target);
  return folder === '' || folder === areaOf(file) || OPEN.some((open) => target.startsWith(`src/${open}/`));
}

test('only tests use what src/testing offers', () => {
  none(importsOf(sources, (target) => target.startsWith('src/testing/') || target === 'node:test'));
});

test('SQL is only in store.ts, *.sql.ts, storage/ and migrations/', () => {
  const sql =
    /^\s*(?:select\s|insert\s+into\s|update\s+\w+\s+set\s|delete\s+from\s|with\s+\w+\s+as\s*\(|(?:create|alter|drop|lock)\s+(?:table|index|unique)\s)/i;
  const places = /(?:\/store\.ts|\.sql\.ts|^src\/storage\/.*|\/migrations\/[^/]+)$/;
  const violations = sources.filter((file) => !places.test(file.path) && file.strings.some((text) => sql.test(text)));
  none(violations.map((file) => `${file.path} holds SQL`));
});

test('SQL keywords are in lower case', () => {
  const upper = /\b(?:SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|JOIN|VALUES)\s/;
  const stores = sources.filter((file) =>
    /(?:\/store\.ts|\.sql\.ts|^src\/storage\/.*|\/migrations\/.*)$/.test(file.path),
  );
  none(stores.filter((file) => file.strings.some((text) => upper.test(text))).map((file) => file.path));
});

/** Files that run alone, in a sandbox. */
const ALONE = ['src/egress-proxy/sandbox-init.ts', 'src/sandboxes/kubernetes/pod.ts'];

test('time comes from base/clock.ts', () => {
  const asked =
    /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.|\bset(?:Timeout|Interval)\b|\bhrtime\b|\bTemporal\.Now\b/;
  none([
    ...matching(sources, asked, ['src/base/clock.ts', ...ALONE]),
    ...importsOf(sources, (target) => /^(?:node:)?(?:timers(?:\/promises)?|perf_hooks)$/.test(target)),
  ]);
});

test('the environment is read in base/config.ts', () => {
  none(matching(sources, /\bprocess\.env\b/, ['src/base/config.ts', ...ALONE]));
});

/** The agent's requests leave its sandbox through the egress proxy. */
const AGENT_REQUESTS = ['src/agent/model.ts', 'src/agent/tools/fetch-page.ts'];

test('connections are opened where the architecture says and nowhere else', () => {
  const places: Record<string, RegExp> = {
    undici: /^$/,
    'undici/lib/dispatcher/client.js': /^src\/egress\//,
    'undici/lib/llhttp/llhttp-wasm.js': /^src\/http\/answer-parser\.ts$/,
    '@aws-sdk/client-s3': /^src\/blobs\/s3\//,
    '@kubernetes/client-node': /^src\/sandboxes\/kubernetes\/cluster\.ts$/,
    pg: /^src\/storage\//,
    'node:http': /^src\/(?:http|egress-proxy|conformance)\//,
    'node:https': /^src\/(?:http|egress-proxy|peers|conformance)\//,
    'node:http2': /^src\/egress-proxy\//,
    // Named pipes are read as sockets.
    'node:net': /^src\/(?:http\/|providers\/send\/|egress\/|egress-proxy\/|sandboxes\/bubblewrap\/pipes\.ts$)/,
    'node:tls': /^src\/(?:http\/|providers\/send\/|egress\/|egress-proxy\/)/,
    'node:dns': /^src\/egress\//,
    'node:dns/promises': /^$/,
    'node:dgram': /^$/,
  };
  const harmless = new Set(['isIP', 'isIPv4', 'isIPv6', 'BlockList', 'getCACertificates']);
  const violations = sources.flatMap((file) =>
    file.imports
      .filter(({ target, typeOnly, names }) => {
        const place = places[target];
        const opens = names.length === 0 || names.some((name) => !name.startsWith('type ') && !harmless.has(name));
        return place !== undefined && !typeOnly && opens && !place.test(file.path) && !ALONE.includes(file.path);
      })
      .map(({ target }) => `${file.path} imports ${target}`),
  );
  none([...violations, ...matching(sources, /(?<![.\w])(?:fetch\(|new (?:WebSocket|EventSource)\b)/, AGENT_REQUESTS)]);
});

test('formats are pure: nothing to wait for, no clock, no input or output', () => {
  const formats = sources.filter((file) => file.path.startsWith('src/formats/'));
  none([
    ...matching(
      formats,
      /\basync\b|\bawait\b|\bPromise\b|\bqueueMicrotask\b|\bsetImmediate\b|\bprocess\.|\bMath\.random\b/,
      [],
    ),
    ...importsOf(formats, (target) => target.startsWith('node:') && !/^node:(?:buffer|crypto|util)$/.test(target)),
    ...importsOf(formats, (target) => target === 'src/base/clock.ts'),
  ]);
});

test('no file is longer than 400 lines', () => {
  none(sources.filter((file) => file.lines > 401).map((file) => `${file.path} has ${file.lines - 1} lines`));
});

test('no file has a name that says nothing', () => {
  const empty = /^(?:types?|utils?|helpers?|common|shared|services?|managers?|misc)$/;
  none(
    files
      .filter((file) =>
        path.posix
          .basename(file.path)
          .split('.')
          .some((word) => empty.test(word)),
      )
      .map((file) => file.path),
  );
});

test('file names are kebab case', () => {
  none(
    files
      .filter((file) => !/^[a-z0-9-]+(?:\.(?:test|scale|sql|d))?\.ts$/.test(path.posix.basename(file.path)))
      .map((file) => file.path),
  );
});

test('nothing is of type any', () => {
  none(matching(sources, /(?::|\bas|[<,|&=])\s*any\b(?!\s*[:(.])/, ['src/storage/database.ts']));
});

test('nothing is a default export', () => {
  none(matching(files, /\bexport\s+default\b/, []));
});

test('migrations have unique numbers, ascending, each in the range of its folder', () => {
  const ranges: Record<string, readonly [number, number]> = {
    storage: [1, 9],
    access: [10, 19],
    spend: [20, 39],
    inference: [40, 49],
    workspaces: [50, 59],
    guardrails: [80, 89],
    catalog: [60, 69],
    cache: [70, 79],
    transcripts: [70, 79],
    sealing: [90, 90],
    byok: [91, 99],
    'rate-limits': [100, 109],
    'sign-in': [140, 149],
    scim: [110, 119],
    audit: [120, 129],
    blobs: [130, 139],
    files: [150, 159],
    batches: [160, 169],
    vault: [170, 179],
    interns: [190, 199],
    console: [210, 219],
    destinations: [220, 229],
    containers: [230, 239],
    responses: [240, 249],
    memories: [250, 259],
    presets: [260, 269],
    videos: [270, 279],
    'vector-stores': [280, 289],
  };
  const migrations = files.filter((file) => /\/migrations\/\d/.test(file.path) && !isTest(file));
  const seen = new Map<number, string>();
  const violations = migrations.flatMap((file) => {
    const digits = /^(\d{4})-[a-z0-9-]+\.ts$/.exec(path.posix.basename(file.path))?.[1];
    if (digits === undefined) return [`${file.path} is not named NNNN-what-it-does.ts`];
    const number = Number(digits);
    const range = ranges[folderOf(file.path)];
    const twin = seen.get(number);
    seen.set(number, file.path);
    return [
      ...(twin === undefined ? [] : [`${file.path} has the number of ${twin}`]),
      ...(range && number >= range[0] && number <= range[1] ? [] : [`${file.path} is outside of its folder's range`]),
    ];
  });
  none(violations);
});

test('every folder that is entered by a door says there what it is', () => {
  const folders = new Set(sources.map((file) => folderOf(file.path)).filter(Boolean));
  const doors = [...folders].filter((folder) => !OPEN.includes(folder)).map((folder) => `src/${folder}/index.ts`);
  none(doors.filter((door) => !textOf(door).startsWith('/**\n')).map((door) => `${door} is missing or has no header`));
});

test('the tree in ARCHITECTURE.md has every folder of src and no other', () => {
  const tree = /^ {4}src\/\n((?: {6}\S.*\n)+)/m.exec(textOf('ARCHITECTURE.md'))?.[1] ?? '';
  const drawn = [...tree.matchAll(/^ {6}([\w-]+)\/ /gm)].map((match) => match[1]);
  const folders = new Set(files.map((file) => folderOf(file.path)).filter(Boolean));
  assert.deepEqual(drawn.toSorted(), [...folders].toSorted());
});

function textOf(file: string): string {
  return existsSync(path.join(ROOT, file)) ? readFileSync(path.join(ROOT, file), 'utf8') : '';
}

test('the reader of sources sees imports and code, and nothing in comments, strings or expressions', () => {
  const source = readSource(
    'src/access/x.ts',
    [
      "// import { a } from '../no/a.ts'; any",
      "import { a, type B } from '../base/a.ts';",
      "import type { C } from 'undici';",
      "export * from './y.ts';",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text.
      "export const text = 'Date.now()'; const z = /process.env['\"`]/.test(`x${Date.now()}y`) ? 4 / 2 / 1 : await import('./z.ts');",
      '/* setTimeout */ export const after = 1;',
    ].join('\n'),
  );
  assert.deepEqual(
    source.imports.map((each) => [each.target, each.own, each.typeOnly]),
    [
      ['src/base/a.ts', true, false],
      ['undici', false, true],
      ['src/access/y.ts', true, false],
      ['src/access/z.ts', true, false],
    ],
  );
  assert.deepEqual(source.strings.slice(3), ['Date.now()', 'x', 'y', './z.ts']);
  assert.equal(source.code.match(/Date\.now/g)?.length, 1);
  assert.doesNotMatch(source.code, /process|setTimeout|any/);
  assert.match(source.code, /export const after/);
});

function matching(among: readonly SourceFile[], pattern: RegExp, except: readonly string[]): string[] {
  return among
    .filter((file) => !except.includes(file.path))
    .flatMap((file) => {
      const found = pattern.exec(file.code);
      return found ? [`${file.path}:${file.code.slice(0, found.index).split('\n').length} has ${found[0].trim()}`] : [];
    });
}

function importsOf(among: readonly SourceFile[], unwanted: (target: string) => boolean): string[] {
  return among.flatMap((file) =>
    file.imports.filter(({ target }) => unwanted(target)).map(({ target }) => `${file.path} imports ${target}`),
  );
}
