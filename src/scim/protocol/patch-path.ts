/** The paths of patches (RFC 7644, section 3.5.2): an attribute, items of a list by a filter, an attribute of either. */
import {
  isExtensionId,
  knownExtension,
  named,
  type Place,
  placeOf,
  type ResourceType,
  splitPrefix,
} from './attributes.ts';
import { type Condition, readItemFilter } from './condition.ts';
import { refusal } from './fault.ts';

export type Target =
  /** An attribute, with all items of a list or those that fulfil `filter`; `place.sub` is the attribute of each. */
  | { readonly kind: 'attribute'; readonly place: Place; readonly filter: Condition | undefined }
  /** All attributes of an extension. */
  | { readonly kind: 'extension'; readonly id: string }
  /** An attribute of an extension that nobody here knows. */
  | { readonly kind: 'opaque'; readonly id: string; readonly name: string };

const MAX_LENGTH = 4_096;
const PATH = /^((?:urn:[^[\]"]*:)?)([a-z$][\w$-]*)(?:\[(.*)\])?(?:\.([a-z$][\w$-]*))?$/is;
const OWN_SCHEMAS = /^urn:ietf:params:scim:schemas:core:/i;

/** undefined for what no schema has. Throws 400 for a path that cannot be read. */
export function readPath(type: ResourceType, path: string): Target | undefined {
  if (path.length > MAX_LENGTH) throw refusal('invalidPath', `the path has more than ${MAX_LENGTH} characters`);
  const extension = knownExtension(type, path);
  if (extension) return { kind: 'extension', id: extension.id };
  const [, prefix = '', name = '', filter, sub] = PATH.exec(path) ?? [];
  if (name === '') throw refusal('invalidPath', `the path cannot be read: ${path.slice(0, 200)}`);
  const place = placeOf(type, `${prefix}${name}${filter === undefined && sub !== undefined ? `.${sub}` : ''}`);
  if (!place) return opaqueTarget(type, path);
  if (filter === undefined) return { kind: 'attribute', place, filter: undefined };
  if (!place.attribute.multiValued || !place.attribute.subAttributes) {
    throw refusal('invalidPath', `${name} is no list of objects, so it takes no brackets`);
  }
  const subAttribute = sub === undefined ? undefined : named(place.attribute.subAttributes, sub);
  if (sub !== undefined && !subAttribute) return undefined;
  return { kind: 'attribute', place: { ...place, sub: subAttribute }, filter: readItemFilter(place, filter) };
}

function opaqueTarget(type: ResourceType, path: string): Target | undefined {
  const [id, name] = splitPrefix(path);
  if (id === undefined || name === '' || !isExtensionId(id)) return undefined;
  // What a known schema does not have is a mistake, not an extension.
  if (OWN_SCHEMAS.test(id) || knownExtension(type, id) || name === '__proto__') return undefined;
  return { kind: 'opaque', id, name };
}

/** The attributes that an item must have to fulfil the filter, where it says so plainly; undefined where it does not. */
export function plainItem(filter: Condition): Record<string, unknown> | undefined {
  if (filter.op === 'and') {
    const parts = filter.parts.map(plainItem);
    return parts.includes(undefined) ? undefined : Object.assign({}, ...parts);
  }
  if (filter.op !== 'test' || filter.test.op !== 'compare') return undefined;
  const { operator, value } = filter.test;
  return operator === 'eq' && value !== null ? { [filter.place.attribute.name]: value } : undefined;
}
