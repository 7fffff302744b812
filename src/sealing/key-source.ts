/** Reads the installation key from where the operator keeps it: a variable, a file, or the output of a command. */
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

/** Mode bits that must be 0 on the installation's own file: those of group and others. */
const OTHERS = 0o077;
const COMMAND_TIMEOUT_MS = 10_000;
const COMMAND_OUTPUT_BYTES = 4_096;

/**
 * Where a key was found. `next`: a rotation was interrupted; `previous`: the database is older than the last rotation.
 */
type KeyRole = 'current' | 'next' | 'previous';

export interface FoundKey {
  bytes: Buffer;
  role: KeyRole;
  /** Shown to the operator. */
  source: string;
}

/** Files next to the default file: the next key during a rotation, and the key from before the last rotation. */
export function nextFile(file: string): string {
  return `${file}.next`;
}

export function previousFile(file: string): string {
  return `${file}.previous`;
}

/** The default key file, if the operator configured no other source; otherwise undefined. */
export function defaultFile(source: KeySource): string | undefined {
  return source.kind === 'file' && source.variable === undefined ? source.path : undefined;
}

/** The source as the operator knows it. */
export function describeSource(source: KeySource): string {
  return source.kind === 'file' ? source.path : source.variable;
}

/**
 * The first available key that `fits`.
 *
 * @returns undefined if none fits; `missing` is true if the default file does not exist
 * @throws SealingError with a message for the operator, for an unreadable or invalid key
 */
export async function findKey(
  { current, previous }: SealingSettings,
  fits: (bytes: Buffer) => boolean,
): Promise<{ found: FoundKey | undefined; missing: boolean }> {
  const sources: [KeyRole, KeySource][] = [['current', current]];
  const defaultPath = defaultFile(current);
  if (defaultPath !== undefined) {
    sources.push(['next', { kind: 'file', path: nextFile(defaultPath) }]);
    sources.push(['previous', { kind: 'file', path: previousFile(defaultPath) }]);
  }
  if (previous !== null) sources.push(['previous', previous]);
  let missing = false;
  for (const [role, source] of sources) {
    const bytes = await readKey(source);
    if (bytes === undefined) missing ||= role === 'current';
    else if (fits(bytes)) return { found: { bytes, role, source: describeSource(source) }, missing };
    else bytes.fill(0);
  }
  return { found: undefined, missing };
}

/**
 * The key; undefined if the default file does not exist.
 *
 * @throws SealingError with a message for the operator
 */
export async function readKey(source: KeySource): Promise<Buffer | undefined> {
  switch (source.kind) {
    case 'value':
      return decode(source.key.reveal(), source.variable);
    case 'command':
      return decode(await outputOf(source.command, source.variable), `the output of ${source.variable}`);
    case 'file': {
      const text = readOwn(source.path);
      if (text !== undefined) return decode(text, source.path);
      if (source.variable === undefined) return undefined;
      throw new SealingError(`${source.variable} names ${source.path}, which does not exist`);
    }
  }
}

/** Like `readKey`; creates a key if there is none. */
export async function readOrMakeKey(source: KeySource): Promise<Buffer> {
  return (await readKey(source)) ?? makeKeyFile(describeSource(source));
}

/**
 * Creates a file with a new key, unless it exists. If several processes do so at once, all get the one key that stays.
 * Processes of one database do not, because callers have locked the keys.
 */
export function makeKeyFile(file: string): Buffer {
  const unfinished = `${file}.${randomBytes(8).toString('hex')}`;
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    removeUnfinished(file);
    writeSecretFile(unfinished, randomBytes(KEY_BYTES).toString('base64'));
    // link() creates the file complete or not at all, and never replaces an existing one.
    linkSync(unfinished, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw notWritten(file, error);
  } finally {
    rmSync(unfinished, { force: true });
  }
  syncFolder(file);
  return decode(readOwn(file) ?? '', file);
}

/** Replaces the current key file by the next one, and keeps the current one as the previous one. Idempotent. */
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

/** A file left by a killed process may be a second link to the key in use. */
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
  return new SealingError(`the encryption key for credentials cannot be written to ${file} (${codeOf(error)})`);
}

function readOwn(file: string): string | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new SealingError(`${file}, the encryption key for credentials, cannot be read (${codeOf(error)})`);
  }
  try {
    if ((fstatSync(descriptor).mode & OTHERS) !== 0) {
      throw new SealingError(`${file} is readable by other users: restrict its permissions (chmod 600 ${file})`);
    }
    return readFileSync(descriptor, 'utf8').trim();
  } finally {
    closeSync(descriptor);
  }
}

/** The output of a command. Neither it nor the error output appears in a message. */
function outputOf(command: string, variable: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const limits = { timeout: COMMAND_TIMEOUT_MS, maxBuffer: COMMAND_OUTPUT_BYTES, encoding: 'utf8' as const };
    exec(command, limits, (error, output) => {
      if (error === null) return resolve(output.trim());
      const ended = error.killed ? 'took too long' : `ended with ${error.signal ?? error.code}`;
      const how = typeof error.code === 'string' ? 'printed too much' : ended;
      reject(
        new SealingError(`the command of ${variable}, which must print the encryption key for credentials, ${how}`),
      );
    });
  });
}

function decode(text: string, source: string): Buffer {
  const bytes = /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  if (bytes.length === KEY_BYTES) return bytes;
  throw new SealingError(
    `${source} must contain ${KEY_BYTES} random bytes in base64, such as from: openssl rand -base64 32`,
  );
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? 'unknown error';
}
