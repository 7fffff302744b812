/**
 * Parses resources from an identity provider into stored attributes: canonical names, checked types, no empty values.
 */
import { storable } from '../../base/storable.ts';
import {
  type Attribute,
  isCoreSchema,
  isExtensionId,
  knownExtension,
  named,
  type ResourceType,
  type Schema,
} from './attributes.ts';
import { refusal } from './fault.ts';

/** Attributes by name; those of an extension are under its id. */
export type Attributes = Record<string, unknown>;

const MAX_TEXT = 32_768;
const MAX_ITEMS = 200;
const MAX_BYTES = 131_072;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The attributes of a complete resource, from POST and PUT. Server-written and unknown members are ignored (RFC 7643,
 * section 3.3); group members are parsed elsewhere. Throws for values of a wrong type.
 */
export function readResource(type: ResourceType, body: unknown): Attributes {
  if (!isObject(body)) throw refusal('invalidSyntax', 'the body must be an object');
  const attributes = readAttributes(type.schema.attributes, body, '');
  const take = (name: string, value: unknown) => {
    if (Object.hasOwn(attributes, name)) throw refusal('invalidSyntax', `${name} appears twice`);
    attributes[name] = value;
  };
  for (const [key, value] of Object.entries(body)) {
    if (key.toLowerCase() === 'externalid' && value !== null) {
      take('externalId', readText(value, 'externalId'));
    } else if (isExtensionId(key) && isObject(value)) {
      if (isCoreSchema(key))
        throw refusal('invalidSyntax', `${key} is not an extension: its attributes have no prefix`);
      const extension = knownExtension(type, key);
      const read = extension ? readAttributes(extension.attributes, value, `${extension.id}:`) : opaque(key, value);
      if (Object.keys(read).length > 0) take(extension?.id ?? key, read);
    }
  }
  return checkSize(attributes);
}

/** Unknown extensions are stored and returned unchanged. */
export function opaque(id: string, value: Record<string, unknown>): Record<string, unknown> {
  if (/\\u0000/.test(JSON.stringify(value)))
    throw refusal('invalidValue', `${id} must not contain the character U+0000`);
  return { ...value };
}

export function checkSize(attributes: Attributes): Attributes {
  for (const [name, value] of Object.entries(attributes)) {
    if (Array.isArray(value)) checkCount(name, value);
  }
  if (Buffer.byteLength(JSON.stringify(attributes)) > MAX_BYTES) {
    throw refusal('invalidValue', `the attributes have more than ${MAX_BYTES} bytes`);
  }
  return attributes;
}

function checkCount(path: string, items: readonly unknown[]): void {
  if (items.length > MAX_ITEMS) throw refusal('invalidValue', `${path} has more than ${MAX_ITEMS} values`);
}

function readAttributes(known: Schema['attributes'], body: Record<string, unknown>, prefix: string): Attributes {
  const attributes: Attributes = {};
  for (const [key, value] of Object.entries(body)) {
    const attribute = named(known, key);
    if (attribute?.mutability !== 'readWrite' || attribute.name === 'members') continue;
    if (Object.hasOwn(attributes, attribute.name)) throw refusal('invalidSyntax', `${prefix}${key} appears twice`);
    const read = readValue(attribute, value, prefix + attribute.name);
    if (read !== undefined) attributes[attribute.name] = read;
  }
  return attributes;
}

/** The value to store; undefined for null and empty values. Throws for a value of a wrong type. */
export function readValue(attribute: Attribute, value: unknown, path: string): unknown {
  if (value === null || value === undefined) return undefined;
  if (!attribute.multiValued) return readSingle(attribute, value, path);
  const items = Array.isArray(value) ? value : [value];
  checkCount(path, items);
  const read = items.map((item, index) => readSingle(attribute, item, `${path}[${index}]`));
  const kept = read.filter((item) => item !== undefined);
  if (kept.length === 0) return undefined;
  if (attribute.type === 'complex') onePrimary(kept as Item[], kept as Item[]);
  return kept;
}

/** An item of a list of objects. */
export type Item = Record<string, unknown>;

/** Keeps at most one primary item (RFC 7643, section 2.4): the last of those just written. */
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
  // A manager or a role is often sent as its plain id.
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

/** Microsoft Entra sends `"True"` for true. */
function readBoolean(value: unknown, path: string): boolean {
  if (typeof value === 'boolean') return value;
  const word = typeof value === 'string' ? value.toLowerCase() : undefined;
  if (word === 'true' || word === 'false') return word === 'true';
  throw refusal('invalidValue', `${path} must be true or false`);
}

function readText(value: unknown, path: string): string {
  const text = typeof value === 'number' && Number.isFinite(value) ? String(value) : value;
  if (typeof text !== 'string') throw refusal('invalidValue', `${path} must be a string`);
  if (text.length > MAX_TEXT) throw refusal('invalidValue', `${path} has more than ${MAX_TEXT} characters`);
  return storable(path, text);
}

export function sameAttributes(a: Attributes, b: Attributes): boolean {
  return canonical(a) === canonical(b);
}

/** JSON with sorted keys, because the database does not keep their order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1))) : member,
  );
}
