/** `attributes` and `excludedAttributes` (RFC 7644, section 3.9): which members of a resource are returned. */
import { attributePathOf, COMMON, isExtensionId, named, type ResourceType } from './attributes.ts';
import type { Attributes } from './resource.ts';

/** `name` or `name.sub`, possibly of an extension, spelled as in the schemas. */
interface Named {
  extension: string | undefined;
  name: string | undefined;
  sub: string | undefined;
}

export interface Projection {
  only: readonly Named[] | undefined;
  without: readonly Named[];
}

/** Ignores unknown names, so that one list works for every type. An empty list counts as absent. */
export function readProjection(type: ResourceType, attributes?: string, excludedAttributes?: string): Projection {
  return {
    only: attributes?.trim() ? names(type, attributes) : undefined,
    without: names(type, excludedAttributes),
  };
}

function names(type: ResourceType, list = ''): Named[] {
  const given = list.split(',', 200).map((name) => name.trim());
  return given.flatMap((name): Named[] => {
    const attributePath = attributePathOf(type, name);
    if (attributePath)
      return [{ extension: attributePath.extension, name: attributePath.attribute.name, sub: attributePath.sub?.name }];
    return isExtensionId(name) ? [{ extension: name, name: undefined, sub: undefined }] : [];
  });
}

/** True if the attribute is returned; if not, it need not be read. */
export function includes(projection: Projection, name: string): boolean {
  const { only, without } = projection;
  if (without.some((each) => each.extension === undefined && each.name === name && each.sub === undefined))
    return false;
  return only === undefined || only.some((each) => each.extension === undefined && each.name === name);
}

/** The projected resource; it always keeps its id and schemas. */
export function project(resource: Attributes, { only, without }: Projection): Attributes {
  if (only === undefined && without.length === 0) return resource;
  const always = (key: string) => named(COMMON, key)?.returned === 'always';
  const kept = Object.entries(resource).flatMap(([key, value]): [string, unknown][] => {
    if (always(key)) return [[key, value]];
    const projected = isExtensionId(key)
      ? projectedExtension(key, value, only, without)
      : projectedAttribute(undefined, key, value, only, without);
    return projected === undefined ? [] : [[key, projected]];
  });
  return Object.fromEntries(kept);
}

function projectedExtension(
  id: string,
  value: unknown,
  only: Projection['only'],
  without: Projection['without'],
): unknown {
  const ofExtension = (list: readonly Named[]) =>
    list.filter(({ extension }) => extension?.toLowerCase() === id.toLowerCase());
  const whole = (list: readonly Named[]) => ofExtension(list).some(({ name }) => name === undefined);
  if (whole(without)) return undefined;
  const kept = Object.entries(value as Attributes).flatMap(([key, member]): [string, unknown][] => {
    const wanted = only === undefined || whole(only) ? undefined : ofExtension(only);
    const projected = projectedAttribute(id, key, member, wanted, ofExtension(without));
    return projected === undefined ? [] : [[key, projected]];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function projectedAttribute(
  extension: string | undefined,
  key: string,
  value: unknown,
  only: Projection['only'],
  without: Projection['without'],
): unknown {
  const ofExtension = (list: readonly Named[]) =>
    list.filter((each) => each.extension === extension && each.name === key);
  const excluded = ofExtension(without);
  if (excluded.some(({ sub }) => sub === undefined)) return undefined;
  const wanted = only && ofExtension(only);
  if (wanted?.length === 0) return undefined;
  const subs = wanted?.some(({ sub }) => sub === undefined) ? undefined : wanted?.map(({ sub }) => sub);
  if (subs === undefined && excluded.length === 0) return value;
  const keeps = (sub: string) => (!subs || subs.includes(sub)) && !excluded.some((each) => each.sub === sub);
  const trimmed = (item: unknown) =>
    Object.fromEntries(Object.entries(item as Attributes).filter(([sub]) => keeps(sub)));
  return Array.isArray(value) ? value.map(trimmed) : trimmed(value);
}
