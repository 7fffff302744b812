/**
 * Suggests the path that an unknown path most likely meant: its prefix is missing, doubled or that of another service, or
 * a word is misspelled. Runs only for unknown paths; bounded by the length of the path and the number of operations.
 */
import { nearest } from '../base/nearest.ts';

const LONGEST_PATH = 200;
const MOST_SEGMENTS = 12;
/** Path segments at the end of base URLs, of this gateway and of other services. */
const PREFIX_WORDS = new Set(['api', 'v1', 'v1beta', 'v2', 'openai', 'anthropic']);

interface KnownPaths {
  /** The path pattern of the operation that serves a path. */
  patternOf(path: string): string | undefined;
  /** The usual prefix: `/api/v1`. */
  readonly prefix: string;
  /** Paths without parameters. */
  readonly exact: readonly string[];
}

/** The end of an error message, `; did you mean /api/v1/chat/completions? ...`; empty without a suggestion. */
export function pathHint(path: string, known: KnownPaths): string {
  if (path.length > LONGEST_PATH) return '';
  const segments = path.split('/').filter((segment) => segment !== '');
  if (segments.length > MOST_SEGMENTS) return '';
  const start = segments.findIndex((segment) => !PREFIX_WORDS.has(segment.toLowerCase()));
  if (start === -1) return '';
  const rest = `/${segments.slice(start).join('/')}`;
  const { prefix } = known;
  const suggested = known.patternOf(prefix + rest) ?? known.patternOf(rest);
  if (suggested !== undefined) return `; did you mean ${suggested}?${baseUrlHint(suggested, prefix)}`;
  const near = nearest(prefix + rest, known.exact) ?? nearest(rest, known.exact);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

/** OpenAI and Anthropic clients need different base URLs: the usual reason for a doubled or missing prefix. */
function baseUrlHint(suggested: string, prefix: string): string {
  if (!suggested.startsWith(`${prefix}/`)) return '';
  return suggested.startsWith(`${prefix}/messages`)
    ? ' The base URL of Anthropic clients ends with /api.'
    : ` The base URL of OpenAI clients ends with ${prefix}.`;
}
