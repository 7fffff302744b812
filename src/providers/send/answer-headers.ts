/** Headers of upstream responses: which are kept and passed on. Pure. */
import type { Clock } from '../../base/clock.ts';
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

/** Without the headers that only the transport reads; `retry-after` in seconds. */
export function shownHeaders(headers: Record<string, string>, clock: Clock): Record<string, string> {
  // The usual case costs no object.
  if (!('content-encoding' in headers || 'keep-alive' in headers || 'retry-after' in headers)) return headers;
  const { 'content-encoding': _encoding, 'keep-alive': _hint, ...shown } = headers;
  const wait = shown['retry-after'];
  if (wait !== undefined && /[a-z]/i.test(wait)) shown['retry-after'] = secondsUntil(wait, clock);
  return shown;
}

/** Converts the date variant of `retry-after` to seconds from now; 0 for a past or invalid date. */
function secondsUntil(date: string, clock: Clock): string {
  const ms = Date.parse(date) - clock.now();
  return String(ms > 0 ? Math.ceil(ms / 1000) : 0);
}
