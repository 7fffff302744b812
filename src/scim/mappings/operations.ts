/** The control plane's operations on groups and group mappings. */
import { type Caller, hasWorkspace } from '../../access/index.ts';
import { authorOf, changeAs } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import { GatewayError, orNotFound } from '../../base/errors.ts';
import { isUuid, uuidv7 } from '../../base/ids.ts';
import { MANAGEMENT } from '../../http/access-rule.ts';
import { listReply, ok, PageQuery, pageOf } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { countGroups, findGroup, listGroups, type StoredGroup } from '../groups/store.ts';
import * as schema from '../schema.ts';
import { lockOrganization } from '../store.ts';
import { applyGrants } from './grants.ts';
import * as store from './store.ts';

interface MappingParts {
  database: Database;
  changes: Changes;
  clock: Clock;
}

const MAX_MAPPINGS = 10_000;

const common = { tag: 'SCIM groups', access: MANAGEMENT } as const;

export function mappingOperations(parts: MappingParts): Operation<Caller>[] {
  return [
    listScimGroups(parts),
    listMappings(parts),
    createMapping(parts),
    getMapping(parts),
    updateMapping(parts),
    deleteMapping(parts),
  ];
}

function listScimGroups(parts: MappingParts): Operation<Caller> {
  return {
    ...common,
    id: 'listScimGroups',
    method: 'GET',
    path: '/scim/groups',
    summary: 'List the groups from the identity provider, oldest first',
    query: PageQuery,
    replies: ok('One page', schema.GroupListEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const question = { condition: undefined, order: undefined, ...pageOf(exchange.query) };
      const groups = await listGroups(parts.database, organizationId, question);
      const total = await countGroups(parts.database, organizationId, undefined);
      exchange.reply(200, listReply(groups.map(groupReply), total));
    },
  };
}

function listMappings(parts: MappingParts): Operation<Caller> {
  return {
    ...common,
    id: 'listScimGroupMappings',
    method: 'GET',
    path: '/scim/group-mappings',
    summary: 'List the group mappings, oldest first',
    query: PageQuery,
    replies: ok('One page', schema.MappingListEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const mappings = await store.listMappings(parts.database, organizationId, pageOf(exchange.query));
      const total = await store.countMappings(parts.database, organizationId);
      exchange.reply(200, listReply(mappings.map(mappingReply), total));
    },
  };
}

function createMapping(parts: MappingParts): Operation<Caller> {
  return {
    ...common,
    id: 'createScimGroupMapping',
    method: 'POST',
    path: '/scim/group-mappings',
    summary: 'Create a mapping: members of the group get a role in the workspace while they are in the group',
    body: { schema: schema.CreateMappingSchema },
    errors: [404, 409, 429],
    replies: { 201: { description: 'The mapping. Its grants are in effect', schema: schema.MappingEnvelope } },
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const { role, ...body } = exchange.body as schema.CreateMappingBody;
      const [groupId, workspaceId] = [body.scim_group_id.toLowerCase(), body.workspace_id.toLowerCase()];
      const mapping = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        await lockOrganization(tx, organizationId);
        if (!(await findGroup(tx, organizationId, groupId))) throw missing('scim_group_id is not a known group');
        if (!(await hasWorkspace(tx, organizationId, workspaceId)))
          throw missing('workspace_id is not a known workspace');
        if (await store.isMapped(tx, groupId, workspaceId)) {
          throw new GatewayError('invalid_request', 'the group is already mapped to this workspace', { status: 409 });
        }
        if ((await store.countMappings(tx, organizationId)) >= MAX_MAPPINGS) {
          throw new GatewayError('invalid_request', `an organization has at most ${MAX_MAPPINGS} group mappings`);
        }
        const now = parts.clock.now();
        const id = uuidv7(now);
        await store.insertMapping(tx, { id, organizationId, groupId, workspaceId, role, createdAt: new Date(now) });
        await applyGrants(tx, organizationId, { workspaceIds: [workspaceId] }, now);
        const made = await existing(tx, organizationId, id);
        await changed({
          action: 'scim_group_mapping.created',
          ...mappingResource(made),
          after: mappingReply(made),
        });
        return made;
      });
      exchange.reply(201, { data: mappingReply(mapping) });
    },
  };
}

