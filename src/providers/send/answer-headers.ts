/** Headers of upstream responses: which are kept and passed on. Pure. */
import type { Clock } from '../../base/clock.ts';
import { LONGEST_WAIT_SECONDS } from '../../formats/conversation/failure.ts';
import type { HeaderForm } from '../../http/answer-parser.ts';

/** Response headers that the gateway uses. All others are dropped, because they may repeat our credential. */
const SHOWN_HEADERS = new Set([
  'content-type',
  'content-length',
  'transfer-encoding',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'request-id',
  'x-request-id',
  'apim-request-id',
  'x-amzn-requestid',
  'x-amzn-errortype',
  'x-amzn-bedrock-input-token-count',
  'cf-ray',
]);
const SHOWN_PREFIXES = ['x-ratelimit-', 'anthropic-ratelimit-'];

/** By lower-case name. Of a repeated header, the first value. */
export type ShownHeaders = Record<string, string>;

/** Of a response: the headers that are passed on, and those that the transport reads. */
export const WANTED_HEADERS: HeaderForm<ShownHeaders> = {
  isWhole: false,
  create: () => ({}),
  keptAs: (name) => {
    const lower = name.toLowerCase();
    return lower === 'content-encoding' || lower === 'keep-alive' || isShown(lower) ? lower : undefined;
  },
  add: (headers, name, value) => {
    headers[name] ??= value.trim();
  },
};

function isShown(name: string): boolean {
  return SHOWN_HEADERS.has(name) || SHOWN_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/**
 * Without the headers that only the transport reads. `retry-after` is in seconds and, like `retry-after-ms`, at most
 * `LONGEST_WAIT_SECONDS`; 0 if it says nothing.
 */
export function shownHeaders(headers: Record<string, string>, clock: Clock): Record<string, string> {
  // The usual case costs no object.
  if (!READ_HEADERS.some((name) => name in headers)) return headers;
  const { 'content-encoding': _encoding, 'keep-alive': _hint, ...shown } = headers;
  const { 'retry-after': wait, 'retry-after-ms': waitMs } = shown;
  if (wait !== undefined) shown['retry-after'] = bounded(secondsOf(wait, clock), LONGEST_WAIT_SECONDS);
  if (waitMs !== undefined) shown['retry-after-ms'] = bounded(Number(waitMs), LONGEST_WAIT_SECONDS * 1_000);
  return shown;
}

const READ_HEADERS = ['content-encoding', 'keep-alive', 'retry-after', 'retry-after-ms'] as const;

/** Either variant of the header: seconds, or a date. */
function secondsOf(wait: string, clock: Clock): number {
  return /[a-z]/i.test(wait) ? (Date.parse(wait) - clock.now()) / 1_000 : Number(wait);
}

function bounded(wait: number, most: number): string {
  return String(wait > 0 ? Math.min(Math.ceil(wait), most) : 0);
}
