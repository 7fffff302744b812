/** The key of this installation that wraps all others, where its operator keeps it: a variable or a file. */
import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { SealingSettings } from '../base/config.ts';
import { writeSecretFile } from '../base/secret-file.ts';
import { KEY_BYTES, SealingError } from './record.ts';

/** Of a file that is the installation's own: 0 for its group and for everybody else. */
const OTHERS = 0o077;

/**
 * The key; undefined when it was to be in the usual file and there is none.
 *
 * @throws SealingError with words for the operator
 */
export function readInstallationKey({ key, file, named }: SealingSettings): Buffer | undefined {
  if (key !== null) return decode(key.reveal(), 'GATEHOUSE_KEK');
  const text = readOwn(file);
  if (text !== undefined) return decode(text, file);
  if (named) throw new SealingError(`GATEHOUSE_KEK_FILE names ${file}, and there is no such file`);
  return undefined;
}

/** Makes the usual file with a new key. Of several processes that do so at once all get the one key that stays. */
export function makeInstallationKey({ file }: Pick<SealingSettings, 'file'>): Buffer {
  const unfinished = `${file}.${randomBytes(8).toString('hex')}`;
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeSecretFile(unfinished, randomBytes(KEY_BYTES).toString('base64'));
    // The file appears whole or not at all, and never takes the place of another one.
    linkSync(unfinished, file);
    const folder = openSync(path.dirname(file), 'r');
    fsyncSync(folder);
    closeSync(folder);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') {
      throw new SealingError(`the key that seals credentials cannot be written to ${file} (${codeOf(error)})`);
    }
  } finally {
    rmSync(unfinished, { force: true });
  }
  return decode(readOwn(file) ?? '', file);
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

function decode(text: string, source: string): Buffer {
  const bytes = /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  if (bytes.length === KEY_BYTES) return bytes;
  throw new SealingError(`${source} must hold ${KEY_BYTES} random bytes in base64, as from: openssl rand -base64 32`);
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? 'unknown error';
}
