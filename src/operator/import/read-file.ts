/** The files that an import reads. */
import { readFileSync, statSync } from 'node:fs';
import { ImportError } from './litellm.ts';

const LARGEST_BYTES = 16 * 1024 * 1024;

/** @throws Error that names the file, if it is too large or `read` finds a fault in it */
export function readAs<T>(file: string, read: (text: string) => T): T {
  if (statSync(file).size > LARGEST_BYTES) throw new Error(`${file} is larger than ${LARGEST_BYTES} bytes`);
  try {
    return read(readFileSync(file, 'utf8'));
  } catch (error) {
    throw error instanceof ImportError ? new Error(`${file}: ${error.message}`) : error;
  }
}
