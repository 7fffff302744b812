/** A file with a secret, which only its owner may read. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';

/** Writes a line to a new file and syncs it to disk, so that the file exists before it is announced. */
export function writeSecretFile(file: string, line: string): void {
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    writeSync(descriptor, `${line}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
