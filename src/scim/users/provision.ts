/** Writes users and their memberships, inside a transaction of `provisioning.ts`. */
import { recordChange } from '../../audit/index.ts';
import { uuidv7 } from '../../base/ids.ts';
import type { Queryable } from '../../storage/database.ts';
import { applyGrants } from '../mappings/grants.ts';
import { refusal } from '../protocol/fault.ts';
import { sameAttributes } from '../protocol/resource.ts';
import type { Provisioning } from '../provisioning.ts';
import * as store from './store.ts';
import { emailsOf, personOf, type UserFacts } from './user.ts';

const MAX_USERS = 100_000;

/**
 * Creates a user. An existing member with the same e-mail address who is not managed by an identity provider is taken
 * over. Throws 409 if the name is taken.
 */
export async function createUser(provisioning: Provisioning, facts: UserFacts): Promise<string> {
  const { tx, organizationId, source, nowMs } = provisioning;
  await takeName(tx, organizationId, facts.userName);
  if ((await store.countUsers(tx, organizationId, undefined)) >= MAX_USERS) {
    throw refusal('tooMany', `there are at most ${MAX_USERS} users`);
  }
  const known = await store.unmanagedMember(tx, organizationId, emailsOf(facts.userName, facts.attributes));
  const userId = known ?? `user_${uuidv7(nowMs).replaceAll('-', '')}`;
  const createdAt = new Date(nowMs);
  await store.putPerson(tx, personOf(userId, facts), createdAt);
  await store.insertUser(tx, { ...facts, userId, organizationId, source, createdAt });
  await recordChange(tx, provisioning.author, {
    action: 'scim_user.created',
    ...userResource(userId),
    after: facts.attributes,
  });
  await enforceActive(provisioning, userId, facts.active);
  return userId;
}

/** Writes the new state of a user. The version stays if nothing differs. Throws 409 if the name is taken. */
export async function changeUser(
  provisioning: Provisioning,
  before: store.StoredUser,
  facts: UserFacts,
): Promise<void> {
  const { tx, organizationId, source, nowMs } = provisioning;
  const { userId } = before;
  if (!sameAttributes(before.attributes, facts.attributes) || before.source !== source) {
    await takeName(tx, organizationId, facts.userName, userId);
    const updatedAt = new Date(nowMs);
    await store.putPerson(tx, personOf(userId, facts), updatedAt);
    await store.updateUser(tx, { ...facts, userId, source, updatedAt });
    await recordChange(tx, provisioning.author, {
      action: 'scim_user.updated',
      ...userResource(userId),
      before: before.attributes,
      after: facts.attributes,
    });
  }
  await enforceActive(provisioning, userId, facts.active);
}

/** Keeps the person, because keys and the ledger refer to it. */
export async function removeUser(
  { tx, organizationId, author, nowMs, moved }: Provisioning,
  { userId, attributes }: store.StoredUser,
): Promise<void> {
  await store.deleteUser(tx, userId, new Date(nowMs));
  await recordChange(tx, author, { action: 'scim_user.deleted', ...userResource(userId), before: attributes });
  if (await store.removeFromOrganization(tx, organizationId, userId)) moved.add(userId);
}

/** Makes the membership match `active`, even if the user itself has not changed, because the member may have. */
export async function enforceActive(
  { tx, organizationId, author, nowMs, moved }: Provisioning,
  userId: string,
  active: boolean,
): Promise<void> {
  const changed = active
    ? await store.joinOrganization(tx, organizationId, userId, new Date(nowMs))
    : await store.removeFromOrganization(tx, organizationId, userId);
  if (!changed) return;
  moved.add(userId);
  await recordChange(tx, author, {
    action: active ? 'member.added' : 'member.removed',
    resourceType: 'member',
    resourceId: userId,
    workspaceId: null,
  });
  if (active) await applyGrants(tx, organizationId, { userIds: [userId] }, nowMs);
}

/** The resource of an audit entry about a user. */
function userResource(userId: string) {
  return { resourceType: 'scim_user', resourceId: userId, workspaceId: null };
}

async function takeName(tx: Queryable, organizationId: string, userName: string, userId?: string): Promise<void> {
  if (await store.isNameTaken(tx, organizationId, userName, userId)) {
    throw refusal('uniqueness', `userName is already used by another user: ${userName}`);
  }
}
