/** What a job does to users and groups: brings them to what the identity provider says, or memberships to what it said. */
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

export interface ApplyParts extends Omit<ProvisioningParts, 'runSyncJobs'> {
  organizationId: string;
}

export interface Counts {
  syncedGroups: number;
  deletedGroups: number;
}

/** Users in one transaction; a push waits for no more than that. */
const USERS_AT_ONCE = 200;
const GROUPS_AT_ONCE = 50;

/** Members and memberships as what was pushed says, whatever happened to them since. */
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
 * The directory is taken in pieces, each whole in itself, so that one that was begun before may be begun again. What was
 * pushed stays as it was pushed, but for who is in its groups; what was pulled and is there no more ends.
 */
export async function takeDirectory(parts: ApplyParts, { users, groups }: RemoteDirectory): Promise<Counts> {
  if (users.length === 0) await checkNobodyLeft(parts);
  const userIds = new Map<string, string>();
  for (const some of chunks(users, USERS_AT_ONCE)) {
    await inTurn(parts, async (provisioning) => {
      for (const remote of some) {
        userIds.set(remote.id, await told('user', remote, () => takeUser(provisioning, remote)));
      }
    });
  }
  await endUsers(parts, new Set(userIds.values()));
  const groupIds = new Set<string>();
  for (const some of chunks(groups, GROUPS_AT_ONCE)) {
    await inTurn(parts, async (provisioning) => {
      for (const remote of some) {
        groupIds.add(await told('group', remote, () => takeGroup(provisioning, remote, userIds)));
      }
    });
  }
  const deletedGroups = await endGroups(parts, groupIds);
  await recompute(parts);
  return { syncedGroups: groups.length, deletedGroups };
}

/** A provider that suddenly tells of nobody is broken more often than it is empty, and would lock everybody out. */
async function checkNobodyLeft({ database, organizationId }: ApplyParts): Promise<void> {
  const pulled = await userStore.pulledUsers(database, organizationId);
  if (!pulled.some(({ active }) => active)) return;
  throw new SourceError('the identity provider tells of no users at all, so nothing was changed');
}

/** Says of which one it is that something cannot be kept. */
async function told(kind: string, { id }: RemoteResource, take: () => Promise<string>): Promise<string> {
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

/** Members that are no users, such as groups, are left out: what they stand for is not known here. */
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

/** Who was pulled and is there no more belongs to the organization no more. */
async function endUsers(parts: ApplyParts, known: ReadonlySet<string>): Promise<void> {
  const pulled = await userStore.pulledUsers(parts.database, parts.organizationId);
  const gone = pulled.filter(({ userId, active }) => active && !known.has(userId));
  for (const some of chunks(gone, USERS_AT_ONCE)) {
    await inTurn(parts, async (provisioning) => {
      for (const user of some) {
        await changeUser(provisioning, user, userFacts({ ...user.attributes, active: false }, false));
      }
    });
  }
}

async function endGroups(parts: ApplyParts, known: ReadonlySet<string>): Promise<number> {
  const pulled = await groupStore.pulledGroups(parts.database, parts.organizationId);
  const gone = pulled.filter(({ id }) => !known.has(id));
  for (const some of chunks(gone, GROUPS_AT_ONCE)) {
    await inTurn(parts, async (provisioning) => {
      for (const group of some) await removeGroup(provisioning, group);
    });
  }
  return gone.length;
}

function inTurn<T>(parts: ApplyParts, work: (provisioning: Provisioning) => Promise<T>): Promise<T> {
  return provision(parts, 'pull', gatewayAuthor(parts.organizationId, parts.clock.now()), work);
}

function* chunks<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
