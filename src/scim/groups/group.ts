/** Groups without I/O: parsing attributes and rendering groups. */
import { GROUP, isExtensionId } from '../protocol/attributes.ts';
import { refusal } from '../protocol/fault.ts';
import { readMembers } from '../protocol/member-steps.ts';
import { metaOf } from '../protocol/operation.ts';
import type { Attributes } from '../protocol/resource.ts';
import { externalIdOf } from '../users/user.ts';
import type { GroupMember, StoredGroup } from './store.ts';

export interface GroupFacts {
  displayName: string;
  externalId: string | null;
  attributes: Attributes;
}

const MAX_NAME = 500;

export function groupFacts(attributes: Attributes): GroupFacts {
  const displayName = attributes['displayName'];
  if (typeof displayName !== 'string' || displayName.trim() === '') {
    throw refusal('invalidValue', 'displayName is required');
  }
  if (displayName.length > MAX_NAME) throw refusal('invalidValue', `displayName has more than ${MAX_NAME} characters`);
  return { displayName, externalId: externalIdOf(attributes), attributes };
}

/** Ids of the members in a complete group. */
export function membersIn(body: unknown): string[] {
  const found = Object.entries(body as Attributes).find(([key]) => key.toLowerCase() === 'members');
  return readMembers(found?.[1], 'members');
}

export function groupResource(group: StoredGroup, members: readonly GroupMember[], root: string): Attributes {
  const { attributes, id, externalId } = group;
  const own = Object.entries(attributes).filter(([key]) => key !== 'externalId');
  return {
    schemas: [GROUP.schema.id, ...own.map(([key]) => key).filter(isExtensionId)],
    id,
    ...(externalId !== null && { externalId }),
    ...Object.fromEntries(own),
    members: members.map(({ userId, name }) => ({
      value: userId,
      $ref: `${root}/Users/${userId}`,
      display: name,
      type: 'User',
    })),
    meta: metaOf(GROUP, id, group, root),
  };
}
