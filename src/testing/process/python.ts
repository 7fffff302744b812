/**
 * Python with packages, for tests of the Python client libraries: a virtual environment that the first test makes below
 * `node_modules/.cache` and later ones find. Where Python is missing or the packages cannot be had, the tests skip and say why.
 */
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { emptyFolder } from '../database/database.ts';

export interface Python {
  /** Why tests cannot run here, or `false`: the option `skip` of a test. */
  readonly skip: string | false;
  /** Runs a program to its end and returns what it prints; rejects with its error output when it fails. */
  run(test: Pick<TestContext, 'after'>, args: readonly string[], env: Record<string, string>): Promise<string>;
}

const EXHAUSTIVE = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';
/** The client libraries. Those that build on the first two have 400 MB of packages, and are tried if exhaustive. */
export const PYTHON_CLIENTS: readonly string[] = [
  'openai==3.57.0',
  'anthropic==2.14.0',
  ...(EXHAUSTIVE ? ['langchain-openai==1.7.4', 'litellm==1.110.2'] : []),
];

const CACHE = path.join(import.meta.dirname, '..', '..', '..', 'node_modules', '.cache', 'python-clients');
/** Hundreds of megabytes on a slow line. */
const INSTALL_MS = 600_000;
/** Of all programs of a library, on a machine that has other work. */
const RUN_MS = 600_000;
/** A refused installation is remembered for so long, so that not every test of a machine without a network waits for it. */
const REFUSED_MS = 600_000;
const MOST_SAID = 500;

/** @param packages with exact versions, `openai==1.2.3` */
export async function pythonWith(packages: readonly string[]): Promise<Python> {
  const name = hash('sha256', packages.join('\n')).slice(0, 16);
  const folder = path.join(CACHE, name);
  const problem = existsSync(folder) ? undefined : await make(folder, packages);
  return {
    skip: problem === undefined ? false : `Python cannot run the clients here: ${problem}`,
    run: (test, args, env) => {
      const home = emptyFolder(test as TestContext);
      // Nothing of the developer's own reaches the program, and nothing is fetched at the import.
      const clean = { PATH: '/usr/bin:/bin', HOME: home, PYTHONDONTWRITEBYTECODE: '1', PYTHONUTF8: '1' };
      const options = { env: { ...clean, LITELLM_LOCAL_MODEL_COST_MAP: 'True', ...env }, timeout: RUN_MS, cwd: home };
      return printed(path.join(folder, 'bin', 'python'), args, options);
    },
  };
}

/** Yields why it cannot be made. */
async function make(folder: string, packages: readonly string[]): Promise<string | undefined> {
  const refusal = `${folder}.refused`;
  const before = refusalOf(refusal);
  if (before !== undefined) return before;
  mkdirSync(CACHE, { recursive: true });
  // Two test processes may do it at once: each in its own folder, and the first to finish provides it.
  const making = mkdtempSync(path.join(CACHE, '.making-'));
  const options = { timeout: INSTALL_MS };
  try {
    await printed('python3', ['-m', 'venv', making], options);
    const flags = [
      '--quiet',
      '--disable-pip-version-check',
      '--no-input',
      '--only-binary=:all:',
      '--retries=1',
      '--timeout=20',
    ];
    await printed(path.join(making, 'bin', 'python'), ['-m', 'pip', 'install', ...flags, ...packages], options);
    renameSync(making, folder);
    return undefined;
  } catch (error) {
    if (existsSync(folder)) return undefined;
    const problem = (error as Error).message.slice(-MOST_SAID);
    writeFileSync(refusal, JSON.stringify({ at: Date.now(), problem }));
    return problem;
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}

function refusalOf(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const { at, problem } = JSON.parse(readFileSync(file, 'utf8')) as { at: number; problem: string };
  return Date.now() - at < REFUSED_MS ? problem : undefined;
}

function printed(command: string, args: readonly string[], options: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, ...options } as const;
    execFile(command, [...args], settings, (error, output, errors) => {
      if (error === null) resolve(String(output));
      else reject(new Error(`${error.message}\n${String(errors).trim()}`));
    });
  });
}
