/** Finders of e-mail addresses and of secrets. */
import { all } from './numbers.ts';
import { allAt, type Offsets, offsetsOf } from './offsets.ts';
import type { Span } from './reading.ts';

const LOCAL_PART = /[\p{L}\p{N}._%+'-]/u;
const LOCAL_ASCII = Uint8Array.from({ length: 128 }, (_, code) => Number(LOCAL_PART.test(String.fromCharCode(code))));
const DOMAIN = /(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,10}\p{L}{2,24}/uy;
const LONGEST_LOCAL = 64;
/** File name extensions that are not top-level domains. */
const FILE_ENDINGS = /\.(?:png|jpe?g|gif|webp|svg|[jt]sx?|mjs|css|json|html)$/i;
/** The user part of a URL, as in `postgres://user:password@host`. */
const AUTHORITY = /:\/\/[^\s/?#]*$/;

export function emails(text: string): Span[] {
  const spans: Span[] = [];
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    let start = at;
    while (start > 0 && at - start < LONGEST_LOCAL && isLocal(text, start - 1)) start -= 1;
    while (start < at && /[.'-]/.test(text[start]!)) start += 1;
    DOMAIN.lastIndex = at + 1;
    const domain = DOMAIN.exec(text)?.[0];
    if (start === at || domain === undefined || FILE_ENDINGS.test(domain)) continue;
    if (AUTHORITY.test(text.slice(Math.max(0, start - 100), start))) continue;
    const end = at + 1 + domain.length;
    // git@github.com:owner/name
    if (text.slice(start, at) === 'git' && text[end] === ':') continue;
    spans.push({ start, end });
  }
  return spans;
}

function isLocal(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < 128 ? LOCAL_ASCII[code] === 1 : LOCAL_PART.test(text[at]!);
}

/** Each begins at the start of a word, with a prefix that `offsets.ts` lists. */
const TOKENS = new RegExp(
  `(?<![0-9A-Za-z_-])(?:${[
    '(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Za-z])',
    'gh[pousr]_[0-9A-Za-z]{30,255}',
    'github_pat_[0-9A-Za-z_]{22,255}',
    'gl(?:pat|dt|rt)-[0-9A-Za-z_-]{20,}',
    'sk-(?!svc-)[0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]{19,}',
    'sk-svc-[0-9A-Za-z_-]{20,}',
    '(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{16,}',
    'whsec_[0-9A-Za-z+/=]{20,}',
    'xox[abeprs]-[0-9A-Za-z-]{10,}',
    'xapp-\\d-[0-9A-Za-z-]{10,}',
    'AIza[0-9A-Za-z_-]{35}',
    'ya29\\.[0-9A-Za-z_-]{20,}',
    'GOCSPX-[0-9A-Za-z_-]{20,}',
    'eyJ[0-9A-Za-z_-]{10,}\\.eyJ[0-9A-Za-z_-]{10,}\\.[0-9A-Za-z_-]{10,}',
    'SG\\.[0-9A-Za-z_-]{16,}\\.[0-9A-Za-z_-]{16,}',
    'npm_[0-9A-Za-z]{36}',
    'pypi-[0-9A-Za-z_-]{50,}',
    'hf_[0-9A-Za-z]{30,}',
    'dop_v1_[0-9a-f]{64}',
    'shpat_[0-9a-f]{32}',
    'AGE-SECRET-KEY-1[0-9A-Z]{50,}',
  ].join('|')})`,
  'y',
);
const KEY_BEGINS = '-----BEGIN';
const KEY_HEAD = /-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----/y;
const KEY_END = /-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----/g;
const LONGEST_KEY_HEAD = 70;
const PRIVATE_KEY = new RegExp(`${KEY_HEAD.source}[\\s\\S]*?(?:${KEY_END.source}|$)`, 'g');
const PASSWORD_IN_ADDRESS = /(?<![0-9A-Za-z+.-])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/?#@]{1,100}:([^\s/?#@]{3,200})@/dg;
/** Ignores characters before the word, as in `db_password`. `offsets.ts` lists the beginning of each word. */
const ASSIGNED =
  /(?<![0-9A-Za-z])(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key|client[_-]?secret)["']?\s{0,5}(?:[:=]|=>|:=)\s{0,5}["']?([^\s"',;)}\]]{8,200})/iy;
