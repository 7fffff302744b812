/** The `config` of a destination: validation, masks, and what is encrypted of it. No I/O. */
import { hasAtMost } from '../base/characters.ts';
import { invalidField } from '../base/errors.ts';
import { storable } from '../base/storable.ts';
import type { DestinationKind, Field, FullConfig } from './kinds/kind.ts';

/** A config on the wire, secrets masked or not. */
export interface WireConfig {
  [member: string]: string | Record<string, string>;
}

/** Secret values by their path in the config: `apiKey`, `headers.authorization`. */
export type Secrets = Readonly<Record<string, string>>;

export interface StoredConfig {
  /** With masks. */
  shown: WireConfig;
  secrets: Secrets;
}

const MAX_LENGTH = 4_096;
const MAX_HEADERS = 32;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
/** Visible ASCII, with blanks between. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** Headers that the connection decides. */
const RESERVED =
  /^(?:connection|content-length|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect)$/i;
const MASK = /^\*{8}.{0,4}$/;
const SHOWN_CHARACTERS = 4;
const MIN_SHOWN_LENGTH = 16;

/** Secrets show their last characters if they are long enough. */
function masked(value: string): string {
  return `********${value.length >= MIN_SHOWN_LENGTH ? value.slice(-SHOWN_CHARACTERS) : ''}`;
}

/**
 * A config as it is stored. Throws GatewayError 400 with the field path.
 *
 * @param given of the request; members that are absent, and masked secrets, stay as they are in `before`. Null removes an
 *   optional member
 */
export function storedConfig(
  kind: DestinationKind,
  given: Readonly<Record<string, unknown>>,
  before: StoredConfig = { shown: {}, secrets: {} },
): StoredConfig {
  for (const name of Object.keys(given)) {
    if (name !== 'headers' && !Object.hasOwn(kind.fields, name)) {
      const known = [...Object.keys(kind.fields), 'headers'].join(', ');
      throw invalidField(`config.${name}`, `is unknown; a destination of type ${kind.type} has ${known}`);
    }
  }
  const shown: WireConfig = {};
  const secrets: Record<string, string> = {};
  for (const [name, field] of Object.entries(kind.fields)) {
    const previous = field.is === 'secret' ? before.secrets[name] : (before.shown[name] as string | undefined);
    const value = checkedValue(`config.${name}`, field, given[name], previous);
    if (value === undefined) continue;
    shown[name] = field.is === 'secret' ? masked(value) : value;
    if (field.is === 'secret') secrets[name] = value;
  }
  const headers = given['headers'] === undefined ? headersOf(before.secrets) : checkedHeaders(given['headers'], before);
  if (Object.keys(headers).length > 0) {
    shown['headers'] = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, masked(value)]));
    for (const [name, value] of Object.entries(headers)) secrets[HEADER_PREFIX + name] = value;
  }
  if (movesElsewhere(kind, before.shown, shown)) refuseKept(given, Object.keys(secrets));
  return { shown, secrets };
}

/** Whether requests go to another host than before. An address that was not given, or no longer is, is another one. */
function movesElsewhere({ fields }: DestinationKind, before: WireConfig, now: WireConfig): boolean {
  return Object.entries(fields).some(
    ([name, { is, namesHost }]) =>
      (is === 'url' && originOf(before[name]) !== originOf(now[name])) || (namesHost && before[name] !== now[name]),
  );
}

/** Null for a member that the config does not have. */
function originOf(member: WireConfig[string] | undefined): string | null {
  return typeof member === 'string' ? (URL.parse(member)?.origin ?? member) : null;
}

/** Stored secrets are not sent to a new address: the caller must send them again. */
function refuseKept(given: Readonly<Record<string, unknown>>, paths: readonly string[]): void {
  const headers = (given['headers'] ?? {}) as Readonly<Record<string, unknown>>;
  for (const path of paths) {
    const isHeader = path.startsWith(HEADER_PREFIX);
    const value = isHeader ? headers[path.slice(HEADER_PREFIX.length)] : given[path];
    if (value === undefined || (typeof value === 'string' && MASK.test(value))) {
      throw invalidField(`config.${path}`, 'must be given again, since the address changes');
    }
  }
}

const HEADER_PREFIX = 'headers.';

/** The config in clear text, for requests. */
export function fullConfig({ shown, secrets }: StoredConfig): FullConfig {
  const members: Record<string, string> = {};
  for (const [name, value] of Object.entries(shown)) {
    if (typeof value === 'string') members[name] = secrets[name] ?? value;
  }
  return { members, headers: lowerCased(headersOf(secrets)) };
}

/** So that a header which the type sets itself is sent once. */
function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function headersOf(secrets: Secrets): Record<string, string> {
  const entries = Object.entries(secrets).filter(([path]) => path.startsWith(HEADER_PREFIX));
  return Object.fromEntries(entries.map(([path, value]) => [path.slice(HEADER_PREFIX.length), value]));
}

function checkedValue(path: string, field: Field, given: unknown, previous: string | undefined): string | undefined {
  if (given === null && field.optional) return undefined;
  const isMask = field.is === 'secret' && typeof given === 'string' && MASK.test(given);
  if (given === undefined || (isMask && previous !== undefined)) {
    const value = previous ?? field.default;
    if (value === undefined && !field.optional) throw invalidField(path, 'is required');
    return value;
  }
  if (typeof given !== 'string' || given.trim() === '' || !hasAtMost(given, MAX_LENGTH)) {
    throw invalidField(path, `must be a text of 1 to ${MAX_LENGTH} characters`);
  }
  if (isMask) throw invalidField(path, 'is masked; the secret itself is needed');
  storable(path, given);
  if (field.choices !== undefined && !field.choices.includes(given)) {
    throw invalidField(path, `must be one of ${field.choices.join(', ')}`);
  }
  if (field.is === 'secret' && !HEADER_VALUE.test(given)) {
    throw invalidField(path, 'must consist of visible ASCII characters');
  }
  if (field.pattern !== undefined && !field.pattern.matches.test(given)) throw invalidField(path, field.pattern.says);
  return given;
}

function checkedHeaders(given: unknown, before: StoredConfig): Record<string, string> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalidField('config.headers', 'must be an object with a text for each header');
  }
  const entries = Object.entries(given);
  if (entries.length > MAX_HEADERS) throw invalidField('config.headers', `has more than ${MAX_HEADERS} headers`);
  const earlier = headersOf(before.secrets);
  const names = new Set<string>();
  return Object.fromEntries(
    entries.map(([name, value]: [string, unknown]) => {
      const path = `config.headers.${name}`;
      if (!HEADER_NAME.test(name)) throw invalidField('config.headers', 'has a name that is not the name of a header');
      if (RESERVED.test(name)) throw invalidField(path, 'is set by the connection');
      if (names.size === names.add(name.toLowerCase()).size) throw invalidField(path, 'occurs twice');
      if (typeof value === 'string' && MASK.test(value)) {
        if (Object.hasOwn(earlier, name)) return [name, earlier[name]!];
        throw invalidField(path, 'is masked; the value itself is needed');
      }
      if (typeof value !== 'string' || value.length > MAX_LENGTH || !HEADER_VALUE.test(value)) {
        throw invalidField(path, `must be a text of 1 to ${MAX_LENGTH} visible ASCII characters`);
      }
      return [name, value];
    }),
  );
}
