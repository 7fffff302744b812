/** Writes groups, their members and the resulting grants, inside a transaction of `provisioning.ts`. */
import { recordChange } from '../../audit/index.ts';
import { uuidv7 } from '../../base/ids.ts';
import type { Queryable } from '../../storage/database.ts';
import { applyGrants } from '../mappings/grants.ts';
import { workspacesOf } from '../mappings/store.ts';
import { holds } from '../protocol/condition.ts';
import { refusal } from '../protocol/fault.ts';
import type { MemberStep } from '../protocol/member-steps.ts';
import { sameAttributes } from '../protocol/resource.ts';
import type { Provisioning } from '../provisioning.ts';
import type { GroupFacts } from './group.ts';
import * as store from './store.ts';

/** Ids of users who were added and removed. */
interface Moves {
  added: string[];
  removed: string[];
}

const MAX_GROUPS = 10_000;
const NAMED_IN_MESSAGE = 5;

/** Throws 409 if the name is taken, 400 for unknown members. */
export async function createGroup(
  provisioning: Provisioning,
  facts: GroupFacts,
  userIds: readonly string[],
): Promise<string> {
  const { tx, organizationId, source, nowMs } = provisioning;
  await takeName(tx, organizationId, facts.displayName);
  if ((await store.countGroups(tx, organizationId, undefined)) >= MAX_GROUPS) {
    throw refusal('tooMany', `there are at most ${MAX_GROUPS} groups`);
  }
  const id = uuidv7(nowMs);
  await store.insertGroup(tx, { ...facts, id, organizationId, source, createdAt: new Date(nowMs) });
  await takeStep(tx, organizationId, id, { verb: 'add', userIds }, { added: [], removed: [] });
  const after = { ...facts.attributes, members: userIds };
  await recordChange(tx, provisioning.author, { action: 'scim_group.created', ...groupResource(id), after });
  return id;
}

/** Writes the new state of a group. The version stays if nothing differs. Throws like `createGroup`. */
export async function changeGroup(
  { tx, organizationId, source, author, nowMs }: Provisioning,
  before: store.StoredGroup,
  facts: GroupFacts,
  steps: readonly MemberStep[],
): Promise<void> {
  const { id } = before;
  const moves: Moves = { added: [], removed: [] };
  for (const step of steps) await takeStep(tx, organizationId, id, step, moves);
  const userIds = [...moves.added, ...moves.removed];
  const moved = userIds.length > 0;
  const { displayName, attributes } = facts;
  const renamed = displayName !== before.displayName;
  if (renamed) await takeName(tx, organizationId, displayName, id);
  const differs = moved || renamed || !sameAttributes(attributes, before.attributes);
  if (differs || before.source !== source) {
    await store.updateGroup(tx, { ...facts, id, source }, new Date(nowMs));
    await recordChange(tx, author, {
      action: 'scim_group.updated',
      ...groupResource(id),
      before: before.attributes,
      // Record only the difference: providers add thousands of members one at a time.
      after: { ...attributes, ...(moved && { members_added: moves.added, members_removed: moves.removed }) },
    });
  }
  if (moved) await applyGrants(tx, organizationId, { workspaceIds: await workspacesOf(tx, id), userIds }, nowMs);
}

/** Deletes the group with its mappings and their grants. */
export async function removeGroup(
  { tx, organizationId, author, nowMs }: Provisioning,
  { id, attributes }: Pick<store.StoredGroup, 'id' | 'attributes'>,
): Promise<void> {
  const workspaceIds = await workspacesOf(tx, id);
  await store.deleteGroup(tx, id);
  await recordChange(tx, author, { action: 'scim_group.deleted', ...groupResource(id), before: attributes });
  await applyGrants(tx, organizationId, { workspaceIds }, nowMs);
}

/** The resource of an audit entry about a group. */
function groupResource(id: string) {
  return { resourceType: 'scim_group', resourceId: id, workspaceId: null };
}

/** Collects added and removed members. */
async function takeStep(
  tx: Queryable,
  organizationId: string,
  groupId: string,
  step: MemberStep,
  { added, removed }: Moves,
): Promise<void> {
  const remove = async (userIds: readonly string[]) => {
    removed.push(...(await store.removeMembers(tx, groupId, userIds)));
  };
  switch (step.verb) {
    case 'replace':
      await checkKnown(tx, organizationId, step.userIds);
      removed.push(...(await store.keepMembers(tx, groupId, step.userIds)));
      added.push(...(await store.addMembers(tx, groupId, step.userIds)));
      return;
    case 'add':
      await checkKnown(tx, organizationId, step.userIds);
      added.push(...(await store.addMembers(tx, groupId, step.userIds)));
      return;
    case 'remove':
      return remove(step.userIds);
    case 'removeWhere': {
      const members = await store.membersOf(tx, [groupId]);
      const matching = members.filter(({ userId, name }) =>
        holds(step.condition, { value: userId, display: name, type: 'User' }),
      );
      return remove(matching.map(({ userId }) => userId));
    }
  }
}

async function checkKnown(tx: Queryable, organizationId: string, userIds: readonly string[]): Promise<void> {
  if (userIds.length === 0) return;
  const unknown = await store.unknownUsers(tx, organizationId, userIds);
  if (unknown.length === 0) return;
  const shown = unknown.slice(0, NAMED_IN_MESSAGE).join(', ');
  throw refusal('invalidValue', `members contains ${unknown.length} unknown users: ${shown}`);
}

async function takeName(tx: Queryable, organizationId: string, displayName: string, id?: string): Promise<void> {
  if (await store.isNameTaken(tx, organizationId, displayName, id)) {
    throw refusal('uniqueness', `displayName is already used by another group: ${displayName}`);
  }
}
