/**
 * The image, without a container engine: what its Dockerfile says is done in empty folders, step by step, and what comes
 * out is started as its entry point says, by an ordinary user.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { VARIABLES } from '../../src/base/config.ts';
import { KINDS } from '../../src/providers/index.ts';
import { gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { ROOT } from '../rules/source-files.ts';

const EXHAUSTIVE = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';
/** Where npm writes down what it has installed. */
const INSTALLED = 'node_modules/.package-lock.json';

interface Step {
  instruction: string;
  rest: string;
}

const text = (name: string) => readFileSync(path.join(ROOT, name), 'utf8');

/** The Dockerfile's steps, a list for each stage. */
function stages(): Step[][] {
  const found: Step[][] = [];
  for (const line of text('Dockerfile').split('\n')) {
    const [, instruction = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (instruction === 'FROM') found.push([]);
    if (instruction !== '') found.at(-1)?.push({ instruction, rest });
  }
  return found;
}

const [build = [], final = []] = stages();
const one = (instruction: string) => final.find((step) => step.instruction === instruction)?.rest ?? '';

/** `ENV A=1 B=2` as an object. */
const variables = Object.fromEntries(
  one('ENV')
    .split(' ')
    .map((pair) => pair.split('=') as [string, string]),
);

function copy(rest: string, from: string, to: string): void {
  const words = rest.split(' ').filter((word) => !word.startsWith('--'));
  const target = path.resolve(to, words.at(-1) ?? '.');
  for (const word of words.slice(0, -1)) {
    const source = path.join(from, path.posix.relative(from === ROOT ? '.' : '/build', word));
    const folder = words.at(-1)?.endsWith('/') === true;
    copyTree(source, folder ? path.join(target, path.basename(source)) : target, { linked: from !== ROOT });
  }
}

/** @param linked as links to the same files: a tenth of the time, for files that nothing changes in place */
function copyTree(source: string, target: string, { linked }: { linked: boolean }): void {
  if (linked) {
    mkdirSync(path.dirname(target), { recursive: true });
    const { status, stderr } = spawnSync('cp', ['-a', '-l', source, target], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
  } else cpSync(source, target, { recursive: true, verbatimSymlinks: true });
}

/** The packages, without what tests have put into `.cache`. npm rewrites its list of them, but unlinks other files. */
function copyPackages(folder: string): void {
  const from = path.join(ROOT, 'node_modules');
  for (const name of readdirSync(from)) {
    if (name === '.cache') continue;
    const linked = name !== path.basename(INSTALLED);
    copyTree(path.join(from, name), path.join(folder, 'node_modules', name), { linked });
  }
}

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'image-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Whether the packages here are what `npm ci` gives: copying them takes a fifth of the time. */
function isInstalled(): boolean {
  type Packages = Record<string, { version?: string; integrity?: string; optional?: boolean }>;
  const packages = (name: string) => (JSON.parse(text(name)) as { packages: Packages }).packages;
  if (!existsSync(path.join(ROOT, INSTALLED))) return false;
  const [{ '': _, ...locked }, installed] = [packages('package-lock.json'), packages(INSTALLED)];
  return (
    Object.entries(locked).every(([name, { optional = false }]) => optional || name in installed) &&
    Object.entries(installed).every(
      ([name, { version, integrity }]) => locked[name]?.version === version && locked[name]?.integrity === integrity,
    )
  );
}

/** False when the registry cannot be reached. */
function runBuild(folder: string): boolean {
  for (const { instruction, rest } of build) {
    if (instruction === 'COPY') copy(rest, ROOT, folder);
    if (instruction !== 'RUN') continue;
    if (rest.startsWith('npm ci ') && !EXHAUSTIVE && isInstalled()) {
      copyPackages(folder);
      continue;
    }
    const env = { PATH: withoutModules(process.env['PATH'] ?? ''), HOME: process.env['HOME'] ?? folder };
    const ran = spawnSync('sh', ['-c', rest], { cwd: folder, encoding: 'utf8', env });
    if (/ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ECONNRESET|E403|E5\d\d/.test(ran.stderr)) return false;
    assert.equal(ran.status, 0, `${rest}\n${ran.stderr}`);
  }
  return true;
}

function withoutModules(searched: string): string {
  return searched
    .split(path.delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(path.delimiter);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('the steps of the image, done in empty folders, give a gateway that serves, is found healthy, and has no tools in it', {
  skip: process.platform !== 'linux' && 'the image is for Linux',
}, async (t) => {
  const built = emptyFolder(t);
  if (!runBuild(built)) return t.skip('the registry cannot be reached');
  const image = emptyFolder(t);
  for (const { instruction, rest } of final) {
    if (instruction === 'COPY') copy(rest, rest.includes('--from=build') ? built : ROOT, image);
  }
  assert.ok(existsSync(path.join(image, 'node_modules/undici')));
  for (const tool of ['typescript', '@biomejs/biome', 'fast-check', 'openai']) {
    assert.ok(!existsSync(path.join(image, 'node_modules', tool)), tool);
  }
  // Whoever runs it cannot write the image.
  chmodSync(image, 0o755);
  const home = await gatewayHome(t, false);
  mkdirSync(home.folder, { recursive: true });
  const entry = [...JSON.parse(one('ENTRYPOINT')), ...JSON.parse(one('CMD'))] as string[];
  const port = String(await freePort());
  const env = { ...variables, GATEHOUSE_HOST: '127.0.0.1', GATEHOUSE_PORT: port, GATEHOUSE_DATA_DIR: home.dataDir };
  const command = [path.join(image, entry[0] ?? ''), path.join(image, entry[1] ?? ''), ...entry.slice(2)];
  const nobody = process.getuid?.() === 0 ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'] : [];
  if (nobody.length > 0) {
    chmodSync(home.folder, 0o711);
    mkdirSync(home.dataDir, { recursive: true });
    chownSync(home.dataDir, 65_534, 65_534);
  }
  const gateway = await startGatewayProcess(t, { home, command: [...nobody, ...command], env });
  const messages = [{ role: 'user', content: 'Hello, container' }];
  const answer = await gateway.post('/chat/completions', { model: 'simulated/echo', messages });
  assert.match(await answer.text(), /Hello, container/);

  const check = JSON.parse(/CMD (\[.*\])$/.exec(one('HEALTHCHECK'))?.[1] ?? '[]') as string[];
  const healthy = () => spawnSync(path.join(image, check[0] ?? ''), check.slice(1), { env: { GATEHOUSE_PORT: port } });
  assert.equal(healthy().status, 0);
  assert.equal((await gateway.end(one('STOPSIGNAL') as 'SIGTERM')).code, 0);
  assert.equal(healthy().status, 1);
});

test('the image runs as an ordinary user, keeps its data in a volume that is its user’s, and sets only known variables', () => {
  const user = one('USER');
  assert.match(user, /^(?!root$|0$)\w+$/);
  const made = final.find(({ instruction, rest }) => instruction === 'RUN' && rest.includes('useradd'))?.rest ?? '';
  assert.ok(made.includes(user) && made.includes(`-o ${user}`) && made.includes(one('VOLUME')));
  assert.equal(variables['GATEHOUSE_DATA_DIR'], one('VOLUME'));
  assert.equal(variables['GATEHOUSE_PORT'], one('EXPOSE'));
  const known = new Set(VARIABLES.map(({ name }) => name).concat('NODE_ENV'));
  assert.deepEqual(
    Object.keys(variables).filter((name) => !known.has(name)),
    [],
  );
});

test('every file that the Dockerfile copies is let through by .dockerignore', () => {
  const admitted = new Set(
    text('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1)),
  );
  const copied = [...build, ...final]
    .filter(({ instruction, rest }) => instruction === 'COPY' && !rest.startsWith('--from'))
    .flatMap(({ rest }) => rest.split(' ').slice(0, -1));
  assert.deepEqual(
    copied.filter((name) => !admitted.has(name.split('/')[0]!)),
    [],
  );
});

interface Compose {
  services: Record<string, { environment: Record<string, string>; stop_grace_period?: string; ports?: string[] }>;
}

test('the compose file gives the gateway its database, known variables, and more time to stop than its drain', () => {
  const { services } = parse(text('compose.yaml')) as Compose;
  const { gatehouse, database } = services;
  const known = new Set([
    ...VARIABLES.map(({ name }) => name),
    ...KINDS.flatMap(({ environment = [] }) => environment),
  ]);
  const environment = gatehouse?.environment ?? {};
  assert.deepEqual(
    Object.keys(environment).filter((name) => !known.has(name)),
    [],
  );
  const shell = /\$\{POSTGRES_PASSWORD[^}]*\}/;
  const url = new URL((environment['DATABASE_URL'] ?? '').replace(shell, 'secret'));
  assert.equal(url.username, database?.environment['POSTGRES_USER']);
  assert.equal(url.pathname.slice(1), database?.environment['POSTGRES_DB']);
  assert.match(database?.environment['POSTGRES_PASSWORD'] ?? '', shell);
  assert.equal(url.hostname, 'database');
  assert.ok(Number.parseInt(gatehouse?.stop_grace_period ?? '', 10) > 10);
  // Nobody from outside without a deliberate change.
  assert.match(gatehouse?.ports?.[0] ?? '', /^127\.0\.0\.1:/);
});
