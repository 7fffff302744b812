/** The section `federation` of the yaml: policies for exchanging JWTs for access tokens (docs/guides/keys.md). */
import { isMap } from 'yaml';
import type { Field } from './field.ts';
import { type IssuerKey, readIssuerKey } from './issuer-key.ts';
import { distinct, duration, list, mapping, text, textLike } from './readers.ts';

/** A claim of a subject token. One of the patterns must match it; `*` matches any characters. */
export interface ClaimRule {
  name: string;
  /** Strings are patterns; numbers and booleans must be equal. */
  patterns: readonly (string | number | boolean)[];
}

export interface FederationPolicy {
  id: string;
  /** Exact value of `iss`. */
  issuer: string;
  /** `aud` must contain one of them. */
  audience: readonly string[];
  /** A URL, the keys themselves, or null: the URL comes from the issuer's discovery document. */
  keys: string | readonly IssuerKey[] | null;
  claims: readonly ClaimRule[];
  /** Hash of the inference key that a token acts as. */
  keyHash: string;
  lifetimeMs: number;
}

/** Bounds and default of `expires_in`. */
export const MAX_LIFETIME_MS = 900_000;
const MIN_LIFETIME_MS = 30_000;
const MAX_URL_LENGTH = 2_048;
const MOST_KEYS = 100;
const MOST_CLAIMS = 32;

const ID = textLike(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'letters, digits, dots, dashes and underscores');
const HASH = textLike(/^[0-9a-f]{64}$/, 'the hash of an inference key: 64 hexadecimal digits');
/** Claims that are always checked, or that have settings of their own. */
const CHECKED_CLAIMS = new Set(['iss', 'aud', 'exp', 'nbf', 'iat']);

export function federation(field: Field): readonly FederationPolicy[] | undefined {
  const firstUse = new Map<string, string>();
  return list((item) => {
    const read = policy(item);
    if (read === undefined) return undefined;
    const other = firstUse.get(read.id);
    if (other !== undefined) return item.fail(`has the id of ${other}; ids must be unique`);
    firstUse.set(read.id, item.path);
    return read;
  })(field);
}

function policy(field: Field): FederationPolicy | undefined {
  const shape = {
    ...{ id: ID, issuer: issuerAddress, audience: oneOrMore, jwks_uri: issuerAddress, jwks: keySet },
    ...{ claims: claimRules, key: HASH, lifetime },
  };
  const read = mapping(field, shape, ['id', 'issuer', 'audience', 'claims', 'key']);
  if (read?.jwks_uri !== undefined && read.jwks !== undefined)
    return field.fail('has both jwks_uri and jwks; give one');
  if (!read?.id || !read.issuer || !read.audience || !read.claims || !read.key) return undefined;
  return {
    ...{ id: read.id, issuer: read.issuer, audience: read.audience, claims: read.claims, keyHash: read.key },
    keys: read.jwks_uri ?? read.jwks ?? null,
    lifetimeMs: read.lifetime ?? MAX_LIFETIME_MS,
  };
}

/** Not normalized: issuers are compared exactly. */
export function issuerAddress(field: Field): string | undefined {
  const value = text(field);
  if (value === undefined) return undefined;
  return isIssuerAddress(value) ? value : field.fail('must be an https URL without credential, query or fragment');
}

/** Whether keys may be fetched there: over TLS, or from this machine, which the checked egress must also allow. */
export function isIssuerAddress(value: string): boolean {
  const url = URL.parse(value);
  if (url === null || value.length > MAX_URL_LENGTH || /[\s#?]/.test(value)) return false;
  if (url.username !== '' || url.password !== '') return false;
  return (
    url.protocol === 'https:' || (url.protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname))
  );
}

function oneOrMore(field: Field): readonly string[] | undefined {
  if (!field.isList) return toList(text(field));
  const values = distinct(text)(field);
  return values?.length === 0 ? field.fail('must not be empty') : values;
}

function toList<T>(value: T | undefined): readonly T[] | undefined {
  return value === undefined ? undefined : [value];
}

function lifetime(field: Field): number | undefined {
  const value = duration(field);
  if (value === undefined || (value >= MIN_LIFETIME_MS && value <= MAX_LIFETIME_MS)) return value;
  return field.fail('must be from 30s to 900s');
}

export function claimRules(field: Field): readonly ClaimRule[] | undefined {
  const members = field.membersOfAnyName();
  if (members === undefined) return undefined;
  if (members.size === 0) return field.fail('must name at least one claim, or every token of the issuer would match');
  if (members.size > MOST_CLAIMS) return field.fail(`must have ${MOST_CLAIMS} members at most`);
  const rules: ClaimRule[] = [];
  for (const [name, member] of members) {
    if (CHECKED_CLAIMS.has(name)) member.fail('cannot be set here: it is always checked');
    const patterns = member.isList ? list(pattern)(member) : toList(pattern(member));
    if (patterns?.length === 0) member.fail('must not be empty');
    if (patterns !== undefined) rules.push({ name, patterns });
  }
  return rules;
}

function pattern(field: Field): string | number | boolean | undefined {
  const scalar = field.scalar();
  if (scalar === undefined) return undefined;
  const { value } = scalar;
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return value as number | boolean;
  const read = text(field);
  return read !== undefined && /^\*+$/.test(read) ? field.fail('must not be only *, which matches everything') : read;
}

/** `{keys: [...]}`, as issuers publish it. */
function keySet(field: Field): readonly IssuerKey[] | undefined {
  const keys = isMap(field.node) ? field.membersOfAnyName()?.get('keys') : undefined;
  if (keys === undefined) return field.fail('must be a JWK Set: a mapping with the member keys');
  const read = list(issuerKey)(keys);
  if (read === undefined || (read.length > 0 && read.length <= MOST_KEYS)) return read;
  return keys.fail(`must have from 1 to ${MOST_KEYS} usable keys`);
}

function issuerKey(field: Field): IssuerKey | undefined {
  const key = readIssuerKey(field.node.toJS(field.source.document));
  return typeof key === 'string' ? field.fail(key) : key;
}
