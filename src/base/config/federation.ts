/** The section `federation` of the yaml: whose JWTs are exchanged for access tokens, and for which (docs/guides/keys.md). */
import { isMap } from 'yaml';
import type { Field } from './field.ts';
import { type IssuerKey, readIssuerKey } from './issuer-key.ts';
import { distinct, duration, list, mapping, text, textLike } from './readers.ts';

/** A claim of a subject token; one of the patterns must fit it, in which `*` stands for any characters. */
export interface ClaimRule {
  name: string;
  /** Texts are patterns; numbers and truth values must be equal. */
  patterns: readonly (string | number | boolean)[];
}

export interface FederationPolicy {
  id: string;
  /** Exactly as it stands in `iss`. */
  issuer: string;
  /** One of them must stand in `aud`. */
  audience: readonly string[];
  /** An address; the keys themselves; null: the issuer's own document tells the address. */
  keys: string | readonly IssuerKey[] | null;
  claims: readonly ClaimRule[];
  /** Hash of the inference key that a token stands for. */
  keyHash: string;
  lifetimeMs: number;
}

/** wire/keys.md, `expires_in`. */
export const MAX_LIFETIME_MS = 900_000;
const MIN_LIFETIME_MS = 30_000;
const MAX_URL_LENGTH = 2_048;
const MOST_KEYS = 100;
const MOST_CLAIMS = 32;

const ID = textLike(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'letters, digits, dots, dashes and underscores');
const HASH = textLike(/^[0-9a-f]{64}$/, 'the hash of an inference key: 64 hexadecimal digits');
/** Checked for every token, by settings of their own or always. */
const STANDING_CLAIMS = new Set(['iss', 'aud', 'exp', 'nbf', 'iat']);

export function federation(field: Field): readonly FederationPolicy[] | undefined {
  const firstUse = new Map<string, string>();
  return list((item) => {
    const read = policy(item);
    if (read === undefined) return undefined;
    const other = firstUse.get(read.id);
    if (other !== undefined) return item.fail(`has the id of ${other}; ids must differ`);
    firstUse.set(read.id, item.path);
    return read;
  })(field);
}

function policy(field: Field): FederationPolicy | undefined {
  const shape = {
    ...{ id: ID, issuer: address, audience: oneOrMore, jwks_uri: address, jwks: keySet },
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

/** As it was written: issuers are compared letter by letter. */
function address(field: Field): string | undefined {
  const value = text(field);
  if (value === undefined) return undefined;
  return isIssuerAddress(value) ? value : field.fail('must be an https URL without credential, query or fragment');
}

/** Whether keys may be asked for there: over TLS, or of this machine, which the checked egress has to allow besides. */
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

function claimRules(field: Field): readonly ClaimRule[] | undefined {
  const members = field.membersOfAnyName();
  if (members === undefined) return undefined;
  if (members.size === 0) return field.fail('must name a claim at least, as anybody whom the issuer knows would fit');
  if (members.size > MOST_CLAIMS) return field.fail(`must have ${MOST_CLAIMS} members at most`);
  const rules: ClaimRule[] = [];
  for (const [name, member] of members) {
    if (STANDING_CLAIMS.has(name)) member.fail('cannot be set here: it is always checked');
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
  return read !== undefined && /^\*+$/.test(read) ? field.fail('must say more than *, which everything fits') : read;
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
