/**
 * The facts in the data folder, which a refresh has written: `catalog.json`. Written whole under another name and moved
 * into place, so that a reader finds the old file or the new one; read with every row checked, and what cannot be used
 * is told and left alone.
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
 * The facts to work with: those of the data folder, unless there are none, they cannot be read, or the package came with
 * newer ones. What providers said they have is kept either way.
 */
export function loadFacts(dataDir: string, log: Pick<Log, 'warn'>): Facts {
  const file = path.join(dataDir, FILE);
  let text: string;
  try {
    if (statSync(file).size > MOST_BYTES) throw new RangeError(`is larger than ${MOST_BYTES} bytes`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') told(log, file, error);
    return SHIPPED_FACTS;
  }
  try {
    const facts = factsFrom(checkedFile(JSON.parse(text)));
    return facts.date >= SHIPPED_FACTS.date ? facts : { ...SHIPPED_FACTS, listed: facts.listed };
  } catch (error) {
    told(log, file, error);
    return SHIPPED_FACTS;
  }
}

let validator: ReturnType<typeof Compile> | undefined;

/** @throws RangeError that names the first thing that is wrong */
export function checkedFile(value: unknown): FactsFile {
  validator ??= Compile(FactsFileSchema);
  if (validator.Check(value)) return value as FactsFile;
  const [first] = validator.Errors(value);
  throw new RangeError(`${first?.instancePath || 'the file'} ${first?.message ?? 'is not as it should be'}`);
}

/** Replaces the file of the data folder. @throws what the file system throws; the old file is then still there */
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

function told(log: Pick<Log, 'warn'>, file: string, error: unknown): void {
  log.warn('the refreshed catalog cannot be used: the one of the package stands in', {
    file,
    reason: (error as Error).message,
  });
}
