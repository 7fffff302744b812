/** The key of this installation that wraps all others, where its operator keeps it: a variable, a file, or what a command says. */
import { exec } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import path from 'node:path';
import type { KeySource, SealingSettings } from '../base/config.ts';
import { writeSecretFile } from '../base/secret-file.ts';
import { KEY_BYTES, SealingError } from './record.ts';

/** Of a file that is the installation's own: 0 for its group and for everybody else. */
const OTHERS = 0o077;
const COMMAND_TIMEOUT_MS = 10_000;
const COMMAND_OUTPUT_BYTES = 4_096;

/** Where a key was found. `next`: a change of keys was broken off; `previous`: the database is from before the last change. */
export type KeyRole = 'current' | 'next' | 'previous';

export interface FoundKey {
  bytes: Buffer;
  role: KeyRole;
  /** For the operator. */
  place: string;
}

/** Beside the usual file: the key that is to come, while a change of keys is under way, and the one before the last change. */
export function nextFile(file: string): string {
  return `${file}.next`;
}

export function previousFile(file: string): string {
  return `${file}.previous`;
}

/** The file that a key is in which nobody has named; undefined for every other place. */
export function usualFile(source: KeySource): string | undefined {
  return source.kind === 'file' && source.variable === undefined ? source.path : undefined;
}

/** What the operator calls it. */
export function placeOf(source: KeySource): string {
  return source.kind === 'file' ? source.path : source.variable;
}

/**
 * The first of the keys that are here which `fits`.
 *
 * @returns undefined when none fits; `missing` then tells that there is none at all in the usual file
 * @throws SealingError with words for the operator, for a key that cannot be read or is none
 */
export async function findKey(
  { current, previous }: SealingSettings,
  fits: (bytes: Buffer) => boolean,
): Promise<{ found: FoundKey | undefined; missing: boolean }> {
  const sources: [KeyRole, KeySource][] = [['current', current]];
  const usual = usualFile(current);
  if (usual !== undefined) {
    sources.push(['next', { kind: 'file', path: nextFile(usual) }]);
    sources.push(['previous', { kind: 'file', path: previousFile(usual) }]);
  }
  if (previous !== null) sources.push(['previous', previous]);
  let missing = false;
  for (const [role, source] of sources) {
    const bytes = await readKey(source);
    if (bytes === undefined) missing ||= role === 'current';
    else if (fits(bytes)) return { found: { bytes, role, place: placeOf(source) }, missing };
    else bytes.fill(0);
  }
  return { found: undefined, missing };
}

/**
 * The key; undefined when it was to be in a file that nobody has named and there is none.
 *
 * @throws SealingError with words for the operator
 */
export async function readKey(source: KeySource): Promise<Buffer | undefined> {
  switch (source.kind) {
    case 'value':
      return decode(source.key.reveal(), source.variable);
    case 'command':
      return decode(await outputOf(source.command, source.variable), `what ${source.variable} prints`);
    case 'file': {
      const text = readOwn(source.path);
      if (text !== undefined) return decode(text, source.path);
      if (source.variable === undefined) return undefined;
      throw new SealingError(`${source.variable} names ${source.path}, and there is no such file`);
    }
  }
}

/** As `readKey`; a new one where that yields none. */
export async function readOrMakeKey(source: KeySource): Promise<Buffer> {
  return (await readKey(source)) ?? makeKeyFile(placeOf(source));
}

/**
 * Makes a file with a new key, unless there is one already. Of several processes that do so at once all get the one key that
 * stays; those of one database do not, as whoever comes here has locked the keys.
 */
export function makeKeyFile(file: string): Buffer {
  const unfinished = `${file}.${randomBytes(8).toString('hex')}`;
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    removeUnfinished(file);
    writeSecretFile(unfinished, randomBytes(KEY_BYTES).toString('base64'));
    // The file appears whole or not at all, and never takes the place of another one.
    linkSync(unfinished, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw notWritten(file, error);
  } finally {
    rmSync(unfinished, { force: true });
  }
  syncFolder(file);
  return decode(readOwn(file) ?? '', file);
}

/** The key that was to come takes the place of the present one, which is kept as the previous one. Done again it does nothing. */
export function adoptNextFile(file: string): void {
  try {
    if (readOwn(nextFile(file)) === undefined) return;
    rmSync(previousFile(file), { force: true });
    try {
      linkSync(file, previousFile(file));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
    renameSync(nextFile(file), file);
    syncFolder(file);
  } catch (error) {
    throw error instanceof SealingError ? error : notWritten(file, error);
  }
}

/** What a killed process left may be a second name of the key that is in use. */
function removeUnfinished(file: string): void {
  const [folder, name] = [path.dirname(file), path.basename(file)];
  for (const each of readdirSync(folder)) {
    if (each.startsWith(`${name}.`) && /^[0-9a-f]{16}$/.test(each.slice(name.length + 1))) {
      rmSync(path.join(folder, each), { force: true });
    }
  }
}

function syncFolder(file: string): void {
  const folder = openSync(path.dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

function notWritten(file: string, error: unknown): SealingError {
  return new SealingError(`the key that seals credentials cannot be written to ${file} (${codeOf(error)})`);
}

function readOwn(file: string): string | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new SealingError(`${file}, the key that seals credentials, cannot be read (${codeOf(error)})`);
  }
  try {
    if ((fstatSync(descriptor).mode & OTHERS) !== 0) {
      throw new SealingError(`${file} can be read by others: take it away from them (chmod 600 ${file})`);
    }
    return readFileSync(descriptor, 'utf8').trim();
  } finally {
    closeSync(descriptor);
  }
}

/** What a command printed; nothing of it, nor of what it complained of, is told to anybody. */
function outputOf(command: string, variable: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const limits = { timeout: COMMAND_TIMEOUT_MS, maxBuffer: COMMAND_OUTPUT_BYTES, encoding: 'utf8' as const };
    exec(command, limits, (error, output) => {
      if (error === null) return resolve(output.trim());
      const ended = error.killed ? 'took too long' : `ended with ${error.signal ?? error.code}`;
      const how = typeof error.code === 'string' ? 'printed too much' : ended;
      reject(new SealingError(`the command of ${variable}, which is to print the key that seals credentials, ${how}`));
    });
  });
}

function decode(text: string, source: string): Buffer {
  const bytes = /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  if (bytes.length === KEY_BYTES) return bytes;
  throw new SealingError(`${source} must hold ${KEY_BYTES} random bytes in base64, as from: openssl rand -base64 32`);
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? 'unknown error';
}
