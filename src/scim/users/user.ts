/** Users without I/O: parsing attributes and rendering users. */
import { cut } from '../../base/characters.ts';
import { isExtensionId, USER } from '../protocol/attributes.ts';
import { refusal } from '../protocol/fault.ts';
import { metaOf } from '../protocol/operation.ts';
import type { Attributes } from '../protocol/resource.ts';
import type { Person, StoredUser, UserGroup } from './store.ts';

export interface UserFacts {
  userName: string;
  externalId: string | null;
  active: boolean;
  attributes: Attributes;
}

const MAX_NAME = 320;
const MAX_ID = 1_000;

/**
 * Derives the columns from the attributes, and sets `active` in them. If it is absent the previous value stays: a
 * missing field must not give access.
 */
export function userFacts(attributes: Attributes, activeBefore: boolean): UserFacts {
  const userName = attributes['userName'];
  if (typeof userName !== 'string' || userName.trim() === '') throw refusal('invalidValue', 'userName is required');
  if (userName.length > MAX_NAME) throw refusal('invalidValue', `userName has more than ${MAX_NAME} characters`);
  const active = (attributes['active'] as boolean | undefined) ?? activeBefore;
  return { userName, externalId: externalIdOf(attributes), active, attributes: { ...attributes, active } };
}

export function externalIdOf(attributes: Attributes): string | null {
  const externalId = (attributes['externalId'] as string | undefined) ?? null;
  if ((externalId?.length ?? 0) > MAX_ID)
    throw refusal('invalidValue', `externalId has more than ${MAX_ID} characters`);
  return externalId;
}

interface Item {
  value?: string;
  primary?: boolean;
}

/** The user's name and e-mail address in the rest of the gateway. */
export function personOf(userId: string, { userName, attributes }: UserFacts): Person {
  const { formatted, givenName, familyName } = (attributes['name'] ?? {}) as Record<string, string | undefined>;
  const whole = [givenName, familyName].filter(Boolean).join(' ');
  const name = (attributes['displayName'] as string | undefined) || formatted || whole || userName;
  return { userId, name: cut(name, MAX_NAME), email: emailsOf(userName, attributes)[0] ?? null };
}

/** The primary address first. */
export function emailsOf(userName: string, attributes: Attributes): string[] {
  const items = (attributes['emails'] ?? []) as Item[];
  const sorted = items.toSorted((a, b) => Number(b.primary ?? false) - Number(a.primary ?? false));
  const listed = sorted.flatMap(({ value }) => (value ? [value] : []));
  return userName.includes('@') ? [...listed, userName] : listed;
}

export function userResource(user: StoredUser, groups: readonly UserGroup[], root: string): Attributes {
  const { attributes, userId, externalId } = user;
  const own = Object.entries(attributes).filter(([key]) => key !== 'externalId');
  const extensions = own.map(([key]) => key).filter(isExtensionId);
  return {
    schemas: [USER.schema.id, ...extensions],
    id: userId,
    ...(externalId !== null && { externalId }),
    ...Object.fromEntries(own),
    ...(groups.length > 0 && {
      groups: groups.map(({ groupId, displayName }) => ({
        value: groupId,
        $ref: `${root}/Groups/${groupId}`,
        display: displayName,
        type: 'direct',
      })),
    }),
    meta: metaOf(USER, userId, user, root),
  };
}
