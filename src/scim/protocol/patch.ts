/**
 * PATCH (RFC 7644, section 3.5.2). Operations are normalized first, for all vendors: names in any case, booleans as
 * strings, dotted keys, partial resources without a path, and single values for lists. `scim-patch` then applies each
 * to a copy. Either all operations apply, or the first one that fails refuses the request.
 */
import type { ScimPatchOperation, ScimResource } from 'scim-patch';
import { type Attribute, isExtensionId, knownExtension, type ResourceType } from './attributes.ts';
import { holds } from './condition.ts';
import { refusal } from './fault.ts';
import { libraries } from './libraries.ts';
import { type MemberStep, memberStep } from './member-steps.ts';
import { plainItem, readPath, type Target } from './patch-path.ts';
import {
  type Attributes,
  checkSize,
  type Item,
  isObject,
  onePrimary,
  opaque,
  readSingle,
  readValue,
} from './resource.ts';

interface Patched {
  attributes: Attributes;
  /** Changes of a group's members, in order. */
  members: readonly MemberStep[];
}

export type Verb = 'add' | 'remove' | 'replace';

interface Operation {
  /** Position for messages, e.g. `Operations[0]`. */
  at: string;
  verb: Verb;
  path: string | undefined;
  value: unknown;
}

const MAX_OPERATIONS = 1_000;
const PATCH_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
/** Members that only the server writes; clients that send them back do not mean to change them. */
const SERVER_NAMES = new Set(['schemas', 'meta', 'groups']);

/** @param id of the resource; @param current its attributes, which are not modified. Throws 400 with a scimType. */
export function applyPatch(type: ResourceType, id: string, current: Attributes, body: unknown): Patched {
  const patch = new Patch(type, id, structuredClone(current));
  for (const operation of readOperations(body)) patch.apply(operation);
  return { attributes: checkSize(withoutEmpty(patch.attributes)), members: patch.members };
}

function readOperations(body: unknown): Operation[] {
  const { schemas, operations } = lowerKeys(body, 'the body');
  if (schemas !== undefined && !(Array.isArray(schemas) && schemas.some(isPatchSchema))) {
    throw refusal('invalidSyntax', `schemas must name ${PATCH_SCHEMA}`);
  }
  if (!Array.isArray(operations) || operations.length === 0) {
    throw refusal('invalidSyntax', 'Operations must be a list with at least one operation');
  }
  if (operations.length > MAX_OPERATIONS) {
    throw refusal('tooMany', `Operations has more than ${MAX_OPERATIONS} operations`);
  }
  return operations.map((each: unknown, index) => {
    const at = `Operations[${index}]`;
    const { op, path, value } = lowerKeys(each, at);
    const verb = typeof op === 'string' ? op.toLowerCase() : undefined;
    if (verb !== 'add' && verb !== 'remove' && verb !== 'replace') {
      throw refusal('invalidSyntax', `${at}.op must be add, remove or replace`);
    }
    if (path !== undefined && path !== null && typeof path !== 'string') {
      throw refusal('invalidPath', `${at}.path must be a string`);
    }
    if (verb !== 'remove' && value === undefined) throw refusal('invalidSyntax', `${at}.value is required`);
    return { at, verb, path: path === '' ? undefined : (path ?? undefined), value };
  });
}

/** Schema ids are case-insensitive. */
function isPatchSchema(schema: unknown): boolean {
  return typeof schema === 'string' && schema.toLowerCase() === PATCH_SCHEMA.toLowerCase();
}

function lowerKeys(value: unknown, at: string): Record<string, unknown> {
  if (!isObject(value)) throw refusal('invalidSyntax', `${at} must be an object`);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toLowerCase(), member]));
}

class Patch {
  readonly attributes: Attributes;
  readonly members: MemberStep[] = [];
  readonly #type: ResourceType;
  readonly #id: string;

  constructor(type: ResourceType, id: string, attributes: Attributes) {
    this.#type = type;
    this.#id = id;
    this.attributes = attributes;
  }

