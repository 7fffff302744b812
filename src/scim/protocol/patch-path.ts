/** Patch paths (RFC 7644, section 3.5.2): an attribute, filtered items of a list, or a sub-attribute of either. */
import {
  type AttributePath,
  attributePathOf,
  isCoreSchema,
  isExtensionId,
  knownExtension,
  named,
  type ResourceType,
  splitPrefix,
} from './attributes.ts';
import { type Condition, readItemFilter } from './condition.ts';
import { refusal } from './fault.ts';

export type Target =
  /** An attribute; for a list, all items or those that satisfy `filter`. `attributePath.sub` is a sub-attribute of each. */
  | { readonly kind: 'attribute'; readonly attributePath: AttributePath; readonly filter: Condition | undefined }
  /** All attributes of an extension. */
  | { readonly kind: 'extension'; readonly id: string }
  /** An attribute of an unknown extension. */
  | { readonly kind: 'opaque'; readonly id: string; readonly name: string };

const MAX_LENGTH = 4_096;
const PATH = /^((?:urn:[^[\]"]*:)?)([a-z$][\w$-]*)(?:\[(.*)\])?(?:\.([a-z$][\w$-]*))?$/is;

/** Returns undefined if no schema has the attribute. Throws 400 for a malformed path. */
export function readPath(type: ResourceType, path: string): Target | undefined {
  if (path.length > MAX_LENGTH) throw refusal('invalidPath', `the path has more than ${MAX_LENGTH} characters`);
  const extension = knownExtension(type, path);
  if (extension) return { kind: 'extension', id: extension.id };
  const [, prefix = '', name = '', filter, sub] = PATH.exec(path) ?? [];
  if (name === '') {
    // The id of an unknown extension may end in a version.
    const whole = /[[\]\s"]/.test(path) ? undefined : opaqueTarget(type, path);
    if (whole) return whole;
    throw refusal('invalidPath', `the path cannot be parsed: ${path.slice(0, 200)}`);
  }
  const attributePath = attributePathOf(
    type,
    `${prefix}${name}${filter === undefined && sub !== undefined ? `.${sub}` : ''}`,
  );
  if (!attributePath) return opaqueTarget(type, path);
  if (filter === undefined) return { kind: 'attribute', attributePath: attributePath, filter: undefined };
  if (!attributePath.attribute.multiValued || !attributePath.attribute.subAttributes) {
    throw refusal('invalidPath', `${name} is not a list of objects and cannot have brackets`);
  }
  const subAttribute = sub === undefined ? undefined : named(attributePath.attribute.subAttributes, sub);
  if (sub !== undefined && !subAttribute) return undefined;
  return {
    kind: 'attribute',
    attributePath: { ...attributePath, sub: subAttribute },
    filter: readItemFilter(attributePath, filter),
  };
}

function opaqueTarget(type: ResourceType, path: string): Target | undefined {
  const [id, name] = splitPrefix(path);
  if (id === undefined || name === '' || !isExtensionId(id)) return undefined;
  // An unknown attribute of a known schema is an error, not an extension.
  if (isCoreSchema(id) || knownExtension(type, id) || name === '__proto__') return undefined;
  return { kind: 'opaque', id, name };
}

/** The attributes that an item needs to satisfy the filter, if it consists only of `eq` terms; otherwise undefined. */
export function plainItem(filter: Condition): Record<string, unknown> | undefined {
  if (filter.op === 'and') {
    const parts = filter.parts.map(plainItem);
    return parts.includes(undefined) ? undefined : Object.assign({}, ...parts);
  }
  if (filter.op !== 'test' || filter.test.op !== 'compare') return undefined;
  const { operator, value } = filter.test;
  return operator === 'eq' && value !== null ? { [filter.attributePath.attribute.name]: value } : undefined;
}
