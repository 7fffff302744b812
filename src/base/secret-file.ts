/** A file with a secret, which only its owner may read. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';

/** Writes a line into a new file and waits until it is on the disk, so that whoever is told of the file finds it. */
export function writeSecretFile(file: string, line: string): void {
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    writeSync(descriptor, `${line}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