  apply({ at, verb, path, value }: Operation): void {
    if (path !== undefined) {
      if (!this.#applyAt(at, verb, path, value))
        throw refusal('invalidPath', `${at}.path is not a known attribute: ${path}`);
      return;
    }
    if (verb === 'remove') throw refusal('noTarget', `${at}.path is required for remove`);
    if (!isObject(value)) throw refusal('invalidSyntax', `${at}.value must be an object if there is no path`);
    this.#applyPartial(at, verb, value);
  }

  /**
   * Applies a partial resource. Unknown names are ignored as in a complete resource, but refused if there are no
   * others.
   */
  #applyPartial(at: string, verb: Verb, value: Record<string, unknown>): void {
    const entries = Object.entries(value);
    const unknown = entries.filter(([key, member]) => {
      if (SERVER_NAMES.has(key.toLowerCase())) return false;
      if (isExtensionId(key) && isObject(member) && !/[[\]]/.test(key)) {
        this.#applyExtension(at, verb, key, member);
        return false;
      }
      return !this.#applyAt(at, verb, key, member);
    });
    if (unknown.length > 0 && unknown.length === entries.length) {
      throw refusal(
        'invalidPath',
        `${at}.value has no known attribute: ${unknown
          .map(([key]) => key)
          .join(', ')
          .slice(0, 200)}`,
      );
    }
  }

  #applyExtension(at: string, verb: Verb, id: string, value: Record<string, unknown>): void {
    const extension = knownExtension(this.#type, id);
    if (extension) {
      for (const [key, member] of Object.entries(value)) this.#applyAt(at, verb, `${extension.id}:${key}`, member);
    } else if (!this.#applyAt(at, verb, id, value)) {
      throw refusal('invalidPath', `${at} names an invalid extension: ${id}`);
    }
  }

  /** Returns false if no schema has the attribute. */
  #applyAt(at: string, verb: Verb, path: string, value: unknown): boolean {
    const target = readPath(this.#type, path);
    if (!target) return false;
    switch (target.kind) {
      case 'extension':
        if (verb === 'remove') delete this.attributes[target.id];
        else if (isObject(value)) this.#applyExtension(at, verb, target.id, value);
        else throw refusal('invalidValue', `${at}.value must be an object`);
        return true;
      case 'opaque':
        this.#applyOpaque(verb, target, value);
        return true;
      case 'attribute':
        this.#applyAttribute(at, verb, path, target, value);
        return true;
    }
  }

  #applyOpaque(verb: Verb, { id, name }: Target & { kind: 'opaque' }, value: unknown): void {
    const { attributes } = this;
    // The path of a whole extension has the same form as that of an attribute in one.
    const whole = `${id}:${name}`;
    if (Object.hasOwn(attributes, whole) || (isObject(value) && !Object.hasOwn(attributes, id))) {
      if (verb === 'remove' || value === null) delete attributes[whole];
      else if (isObject(value)) attributes[whole] = { ...(attributes[whole] as object), ...opaque(whole, value) };
      else throw refusal('invalidValue', `${whole} must be an object`);
      return;
    }
    const scope = { ...(attributes[id] as object) } as Attributes;
    if (verb === 'remove' || value === null) delete scope[name];
    else scope[name] = opaque(whole, { value })['value'];
    attributes[id] = scope;
  }

  #applyAttribute(at: string, verb: Verb, path: string, target: Target & { kind: 'attribute' }, value: unknown): void {
    const { attribute } = target.attributePath;
    if (attribute.name === 'members') {
      this.members.push(memberStep(at, verb, target, value));
    } else if (attribute.name === 'id' && value === this.#id && verb !== 'remove') {
      // Okta sends the unchanged id.
    } else if (attribute.mutability === 'readOnly' || attribute.name === 'schemas') {
      throw refusal('mutability', `${at}: ${path} cannot be changed`);
    } else if (attribute.mutability === 'readWrite') {
      const scope = this.#scope(target.attributePath.extension);
      if (attribute.multiValued && (target.filter || target.attributePath.sub))
        patchItems(scope, at, verb, target, value);
      else patchWhole(scope, at, verb, target, value);
    }
  }

  #scope(extension: string | undefined): Attributes {
    if (extension === undefined) return this.attributes;
    this.attributes[extension] ??= {};
    return this.attributes[extension] as Attributes;
  }
}

type AttributeTarget = Target & { kind: 'attribute' };

