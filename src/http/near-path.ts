/**
 * What a path that leads nowhere most likely meant: the prefix is missing, is there twice or is another service's, or a word
 * is misspelled. Runs only for such paths; the work is bounded by the length of the path and the number of operations.
 */
import { nearest } from '../base/nearest.ts';

const LONGEST_PATH = 200;
const MOST_SEGMENTS = 12;
/** What base URLs end with, of ours and of other services. */
const PREFIX_WORDS = new Set(['api', 'v1', 'v1beta', 'v2', 'openai', 'anthropic']);

export interface KnownPaths {
  /** The pattern of the operation that a path leads to, as it is served. */
  patternOf(path: string): string | undefined;
  /** The usual prefix: `/api/v1`. */
  readonly prefix: string;
  /** Paths without parameters. */
  readonly exact: readonly string[];
}

/** Continues a sentence: `; did you mean /api/v1/chat/completions? ...`, or is empty. */
export function pathHint(path: string, known: KnownPaths): string {
  if (path.length > LONGEST_PATH) return '';
  const segments = path.split('/').filter((segment) => segment !== '');
  if (segments.length > MOST_SEGMENTS) return '';
  const start = segments.findIndex((segment) => !PREFIX_WORDS.has(segment.toLowerCase()));
  if (start === -1) return '';
  const rest = `/${segments.slice(start).join('/')}`;
  const { prefix } = known;
  const meant = known.patternOf(prefix + rest) ?? known.patternOf(rest);
  if (meant !== undefined) return `; did you mean ${meant}?${baseUrlHint(meant, prefix)}`;
  const near = nearest(prefix + rest, known.exact) ?? nearest(rest, known.exact);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

/** The two base URLs differ, which is the usual reason for a doubled or a missing prefix. */
function baseUrlHint(meant: string, prefix: string): string {
  if (!meant.startsWith(`${prefix}/`)) return '';
  return meant.startsWith(`${prefix}/messages`)
    ? ' The base URL of Anthropic clients ends with /api.'
    : ` The base URL of OpenAI clients ends with ${prefix}.`;
}