function getMapping(parts: MappingParts): Operation<Caller> {
  return {
    ...common,
    id: 'getScimGroupMapping',
    method: 'GET',
    path: '/scim/group-mappings/{id}',
    summary: 'One mapping',
    params: schema.IdParams,
    replies: ok('The mapping', schema.MappingEnvelope),
    async handle(exchange) {
      const mapping = await existing(parts.database, exchange.caller.organizationId, exchange.params['id']!);
      exchange.reply(200, { data: mappingReply(mapping) });
    },
  };
}

function updateMapping(parts: MappingParts): Operation<Caller> {
  return {
    ...common,
    id: 'updateScimGroupMapping',
    method: 'PATCH',
    path: '/scim/group-mappings/{id}',
    summary: 'Update the role of a mapping; an empty object changes nothing',
    params: schema.IdParams,
    body: { schema: schema.UpdateMappingSchema },
    errors: [429],
    replies: ok('The mapping. Its grants are in effect', schema.MappingEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const { role } = exchange.body as schema.UpdateMappingBody;
      const mapping = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        await lockOrganization(tx, organizationId);
        const before = await existing(tx, organizationId, exchange.params['id']!);
        if (role === undefined || role === before.role) return before;
        const now = parts.clock.now();
        await store.updateRole(tx, before.id, role, new Date(now));
        await applyGrants(tx, organizationId, { workspaceIds: [before.workspaceId] }, now);
        const after = await existing(tx, organizationId, before.id);
        await changed({
          action: 'scim_group_mapping.updated',
          ...mappingResource(after),
          before: mappingReply(before),
          after: mappingReply(after),
        });
        return after;
      });
      exchange.reply(200, { data: mappingReply(mapping) });
    },
  };
}

function deleteMapping(parts: MappingParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteScimGroupMapping',
    method: 'DELETE',
    path: '/scim/group-mappings/{id}',
    summary: 'Delete a group mapping and choose what happens to the members it added',
    params: schema.IdParams,
    query: schema.DeleteMappingQuery,
    errors: [429],
    replies: ok('The mapping is deleted', schema.DeletedEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        await lockOrganization(tx, organizationId);
        const mapping = await existing(tx, organizationId, exchange.params['id']!);
        if (exchange.query['keep_members'] === true) await store.keepByHand(tx, mapping);
        await store.deleteMapping(tx, mapping.id);
        await changed({
          action: 'scim_group_mapping.deleted',
          ...mappingResource(mapping),
          before: { ...mappingReply(mapping), keep_members: exchange.query['keep_members'] },
        });
        await applyGrants(tx, organizationId, { workspaceIds: [mapping.workspaceId] }, parts.clock.now());
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

/**
 * For deleting a workspace: call it in the same transaction, which holds the organization's lock and deletes the
 * memberships.
 */
export async function endMappings(tx: Queryable, workspaceId: string): Promise<void> {
  await store.deleteMappingsOf(tx, workspaceId);
}

async function existing(db: Queryable, organizationId: string, id: string): Promise<store.StoredMapping> {
  const mapping = isUuid(id) ? await store.findMapping(db, organizationId, id) : undefined;
  return orNotFound(mapping, 'group mapping with this id');
}

function missing(message: string): GatewayError {
  return new GatewayError('not_found', message);
}

function groupReply(group: StoredGroup): schema.GroupReply {
  return {
    id: group.id,
    organization_id: group.organizationId,
    display_name: group.displayName,
    external_id: group.externalId,
    created_at: group.createdAt.toISOString(),
    updated_at: group.updatedAt.toISOString(),
  };
}

/** The resource of an audit entry about a mapping. */
function mappingResource({ id, workspaceId }: store.StoredMapping) {
  return { resourceType: 'scim_group_mapping', resourceId: id, workspaceId };
}

function mappingReply(mapping: store.StoredMapping): schema.MappingReply {
  return {
    id: mapping.id,
    organization_id: mapping.organizationId,
    scim_group_id: mapping.groupId,
    workspace_id: mapping.workspaceId,
    role: mapping.role,
    created_at: mapping.createdAt.toISOString(),
    updated_at: mapping.updatedAt.toISOString(),
  };
}