/** A single attribute, a sub-attribute of a complex one, or a complete list. */
function patchWhole(
  scope: Attributes,
  at: string,
  verb: Verb,
  { attributePath }: AttributeTarget,
  given: unknown,
): void {
  const { attribute, sub } = attributePath;
  const path = sub ? `${attribute.name}.${sub.name}` : attribute.name;
  if (verb === 'remove') {
    if (attribute.multiValued && given !== undefined && given !== null) removeListed(scope, at, attribute, given);
    else run(scope, { op: 'remove', path });
    return;
  }
  const value = readValue(sub ?? attribute, unwrapped(sub ?? attribute, given), `${at}.value`);
  // A null value or an empty list means no value.
  if (value === undefined) {
    if (verb === 'replace' || given === null) run(scope, { op: 'remove', path });
    return;
  }
  run(scope, { op: verb, path, value });
  if (attribute.multiValued) onePrimary(scope[attribute.name] as Item[], value as Item[]);
}

/** Some items of a list, or a sub-attribute of each. */
function patchItems(
  scope: Attributes,
  at: string,
  verb: Verb,
  { attributePath, filter }: AttributeTarget,
  given: unknown,
): void {
  const { attribute, sub } = attributePath;
  const items = (scope[attribute.name] ?? []) as Item[];
  const touched = filter ? items.filter((item) => holds(filter, item)) : [...items];
  const value =
    verb === 'remove'
      ? undefined
      : readSingle(
          sub ?? { ...attribute, multiValued: false },
          unwrapped({ ...(sub ?? attribute), multiValued: false }, given),
          `${at}.value`,
        );
  if (value === undefined) {
    if (sub) for (const item of touched) delete item[sub.name];
    else scope[attribute.name] = items.filter((item) => !touched.includes(item));
    return;
  }
  if (touched.length === 0) {
    const item = filter ? plainItem(filter) : {};
    if (!item) throw refusal('noTarget', `${at}.path matches nothing`);
    touched.push(item);
    items.push(item);
  }
  for (const item of touched) run(item, sub ? { op: 'replace', path: sub.name, value } : { op: 'replace', value });
  scope[attribute.name] = items;
  onePrimary(items, touched);
}

/** Removes the items given by value, as Microsoft Entra sends them instead of a path. */
function removeListed(scope: Attributes, at: string, attribute: Attribute, given: unknown): void {
  const listed = (readValue(attribute, given, `${at}.value`) ?? []) as Item[];
  const items = (scope[attribute.name] ?? []) as Item[];
  const key = attribute.subAttributes?.some(({ name }) => name === 'value') ? 'value' : undefined;
  const matches = (item: Item, named: Item) =>
    key !== undefined && named[key] !== undefined
      ? String(item[key]).toLowerCase() === String(named[key]).toLowerCase()
      : Object.entries(named).every(([name, value]) => item[name] === value);
  scope[attribute.name] = items.filter((item) => !listed.some((named) => matches(item, named)));
}

/** Unwraps `[{"value": "x"}]` for a single-valued attribute, as older provisioning jobs of Microsoft Entra send it. */
function unwrapped(attribute: Attribute, value: unknown): unknown {
  if (attribute.multiValued) return value;
  const single = Array.isArray(value) && value.length === 1 ? (value[0] as unknown) : value;
  return attribute.type !== 'complex' && isObject(single) && Object.hasOwn(single, 'value') ? single['value'] : single;
}

function run(scope: Attributes, operation: { op: Verb; path?: string; value?: unknown }): void {
  libraries().scimPatch(scope as unknown as ScimResource, [operation as ScimPatchOperation]);
}

/** Removes objects and lists that became empty, because they are not values. */
function withoutEmpty(attributes: Attributes): Attributes {
  const kept = Object.entries(attributes).flatMap(([key, value]): [string, unknown][] => {
    if (Array.isArray(value)) {
      const items = value.filter((item) => !isObject(item) || Object.keys(item).length > 0);
      return items.length === 0 ? [] : [[key, items]];
    }
    if (!isObject(value)) return value === undefined ? [] : [[key, value]];
    const inner = withoutEmpty(value);
    return Object.keys(inner).length === 0 ? [] : [[key, inner]];
  });
  return Object.fromEntries(kept);
}
