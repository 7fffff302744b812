/**
 * The facts file written by a refresh: `catalog.json` in the data folder. It is written under another name and then
 * renamed, so a reader finds either the old or the new file. Every row is validated on reading; an unusable file is
 * logged and ignored.
 */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { Compile } from 'typebox/compile';
import type { Log } from '../../base/log.ts';
import { type Facts, type FactsFile, FactsFileSchema, factsFrom } from '../facts.ts';
import { SHIPPED_FACTS } from '../snapshot/index.ts';

const FILE = 'catalog.json';
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * The facts to use: those of the data folder, unless they are missing, invalid or older than the shipped ones. Provider
 * model lists are kept in either case.
 */
export function loadFacts(dataDir: string, log: Pick<Log, 'warn'>): Facts {
  const file = path.join(dataDir, FILE);
  let text: string;
  try {
    if (statSync(file).size > MOST_BYTES) throw new RangeError(`is larger than ${MOST_BYTES} bytes`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') warnUnusable(log, file, error);
    return SHIPPED_FACTS;
  }
  try {
    const facts = factsFrom(checkedFile(JSON.parse(text)));
    return facts.date >= SHIPPED_FACTS.date ? facts : { ...SHIPPED_FACTS, listed: facts.listed };
  } catch (error) {
    warnUnusable(log, file, error);
    return SHIPPED_FACTS;
  }
}

let validator: ReturnType<typeof Compile> | undefined;

/** @throws RangeError that names the first fault */
export function checkedFile(value: unknown): FactsFile {
  validator ??= Compile(FactsFileSchema);
  if (validator.Check(value)) return value as FactsFile;
  const [first] = validator.Errors(value);
  throw new RangeError(`${first?.instancePath || 'the file'} ${first?.message ?? 'is invalid'}`);
}

/** Replaces the file in the data folder. @throws file system errors; the old file is then unchanged */
export function writeFacts(dataDir: string, facts: FactsFile): string {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const file = path.join(dataDir, FILE);
  const draft = `${file}.${process.pid}.new`;
  try {
    const descriptor = openSync(draft, 'w', 0o600);
    try {
      writeAll(descriptor, Buffer.from(JSON.stringify(facts)));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  return file;
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
}

function warnUnusable(log: Pick<Log, 'warn'>, file: string, error: unknown): void {
  log.warn('the refreshed catalog cannot be used; using the shipped one', {
    file,
    reason: (error as Error).message,
  });
}
