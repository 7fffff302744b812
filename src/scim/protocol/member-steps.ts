/** Changes of a group's members, computed without reading the current members. */
import type { Condition } from './condition.ts';
import { refusal } from './fault.ts';
import type { Verb } from './patch.ts';
import type { Target } from './patch-path.ts';
import { isObject } from './resource.ts';

export type MemberStep =
  | { readonly verb: Verb; readonly userIds: readonly string[] }
  /** Removes the members that satisfy the condition. */
  | { readonly verb: 'removeWhere'; readonly condition: Condition };

const MAX_MEMBERS = 50_000;

export function memberStep(at: string, verb: Verb, target: Target & { kind: 'attribute' }, value: unknown): MemberStep {
  const { filter, attributePath } = target;
  if (attributePath.sub) throw refusal('mutability', `${at}: the attributes of a member cannot be changed`);
  if (filter) {
    if (verb === 'remove') return byId(filter) ?? { verb: 'removeWhere', condition: filter };
    throw refusal('invalidPath', `${at}.path must be "members" to ${verb} members`);
  }
  if (verb === 'remove' && (value === undefined || value === null)) return { verb: 'replace', userIds: [] };
  return { verb, userIds: readMembers(value, `${at}.value`) };
}

/** Recognizes `value eq "..."`, the usual way to name one member. */
function byId(filter: Condition): MemberStep | undefined {
  if (filter.op !== 'test' || filter.attributePath.attribute.name !== 'value' || filter.test.op !== 'compare')
    return undefined;
  const { operator, value } = filter.test;
  return operator === 'eq' && typeof value === 'string' ? { verb: 'remove', userIds: [value] } : undefined;
}

/** The distinct ids in a list of members. Throws 400 for anything but users. */
export function readMembers(value: unknown, path: string): string[] {
  if (value === null || value === undefined) return [];
  const items = Array.isArray(value) ? value : [value];
  if (items.length > MAX_MEMBERS) throw refusal('tooMany', `${path} has more than ${MAX_MEMBERS} members`);
  const ids = items.map((item: unknown, index) => {
    const member = isObject(item) ? item : { value: item };
    const { value: id, type } = member as { value?: unknown; type?: unknown };
    if (typeof type === 'string' && type.toLowerCase() === 'group') {
      throw refusal('invalidValue', `${path}[${index}] is a group: nested groups are not supported`);
    }
    if (typeof id !== 'string' || id === '' || id.length > 200 || id.includes('\0')) {
      throw refusal('invalidValue', `${path}[${index}].value must be the id of a user`);
    }
    return id;
  });
  return [...new Set(ids)];
}
