/** `/scim/v2/Groups`. */
import type { Caller } from '../../access/index.ts';
import { isUuid } from '../../base/ids.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import type { Queryable } from '../../storage/database.ts';
import { GROUP } from '../protocol/attributes.ts';
import { notFound } from '../protocol/fault.ts';
import type { MemberStep } from '../protocol/member-steps.ts';
import * as protocol from '../protocol/operation.ts';
import { applyPatch } from '../protocol/patch.ts';
import { type Projection, project, tells } from '../protocol/projection.ts';
import { readResource } from '../protocol/resource.ts';
import { type Provisioning, type ProvisioningParts, provisionPushed } from '../provisioning.ts';
import { type GroupFacts, groupFacts, groupResource, membersIn } from './group.ts';
import { changeGroup, createGroup, removeGroup } from './provision.ts';
import * as store from './store.ts';

/** A group of several tens of thousands comes in one piece. */
const GROUP_BYTES = 16 * 1024 * 1024;
/** Members on one page; a page with more has fewer groups. */
const MAX_MEMBERS_SHOWN = 20_000;

const groupBody = { schema: protocol.AnyObject, maxBytes: GROUP_BYTES };

export function groupOperations(parts: ProvisioningParts): Operation<Caller>[] {
  return [
    ...listGroups(parts),
    createGroupOperation(parts),
    getGroup(parts),
    replaceGroup(parts),
    patchGroup(parts),
    deleteGroup(parts),
  ];
}

function listGroups(parts: ProvisioningParts): Operation<Caller>[] {
  return protocol.listOperations({
    type: GROUP,
    plural: 'Groups',
    ids: { list: 'listScimProtocolGroups', search: 'searchScimGroups' },
    async read(exchange, { condition, order, startIndex, count, projection }) {
      const { database } = parts;
      const { organizationId } = exchange.caller;
      const total = await store.countGroups(database, organizationId, condition);
      const question = { condition, order, offset: startIndex - 1, limit: count };
      const found = count === 0 ? [] : await store.listGroups(database, organizationId, question);
      const groups = tells(projection, 'members') ? await onOnePage(database, found) : found;
      return { total, resources: await shown(database, groups, projection, protocol.rootUrl(exchange)) };
    },
  });
}

/** As many as have no more members than a page may; the client asks for the rest, as it was not all (section 3.4.2.4). */
async function onOnePage(db: Queryable, groups: readonly store.StoredGroup[]): Promise<readonly store.StoredGroup[]> {
  const counts = await store.memberCounts(
    db,
    groups.map(({ id }) => id),
  );
  let members = 0;
  const fitting = groups.findIndex(({ id }, index) => {
    members += counts.get(id) ?? 0;
    return index > 0 && members > MAX_MEMBERS_SHOWN;
  });
  return fitting === -1 ? groups : groups.slice(0, fitting);
}

function createGroupOperation(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'createScimGroup',
    method: 'POST',
    path: '/Groups',
    summary: 'Make a group, with members or without',
    query: protocol.ShownQuery,
    body: groupBody,
    replies: { 201: { description: 'The group', schema: protocol.AnyObject } },
    async handle(exchange) {
      const facts = groupFacts(readResource(GROUP, exchange.body));
      const members = membersIn(exchange.body);
      const group = await written(parts, exchange, (provisioning) => createGroup(provisioning, facts, members));
      await replyGroup(parts, exchange, 201, group);
    },
  });
}

function getGroup(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'getScimGroup',
    method: 'GET',
    path: '/Groups/{id}',
    summary: 'One group',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    replies: { 200: { description: 'The group', schema: protocol.AnyObject } },
    async handle(exchange) {
      await replyGroup(parts, exchange, 200, await existing(parts.database, exchange));
    },
  });
}

