/** Applies a sync job: updates users and groups from the directory, or memberships from the stored groups. */
import { gatewayAuthor } from '../../audit/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { type GroupFacts, groupFacts } from '../groups/group.ts';
import { changeGroup, createGroup, removeGroup } from '../groups/provision.ts';
import * as groupStore from '../groups/store.ts';
import { applyGrants } from '../mappings/grants.ts';
import { GROUP, USER } from '../protocol/attributes.ts';
import { readResource } from '../protocol/resource.ts';
import { type Provisioning, type ProvisioningParts, provision } from '../provisioning.ts';
import { changeUser, createUser, enforceActive } from '../users/provision.ts';
import * as userStore from '../users/store.ts';
import { type UserFacts, userFacts } from '../users/user.ts';
import { memberOf, type RemoteDirectory, type RemoteResource, SourceError } from './source.ts';
import { strayUsers } from './store.ts';

interface ApplyParts extends Omit<ProvisioningParts, 'runSyncJobs'> {
  organizationId: string;
}

export interface Counts {
  syncedGroups: number;
  deletedGroups: number;
}

/** Users per transaction; a request from the identity provider waits for at most one. */
const USERS_AT_ONCE = 200;
const GROUPS_AT_ONCE = 50;

/** Resets members and memberships to the pushed state, whatever changed since. */
export async function recompute(parts: ApplyParts): Promise<Counts> {
  const syncedGroups = await inTurn(parts, async (provisioning) => {
    const { tx, organizationId, nowMs } = provisioning;
    for (const { userId, active } of await strayUsers(tx, organizationId)) {
      await enforceActive(provisioning, userId, active);
    }
    await applyGrants(tx, organizationId, {}, nowMs);
    return groupStore.countGroups(tx, organizationId, undefined);
  });
  return { syncedGroups, deletedGroups: 0 };
}

/**
 * Applies the directory in chunks. Each chunk is consistent, so an interrupted run can start again. Pushed resources
 * keep their pushed attributes, except for group members; pulled resources that are missing from the directory are
 * removed.
 */
export async function takeDirectory(parts: ApplyParts, { users, groups }: RemoteDirectory): Promise<Counts> {
  if (users.length === 0) await checkNotEmpty(parts);
  const userIds = new Map<string, string>();
  for (const chunk of chunks(users, USERS_AT_ONCE)) {
    await inTurn(parts, async (provisioning) => {
      for (const remote of chunk) {
        userIds.set(remote.id, await withResource('user', remote, () => takeUser(provisioning, remote)));
      }
    });
  }
  await endUsers(parts, new Set(userIds.values()));
  const groupIds = new Set<string>();
  for (const chunk of chunks(groups, GROUPS_AT_ONCE)) {
    await inTurn(parts, async (provisioning) => {
      for (const remote of chunk) {
        groupIds.add(await withResource('group', remote, () => takeGroup(provisioning, remote, userIds)));
      }
    });
  }
  const deletedGroups = await endGroups(parts, groupIds);
  await recompute(parts);
  return { syncedGroups: groups.length, deletedGroups };
}

/** An empty user list is more often a fault of the provider than real, and would remove all members. */
async function checkNotEmpty({ database, organizationId }: ApplyParts): Promise<void> {
  const pulled = await userStore.pulledUsers(database, organizationId);
  if (!pulled.some(({ active }) => active)) return;
  throw new SourceError('the identity provider returned no users at all, so nothing was changed');
}

/** Adds the resource to the error message. */
async function withResource(kind: string, { id }: RemoteResource, take: () => Promise<string>): Promise<string> {
  try {
    return await take();
  } catch (error) {
    if (!(error instanceof GatewayError) || error.status >= 500) throw error;
    throw new SourceError(`the ${kind} ${id.slice(0, 100)} of the identity provider: ${error.message}`, {
      cause: error,
    });
  }
}

async function takeUser(provisioning: Provisioning, remote: RemoteResource): Promise<string> {
  const { tx, organizationId } = provisioning;
  const facts = factsOfUser(remote, true);
  const before = await userStore.findRemote(tx, organizationId, remote.id, facts.userName);
  if (!before) return createUser(provisioning, facts);
  if (before.source === 'push') return before.userId;
  await changeUser(provisioning, before, factsOfUser(remote, before.active));
  return before.userId;
}

function factsOfUser({ id, body }: RemoteResource, activeBefore: boolean): UserFacts {
  return userFacts({ ...readResource(USER, body), externalId: id }, activeBefore);
}

function factsOfGroup({ id, body }: RemoteResource): GroupFacts {
  return groupFacts({ ...readResource(GROUP, body), externalId: id });
}

/** Ignores members that are not users, such as nested groups, which are not supported. */
async function takeGroup(
  provisioning: Provisioning,
  remote: RemoteResource,
  userIds: ReadonlyMap<string, string>,
): Promise<string> {
  const { tx, organizationId } = provisioning;
  const facts = factsOfGroup(remote);
  const members = memberOf(remote.body, 'members');
  const ids = (Array.isArray(members) ? members : []).flatMap((member: unknown) => {
    const id = userIds.get(String((member as { value?: unknown } | null)?.value));
    return id === undefined ? [] : [id];
  });
  const before = await groupStore.findRemote(tx, organizationId, remote.id, facts.displayName);
  if (!before) return createGroup(provisioning, facts, [...new Set(ids)]);
  const kept = before.source === 'push' ? groupFacts(before.attributes) : facts;
  await changeGroup({ ...provisioning, source: before.source }, before, kept, [
    { verb: 'replace', userIds: [...new Set(ids)] },
  ]);
  return before.id;
}

/** Removes pulled users that are missing from the directory. */
async function endUsers(parts: ApplyParts, known: ReadonlySet<string>): Promise<void> {
  const pulled = await userStore.pulledUsers(parts.database, parts.organizationId);
  const missing = pulled.filter(({ userId, active }) => active && !known.has(userId));
  for (const chunk of chunks(missing, USERS_AT_ONCE)) {
    await inTurn(parts, async (provisioning) => {
      for (const user of chunk) {
        await changeUser(provisioning, user, userFacts({ ...user.attributes, active: false }, false));
      }
    });
  }
}

async function endGroups(parts: ApplyParts, known: ReadonlySet<string>): Promise<number> {
  const pulled = await groupStore.pulledGroups(parts.database, parts.organizationId);
  const missing = pulled.filter(({ id }) => !known.has(id));
  for (const chunk of chunks(missing, GROUPS_AT_ONCE)) {
    await inTurn(parts, async (provisioning) => {
      for (const group of chunk) await removeGroup(provisioning, group);
    });
  }
  return missing.length;
}

function inTurn<T>(parts: ApplyParts, work: (provisioning: Provisioning) => Promise<T>): Promise<T> {
  return provision(parts, 'pull', gatewayAuthor(parts.organizationId, parts.clock.now()), work);
}

function* chunks<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
