/** `/scim/v2/Groups`. */
import type { Caller } from '../../access/index.ts';
import { isUuid } from '../../base/ids.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import type { Queryable } from '../../storage/database.ts';
import { Endpoint } from '../endpoint.ts';
import type { Question } from '../filter/store.ts';
import { GROUP } from '../protocol/attributes.ts';
import type { MemberStep } from '../protocol/member-steps.ts';
import * as protocol from '../protocol/operation.ts';
import { applyPatch } from '../protocol/patch.ts';
import { type Projection, project, tells } from '../protocol/projection.ts';
import { readResource } from '../protocol/resource.ts';
import type { ProvisioningParts } from '../provisioning.ts';
import { groupFacts, groupResource, membersIn } from './group.ts';
import { changeGroup, createGroup, removeGroup } from './provision.ts';
import * as store from './store.ts';

type Groups = Endpoint<store.StoredGroup>;

/** A group of several tens of thousands comes in one piece. */
const GROUP_BYTES = 16 * 1024 * 1024;
/** Members on one page; a page with more has fewer groups. */
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
    tell: tellGroups,
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
    summary: 'Make a group, with members or without',
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
    summary: 'Replace a group and who is in it',
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
    summary: 'Change a group or who is in it: all operations or none',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: groupBody,
    errors: protocol.WRITE_ERRORS,
    replies: {
      200: {
        description: 'The group, where `attributes` or `excludedAttributes` ask for it',
        schema: protocol.AnyObject,
      },
      204: { description: 'It is as it was asked to be' },
    },
    async handle(exchange) {
      const group = await groups.change(exchange, async (provisioning, before) => {
        const { attributes, members } = applyPatch(GROUP, before.id, before.attributes, exchange.body);
        await changeGroup(provisioning, before, groupFacts(attributes), members);
      });
      // Members are changed one at a time, and telling all of them every time would take longer than all else.
      const asked = exchange.query['attributes'] || exchange.query['excludedAttributes'];
      if (asked) await groups.reply(exchange, 200, group);
      else exchange.reply(204, undefined, { ETag: protocol.metaOf(GROUP, group.id, group, '').version });
    },
  });
}

function deleteGroup(groups: Groups): Operation<Caller> {
  return protocol.scimOperation({
    id: 'deleteScimGroup',
    method: 'DELETE',
    path: '/Groups/{id}',
    summary: 'Delete a group, with its mappings and what they granted',
    params: protocol.IdParams,
    errors: protocol.WRITE_ERRORS,
    replies: { 204: { description: 'The group is gone' } },
    handle: (exchange) => groups.remove(exchange, removeGroup),
  });
}

async function findGroup(db: Queryable, organizationId: string, id: string): Promise<store.StoredGroup | undefined> {
  return isUuid(id) ? store.findGroup(db, organizationId, id) : undefined;
}

async function listGroups(db: Queryable, organizationId: string, question: Question, projection: Projection) {
  const groups = await store.listGroups(db, organizationId, question);
  return tells(projection, 'members') ? onOnePage(db, groups) : groups;
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

async function tellGroups(db: Queryable, groups: readonly store.StoredGroup[], projection: Projection, root: string) {
  const ids = groups.map(({ id }) => id);
  const rows = ids.length > 0 && tells(projection, 'members') ? await store.membersOf(db, ids) : [];
  const members = Map.groupBy(rows, ({ groupId }) => groupId);
  return groups.map((group) => project(groupResource(group, members.get(group.id) ?? [], root), projection));
}
