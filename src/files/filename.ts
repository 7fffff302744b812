/** Names of files: they may hold folders, and nothing that a file system or a shell would read as something else. */
import { hasAtMost } from '../base/characters.ts';
import { GatewayError } from '../base/errors.ts';

const LONGEST = 255;
// Also those that end a line or turn its direction, so that `exe` looks like `txt`.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const FORBIDDEN = /[<>:"|?*\\\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

/** Throws GatewayError 400. */
export function checkFilename(name: string | undefined): string {
  if (name === undefined || name === '') throw refused('is missing');
  if (!hasAtMost(name, LONGEST)) throw refused(`must have at most ${LONGEST} characters`);
  // What the parser of the form writes for bytes that are not UTF-8.
  if (name.includes('\ufffd')) throw refused('must be UTF-8, without the replacement character U+FFFD');
  if (FORBIDDEN.test(name)) throw refused('must not contain control characters or any of < > : " | ? * \\');
  const segments = name.split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    throw refused('must not have empty segments, "." or ".." between its slashes');
  }
  return name;
}

function refused(problem: string): GatewayError {
  return new GatewayError('invalid_request', `the filename of file ${problem}`, { path: 'file' });
}
