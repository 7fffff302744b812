/** `/scim/v2/Groups`. */
import type { Caller } from '../../access/index.ts';
import { isUuid } from '../../base/ids.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import type { Queryable } from '../../storage/database.ts';
import { Endpoint } from '../endpoint.ts';
import type { ListQuery } from '../filter.sql.ts';
import { GROUP } from '../protocol/attributes.ts';
import type { MemberStep } from '../protocol/member-steps.ts';
import * as protocol from '../protocol/operation.ts';
import { applyPatch } from '../protocol/patch.ts';
import { includes, type Projection, project } from '../protocol/projection.ts';
import { readResource } from '../protocol/resource.ts';
import type { ProvisioningParts } from '../provisioning.ts';
import { groupFacts, groupResource, membersIn } from './group.ts';
import { changeGroup, createGroup, removeGroup } from './provision.ts';
import * as store from './store.ts';

type Groups = Endpoint<store.StoredGroup>;

/** A group of several tens of thousands of members comes in one request. */
const GROUP_BYTES = 16 * 1024 * 1024;
/** Maximum members per page; a page with more members has fewer groups. */
const MAX_MEMBERS_SHOWN = 20_000;

const groupBody = { schema: protocol.AnyObject, maxBytes: GROUP_BYTES };
const one = ok('The group', protocol.AnyObject);

export function groupOperations(parts: ProvisioningParts): Operation<Caller>[] {
  const groups = new Endpoint(parts, {
    type: GROUP,
    idOf: ({ id }) => id,
    find: findGroup,
    count: store.countGroups,
    list: listGroups,
    announce: announceGroups,
  });
  return [
    ...groups.listOperations({
      plural: 'Groups',
      ids: { list: 'listScimProtocolGroups', search: 'searchScimGroups' },
    }),
    createGroupOperation(groups),
    getGroup(groups),
    replaceGroup(groups),
    patchGroup(groups),
    deleteGroup(groups),
  ];
}

function createGroupOperation(groups: Groups): Operation<Caller> {
  return protocol.scimOperation({
    id: 'createScimGroup',
    method: 'POST',
    path: '/Groups',
    summary: 'Create a group, with or without members',
    query: protocol.ShownQuery,
    body: groupBody,
    errors: protocol.WRITE_ERRORS,
    replies: { 201: { description: 'The group', schema: protocol.AnyObject } },
    async handle(exchange) {
      const facts = groupFacts(readResource(GROUP, exchange.body));
      const members = membersIn(exchange.body);
      const group = await groups.create(exchange, (provisioning) => createGroup(provisioning, facts, members));
      await groups.reply(exchange, 201, group);
    },
  });
}

function getGroup(groups: Groups): Operation<Caller> {
  return protocol.scimOperation({
    id: 'getScimGroup',
    method: 'GET',
    path: '/Groups/{id}',
    summary: 'One group',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    replies: one,
    async handle(exchange) {
      await groups.reply(exchange, 200, await groups.existing(exchange));
    },
  });
}

function replaceGroup(groups: Groups): Operation<Caller> {
  return protocol.scimOperation({
    id: 'replaceScimGroup',
    method: 'PUT',
    path: '/Groups/{id}',
    summary: 'Replace a group and its members',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: groupBody,
    errors: protocol.WRITE_ERRORS,
    replies: one,
    async handle(exchange) {
      const facts = groupFacts(readResource(GROUP, exchange.body));
      const steps: MemberStep[] = [{ verb: 'replace', userIds: membersIn(exchange.body) }];
      const group = await groups.change(exchange, (provisioning, before) =>
        changeGroup(provisioning, before, facts, steps),
      );
      await groups.reply(exchange, 200, group);
    },
  });
}

function patchGroup(groups: Groups): Operation<Caller> {
  return protocol.scimOperation({
    id: 'patchScimGroup',
    method: 'PATCH',
    path: '/Groups/{id}',
    summary: 'Update a group or its members, all operations or none',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: groupBody,
    errors: protocol.WRITE_ERRORS,
    replies: {
      200: {
        description: 'The group, if `attributes` or `excludedAttributes` is given',
        schema: protocol.AnyObject,
      },
      204: { description: 'The group is updated' },
    },
    async handle(exchange) {
      const group = await groups.change(exchange, async (provisioning, before) => {
        const { attributes, members } = applyPatch(GROUP, before.id, before.attributes, exchange.body);
        await changeGroup(provisioning, before, groupFacts(attributes), members);
      });
      // Providers change members one at a time; returning all members each time would cost more than everything else.
      const wantsBody = exchange.query['attributes'] || exchange.query['excludedAttributes'];
      if (wantsBody) await groups.reply(exchange, 200, group);
      else exchange.reply(204, undefined, { ETag: protocol.metaOf(GROUP, group.id, group, '').version });
    },
  });
}

function deleteGroup(groups: Groups): Operation<Caller> {
  return protocol.scimOperation({
    id: 'deleteScimGroup',
    method: 'DELETE',
    path: '/Groups/{id}',
    summary: 'Delete a group with its mappings and their grants',
    params: protocol.IdParams,
    errors: protocol.WRITE_ERRORS,
    replies: { 204: { description: 'The group is deleted' } },
    handle: (exchange) => groups.remove(exchange, removeGroup),
  });
}

async function findGroup(db: Queryable, organizationId: string, id: string): Promise<store.StoredGroup | undefined> {
  return isUuid(id) ? store.findGroup(db, organizationId, id) : undefined;
}

async function listGroups(db: Queryable, organizationId: string, question: ListQuery, projection: Projection) {
  const groups = await store.listGroups(db, organizationId, question);
  return includes(projection, 'members') ? onOnePage(db, groups) : groups;
}

/** The groups that fit into the member limit of a page; the client requests the others (RFC 7644, section 3.4.2.4). */
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

async function announceGroups(
  db: Queryable,
  groups: readonly store.StoredGroup[],
  projection: Projection,
  root: string,
) {
  const ids = groups.map(({ id }) => id);
  const rows = ids.length > 0 && includes(projection, 'members') ? await store.membersOf(db, ids) : [];
  const members = Map.groupBy(rows, ({ groupId }) => groupId);
  return groups.map((group) => project(groupResource(group, members.get(group.id) ?? [], root), projection));
}