function replaceGroup(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'replaceScimGroup',
    method: 'PUT',
    path: '/Groups/{id}',
    summary: 'Replace a group and who is in it',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: groupBody,
    replies: { 200: { description: 'The group', schema: protocol.AnyObject } },
    async handle(exchange) {
      const facts = groupFacts(readResource(GROUP, exchange.body));
      const steps: MemberStep[] = [{ verb: 'replace', userIds: membersIn(exchange.body) }];
      await replyGroup(parts, exchange, 200, await change(parts, exchange, () => ({ facts, steps })));
    },
  });
}

function patchGroup(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'patchScimGroup',
    method: 'PATCH',
    path: '/Groups/{id}',
    summary: 'Change a group or who is in it: all operations or none',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: groupBody,
    replies: {
      200: {
        description: 'The group, where `attributes` or `excludedAttributes` ask for it',
        schema: protocol.AnyObject,
      },
      204: { description: 'It is as it was asked to be' },
    },
    async handle(exchange) {
      const group = await change(parts, exchange, ({ id, attributes }) => {
        const patched = applyPatch(GROUP, id, attributes, exchange.body);
        return { facts: groupFacts(patched.attributes), steps: patched.members };
      });
      // Members are changed one at a time, and telling all of them every time would take longer than all else.
      const asked = exchange.query['attributes'] || exchange.query['excludedAttributes'];
      if (asked) await replyGroup(parts, exchange, 200, group);
      else exchange.reply(204, undefined, { ETag: protocol.metaOf(GROUP, group.id, group, '').version });
    },
  });
}

function deleteGroup(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'deleteScimGroup',
    method: 'DELETE',
    path: '/Groups/{id}',
    summary: 'Delete a group, with its mappings and what they granted',
    params: protocol.IdParams,
    replies: { 204: { description: 'The group is gone' } },
    async handle(exchange) {
      await provisionPushed(parts, exchange, async (provisioning) => {
        const group = await existing(provisioning.tx, exchange);
        protocol.checkVersion(exchange, group.version);
        await removeGroup(provisioning, group);
      });
      exchange.reply(204, undefined);
    },
  });
}

function change(
  parts: ProvisioningParts,
  exchange: Exchange<Caller>,
  changeOf: (before: store.StoredGroup) => { facts: GroupFacts; steps: readonly MemberStep[] },
): Promise<store.StoredGroup> {
  return written(parts, exchange, async (provisioning) => {
    const before = await existing(provisioning.tx, exchange);
    protocol.checkVersion(exchange, before.version);
    const { facts, steps } = changeOf(before);
    await changeGroup(provisioning, before, facts, steps);
    return before.id;
  });
}

/** Yields the group as it is afterwards. */
function written(
  parts: ProvisioningParts,
  exchange: Exchange<Caller>,
  write: (provisioning: Provisioning) => Promise<string>,
): Promise<store.StoredGroup> {
  return provisionPushed(parts, exchange, async (provisioning) => {
    const id = await write(provisioning);
    return (await store.findGroup(provisioning.tx, provisioning.organizationId, id))!;
  });
}

async function replyGroup(
  parts: ProvisioningParts,
  exchange: Exchange<Caller>,
  status: 200 | 201,
  group: store.StoredGroup,
) {
  const root = protocol.rootUrl(exchange);
  const [resource] = await shown(parts.database, [group], protocol.projectionOf(GROUP, exchange.query), root);
  protocol.replyResource(exchange, status, resource!, protocol.metaOf(GROUP, group.id, group, root));
}

async function shown(db: Queryable, groups: readonly store.StoredGroup[], projection: Projection, root: string) {
  const ids = groups.map(({ id }) => id);
  const rows = ids.length > 0 && tells(projection, 'members') ? await store.membersOf(db, ids) : [];
  const members = Map.groupBy(rows, ({ groupId }) => groupId);
  return groups.map((group) => project(groupResource(group, members.get(group.id) ?? [], root), projection));
}

async function existing(db: Queryable, { caller, params }: Exchange<Caller>): Promise<store.StoredGroup> {
  const id = params['id']!;
  const group = isUuid(id) ? await store.findGroup(db, caller.organizationId, id) : undefined;
  if (!group) throw notFound('group', id);
  return group;
}
