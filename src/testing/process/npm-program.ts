/**
 * Programs of the npm registry that tests run as their users do: the real command, unmodified. The first test that needs one
 * installs it into a cache folder; where npm cannot provide it, the tests skip and say why.
 *
 *     const codex = await npmProgram({ package: '@openai/codex', version: '0.171.0', command: 'codex' });
 *     test('...', { skip: codex.skip }, async (t) => {
 *       const run = await codex.run(t, ['exec', 'do it'], { env: { CODEX_HOME: folder } });
 *     });
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';

export interface NpmProgramOptions {
  /** Its name on the registry. */
  package: string;
  /** An exact version, so that a test means the same tomorrow. */
  version: string;
  /** The command that it installs. */
  command: string;
  /** Further packages of the same folder, `name@version`, e.g. one with the binary for this machine. */
  with?: readonly string[];
  /** Whether the package needs its install scripts. Default: no. */
  scripts?: boolean;
}

export interface NpmProgram {
  /** Why tests with the program cannot run here, or `false`: the option `skip` of a test. */
  readonly skip: string | false;
  /** The path of the command. */
  readonly path: string;
  /** Runs the command to its end, or kills it at the end of the test. */
  run(test: Pick<TestContext, 'after'>, args: readonly string[], options?: RunOptions): Promise<ProgramRun>;
}

export interface RunOptions {
  /** The whole environment besides `PATH`, `HOME` and `TMPDIR`: nothing of the developer's own reaches the program. */
  env?: Record<string, string>;
  /** Default: a fresh folder, removed at the end of the test, as is the home folder. */
  cwd?: string;
  /** Its standard input; empty otherwise. */
  input?: string;
  /** The program is killed after this time. */
  timeoutMs?: number;
}

export interface ProgramRun {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
  readonly errors: string;
}

const CACHE = path.join(import.meta.dirname, '..', '..', '..', 'node_modules', '.cache', 'npm-programs');
/** A large package on a slow line; beyond it the registry counts as unreachable. */
const INSTALL_MS = 240_000;
const RUN_MS = 120_000;
/** A refused installation is remembered for so long, so that every test of a machine without a network does not wait for it. */
const REFUSED_MS = 600_000;

/** Installs the program, or finds it installed. Never fails: `skip` says what is wrong. */
export async function npmProgram(options: NpmProgramOptions): Promise<NpmProgram> {
  const name = `${options.package}@${options.version}`.replaceAll('/', '+');
  const folder = path.join(CACHE, name);
  const command = path.join(folder, 'node_modules', '.bin', options.command);
  const problem = existsSync(command) ? undefined : await install(options, name, folder);
  return {
    skip: problem === undefined ? false : `npm cannot provide ${options.package}@${options.version} here: ${problem}`,
    path: command,
    run: (test, args, more = {}) => runToEnd(test, command, args, more),
  };
}

/** Yields what npm says when it fails. */
async function install(options: NpmProgramOptions, name: string, folder: string): Promise<string | undefined> {
  const refusal = path.join(CACHE, `${name}.refused`);
  const before = refusalOf(refusal);
  if (before !== undefined) return before;
  mkdirSync(CACHE, { recursive: true });
  // Two test processes may install at once: each into its own folder, and the first to finish provides it.
  const making = mkdtempSync(path.join(CACHE, '.making-'));
  try {
    writeFileSync(path.join(making, 'package.json'), '{"private":true}');
    const packages = [`${options.package}@${options.version}`, ...(options.with ?? [])];
    const flags = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', '--save-exact'];
    if (options.scripts !== true) flags.push('--ignore-scripts');
    const npm = spawn('npm', ['install', ...flags, ...packages], { cwd: making, stdio: ['ignore', 'pipe', 'pipe'] });
    const { code, output, errors } = await endOf(npm, INSTALL_MS);
    const missing = existsSync(path.join(making, 'node_modules', '.bin', options.command))
      ? undefined
      : `it has no command "${options.command}"`;
    const problem = code === 0 ? missing : lastLines(errors || output) || `npm ended with ${code ?? 'a signal'}`;
    if (problem !== undefined) {
      writeFileSync(refusal, JSON.stringify({ at: Date.now(), problem }));
      return problem;
    }
    try {
      renameSync(making, folder);
    } catch (error) {
      if (!existsSync(folder)) throw error;
    }
    return undefined;
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}

function refusalOf(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const { at, problem } = JSON.parse(readFileSync(file, 'utf8')) as { at: number; problem: string };
  return Date.now() - at < REFUSED_MS ? problem : undefined;
}

async function runToEnd(
  test: Pick<TestContext, 'after'>,
  command: string,
  args: readonly string[],
  { env = {}, cwd, input = '', timeoutMs = RUN_MS }: RunOptions,
): Promise<ProgramRun> {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-program-'));
  const [home, work, temporary] = ['home', 'work', 'tmp'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [home, work, temporary]) mkdirSync(each);
  test.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  const child = spawn(command, args, {
    cwd: cwd ?? work,
    env: { PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin`, HOME: home, TMPDIR: temporary, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  test.after(() => child.kill('SIGKILL'));
  // A program that reads nothing may have closed its end.
  child.stdin.on('error', () => {}).end(input);
  return endOf(child, timeoutMs);
}

function endOf(child: ReturnType<typeof spawn>, timeoutMs: number): Promise<ProgramRun> {
  let output = '';
  let errors = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  return new Promise((resolve) => {
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve({ code: null, signal: null, output, errors: `${errors}${error.message}` });
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, output, errors });
    });
  });
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join(' ');
}
