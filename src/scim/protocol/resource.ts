/** Reading what an identity provider sends into attributes as they are kept: right names, right types, nothing empty. */
import { storable } from '../../base/storable.ts';
import { type Attribute, isExtensionId, knownExtension, named, type ResourceType, type Schema } from './attributes.ts';
import { refusal } from './fault.ts';

/** Attributes by their names, those of an extension under its id. */
export type Attributes = Record<string, unknown>;

const MAX_TEXT = 32_768;
const MAX_ITEMS = 200;
const MAX_BYTES = 131_072;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The attributes of a whole resource, as POST and PUT bring it. What only the server writes is left out, and so are names
 * that no schema has (RFC 7644, section 3.3); members of groups are read elsewhere. Throws for values of a wrong type.
 */
export function readResource(type: ResourceType, body: unknown): Attributes {
  if (!isObject(body)) throw refusal('invalidSyntax', 'the body must be an object');
  const attributes = readAttributes(type.schema.attributes, body, '');
  const take = (name: string, value: unknown) => {
    if (Object.hasOwn(attributes, name)) throw refusal('invalidSyntax', `${name} is given twice`);
    attributes[name] = value;
  };
  for (const [key, value] of Object.entries(body)) {
    if (key.toLowerCase() === 'externalid' && value !== null) {
      take('externalId', readText(value, 'externalId'));
    } else if (isExtensionId(key) && isObject(value)) {
      const extension = knownExtension(type, key);
      const read = extension ? readAttributes(extension.attributes, value, `${extension.id}:`) : opaque(key, value);
      if (Object.keys(read).length > 0) take(extension?.id ?? key, read);
    }
  }
  return checkSize(attributes);
}

/** What nobody here knows is kept as it came, so that it is told as it was. */
export function opaque(id: string, value: Record<string, unknown>): Record<string, unknown> {
  if (/\\u0000/.test(JSON.stringify(value)))
    throw refusal('invalidValue', `${id} must not contain the character U+0000`);
  return { ...value };
}

export function checkSize(attributes: Attributes): Attributes {
  if (Buffer.byteLength(JSON.stringify(attributes)) > MAX_BYTES) {
    throw refusal('invalidValue', `the attributes have more than ${MAX_BYTES} bytes`);
  }
  return attributes;
}

function readAttributes(known: Schema['attributes'], body: Record<string, unknown>, prefix: string): Attributes {
  const attributes: Attributes = {};
  for (const [key, value] of Object.entries(body)) {
    const attribute = named(known, key);
    if (attribute?.mutability !== 'readWrite' || attribute.name === 'members') continue;
    if (Object.hasOwn(attributes, attribute.name)) throw refusal('invalidSyntax', `${prefix}${key} is given twice`);
    const read = readValue(attribute, value, prefix + attribute.name);
    if (read !== undefined) attributes[attribute.name] = read;
  }
  return attributes;
}

/** The value as it is kept; undefined for one that says that there is none. Throws for a value of a wrong type. */
export function readValue(attribute: Attribute, value: unknown, path: string): unknown {
  if (value === null || value === undefined) return undefined;
  if (!attribute.multiValued) return readSingle(attribute, value, path);
  const items = Array.isArray(value) ? value : [value];
  if (items.length > MAX_ITEMS) throw refusal('invalidValue', `${path} has more than ${MAX_ITEMS} values`);
  const read = items.map((item, index) => readSingle(attribute, item, `${path}[${index}]`));
  const kept = read.filter((item) => item !== undefined);
  if (kept.length === 0) return undefined;
  if (attribute.type === 'complex') onePrimary(kept as Item[], kept as Item[]);
  return kept;
}

/** One of a list of objects. */
export type Item = Record<string, unknown>;

/** At most one item is the primary one (RFC 7643, section 2.4): the last of those that were just written. */
export function onePrimary(items: readonly Item[], written: readonly Item[]): void {
  const winner = written.findLast((item) => item['primary'] === true);
  if (!winner) return;
  for (const item of items) if (item !== winner && item['primary'] === true) item['primary'] = false;
}

/** One value, or one item of a list. */
export function readSingle(attribute: Attribute, value: unknown, path: string): unknown {
  if (value === null || value === undefined) return undefined;
  switch (attribute.type) {
    case 'complex':
      return readComplex(attribute, value, path);
    case 'boolean':
      return readBoolean(value, path);
    default:
      return readText(value, path);
  }
}

function readComplex(attribute: Attribute, value: unknown, path: string): Record<string, unknown> | undefined {
  const known = attribute.subAttributes ?? [];
  const plain = named(known, 'value');
  // A manager or a role is often told by its id alone.
  const body = !isObject(value) && plain ? { value } : value;
  if (!isObject(body)) throw refusal('invalidValue', `${path} must be an object`);
  const read: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(body)) {
    const sub = named(known, key);
    const kept = sub && readSingle(sub, item, `${path}.${sub.name}`);
    if (kept !== undefined) read[sub!.name] = kept;
  }
  return Object.keys(read).length === 0 ? undefined : read;
}

/** Microsoft Entra writes `"True"` for true. */
function readBoolean(value: unknown, path: string): boolean {
  if (typeof value === 'boolean') return value;
  const word = typeof value === 'string' ? value.toLowerCase() : undefined;
  if (word === 'true' || word === 'false') return word === 'true';
  throw refusal('invalidValue', `${path} must be true or false`);
}

function readText(value: unknown, path: string): string {
  const text = typeof value === 'number' && Number.isFinite(value) ? String(value) : value;
  if (typeof text !== 'string') throw refusal('invalidValue', `${path} must be a text`);
  if (text.length > MAX_TEXT) throw refusal('invalidValue', `${path} has more than ${MAX_TEXT} characters`);
  return storable(path, text);
}

export function sameAttributes(a: Attributes, b: Attributes): boolean {
  return canonical(a) === canonical(b);
}

/** The database does not keep the order of keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1))) : member,
  );
}