/** Placeholders for secrets, and expressions that load them. */
const PLACEHOLDER =
  /^(?:<|\$|\{|%|\*+|x{4,}|\.{3}|your|my|example|changeme|placeholder|redacted|process\.|os\.|env|getenv|null|none|undefined|true|false|string|required)|[([]|\*{4}|\.{3}/i;

/** Private keys from an offset on, truncated to `longest` characters. */
export function privateKeys(text: string, longest: number, from: number): Span[] {
  if (!text.includes(KEY_BEGINS, from)) return [];
  const spans: Span[] = [];
  for (const { start, end } of all(PRIVATE_KEY, text.slice(from))) {
    spans.push({ start: start + from, end: Math.min(end, start + longest) + from });
  }
  return spans;
}

/**
 * The first offset at or after `from` where an unfinished private key may begin; the text's length if there is none.
 */
export function privateKeyMayBegin(text: string, from: number): number {
  const found = firstOpenKey(text, from);
  if (found !== -1) return found;
  for (let length = Math.min(KEY_BEGINS.length - 1, text.length - from); length > 0; length--) {
    if (KEY_BEGINS.startsWith(text.slice(text.length - length))) return text.length - length;
  }
  return text.length;
}

/** Where an unfinished private key begins; -1 if there is none. */
function firstOpenKey(text: string, from: number): number {
  let at = text.indexOf(KEY_BEGINS, from);
  while (at !== -1) {
    KEY_HEAD.lastIndex = at;
    const headed = KEY_HEAD.test(text);
    if (!headed && text.length - at <= LONGEST_KEY_HEAD) return at;
    if (headed) {
      KEY_END.lastIndex = at;
      if (!KEY_END.test(text)) return at;
    }
    at = text.indexOf(KEY_BEGINS, headed ? KEY_END.lastIndex : at + 1);
  }
  return -1;
}

export function secrets(text: string, { tokens, assigned }: Offsets = offsetsOf(text)): Span[] {
  const spans = allAt(TOKENS, text, tokens);
  if (text.includes(KEY_BEGINS)) spans.push(...all(PRIVATE_KEY, text));
  if (text.includes('://')) spans.push(...passwordsInAddresses(text));
  for (const { start, end } of allAt(ASSIGNED, text, assigned)) {
    ASSIGNED.lastIndex = start;
    const value = ASSIGNED.exec(text)![1]!;
    if (!PLACEHOLDER.test(value) && isMixed(value)) spans.push({ start: end - value.length, end });
  }
  return spans;
}

/** Private keys and assigned secrets may continue on the next line, so their beginnings alone are reported. */
export function secretsInLines(text: string, { tokens, assigned }: Offsets): Span[] {
  const spans = [...allAt(TOKENS, text, tokens), ...allAt(ASSIGNED, text, assigned)];
  if (text.includes('://')) spans.push(...passwordsInAddresses(text));
  for (let at = text.indexOf(KEY_BEGINS); at !== -1; at = text.indexOf(KEY_BEGINS, at + 1)) {
    spans.push({ start: at, end: at + KEY_BEGINS.length });
  }
  return spans;
}

function passwordsInAddresses(text: string): Span[] {
  return groups(PASSWORD_IN_ADDRESS, text, (value) => !PLACEHOLDER.test(value));
}

/** Plain words are not secrets; a mix of letters with digits or signs may be one. */
function isMixed(value: string): boolean {
  return /[A-Za-z]/.test(value) && /[0-9!#$%^&*+/@=]/.test(value);
}

/** Ranges of the first group of each match. */
function groups(pattern: RegExp, text: string, keeps: (value: string) => boolean): Span[] {
  const spans: Span[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const place = match.indices?.[1];
    if (place !== undefined && keeps(match[1]!)) spans.push({ start: place[0], end: place[1] });
  }
  return spans;
}
