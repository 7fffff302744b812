/** The operations on workspace members. Roles are those of the organization. */
import type { Caller } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { listReply, ok, PageQuery, pageOf } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import { impliedMembershipId } from './derived-id.ts';
import { existingWorkspace } from './lookup.ts';
import * as store from './members.sql.ts';
import type { WorkspaceOperationParts } from './operations.ts';
import * as schema from './schema.ts';
import { workspaceResource } from './workspace.ts';

type Parts = Pick<WorkspaceOperationParts, 'database' | 'changes' | 'clock'>;

export function memberOperations(parts: Parts): Operation<Caller>[] {
  return [listMembers(parts), addMembers(parts), removeMembers(parts)];
}

function listMembers(parts: Parts): Operation<Caller> {
  return {
    id: 'listWorkspaceMembers',
    method: 'GET',
    path: '/workspaces/{id}/members',
    summary: 'List the members of a workspace; the default one has every member of the organization',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.WorkspaceParams,
    query: PageQuery,
    replies: ok('One page', schema.MemberListEnvelope),
    async handle(exchange) {
      const workspace = await existingWorkspace(parts.database, exchange.caller.organizationId, exchange.params['id']!);
      const members = await store.listMembers(parts.database, workspace, pageOf(exchange.query));
      exchange.reply(200, listReply(members.map(memberReply), await store.countMembers(parts.database, workspace)));
    },
  };
}

function addMembers(parts: Parts): Operation<Caller> {
  return {
    id: 'addWorkspaceMembers',
    method: 'POST',
    path: '/workspaces/{id}/members/add',
    summary: 'Add members of the organization to a workspace, with their organization roles',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.WorkspaceParams,
    body: { schema: schema.UserIdsSchema },
    replies: ok('The members named in the request', schema.AddedMembersEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const userIds = userIdsOf(exchange);
      const members = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const workspace = await existingWorkspace(tx, organizationId, exchange.params['id']!, true);
        await checkBelong(tx, organizationId, userIds);
        const now = parts.clock.now();
        const wanted = userIds.map((userId) => ({ id: uuidv7(now), userId }));
        // They are already members of the default workspace.
        const added = workspace.isDefault ? [] : await store.insertMembers(tx, workspace, wanted, new Date(now));
        if (added.length > 0) {
          await changed({
            action: 'workspace.members_added',
            ...workspaceResource(workspace),
            after: { user_ids: added },
          });
        }
        return store.findMembers(tx, workspace, userIds);
      });
      exchange.reply(200, { added_count: members.length, data: members.map(memberReply) });
    },
  };
}

function removeMembers(parts: Parts): Operation<Caller> {
  return {
    id: 'removeWorkspaceMembers',
    method: 'POST',
    path: '/workspaces/{id}/members/remove',
    summary: 'Remove members that have no active key in the workspace, all or none',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.WorkspaceParams,
    body: { schema: schema.UserIdsSchema },
    replies: ok('The number of members removed', schema.RemovedMembersEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const userIds = userIdsOf(exchange);
      const removed = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const workspace = await existingWorkspace(tx, organizationId, exchange.params['id']!, true);
        if (workspace.isDefault) {
          throw new GatewayError(
            'invalid_request',
            'every member of the organization belongs to its default workspace, so members cannot be removed from it',
          );
        }
        const held = await store.heldMembers(tx, workspace, userIds, new Date(parts.clock.now()));
        if (held.byScim.length > 0) {
          throw new GatewayError(
            'permission_denied',
            `user_ids names members that only the identity provider can remove: ${held.byScim.join(', ')}`,
            { path: 'user_ids' },
          );
        }
        if (held.byKeys.length > 0) {
          throw invalidField(
            'user_ids',
            `names members with active API keys in the workspace: ${held.byKeys.join(', ')}`,
          );
        }
        const removedIds = await store.deleteMembers(tx, workspace, userIds);
        if (removedIds.length > 0) {
          await changed({
            action: 'workspace.members_removed',
            ...workspaceResource(workspace),
            before: { user_ids: removedIds },
          });
        }
        return removedIds.length;
      });
      exchange.reply(200, { removed_count: removed });
    },
  };
}

function userIdsOf(exchange: Exchange<Caller>): string[] {
  return [...new Set((exchange.body as { user_ids: string[] }).user_ids)];
}

async function checkBelong(tx: Queryable, organizationId: string, userIds: readonly string[]): Promise<void> {
  const known = await store.membersOfOrganization(tx, organizationId, userIds);
  const outsiders = userIds.filter((userId) => !known.has(userId));
  if (outsiders.length === 0) return;
  throw invalidField('user_ids', `names users that are not members of the organization: ${outsiders.join(', ')}`);
}

function memberReply(member: store.StoredMember): schema.MemberReply {
  return {
    id: member.id ?? impliedMembershipId(member.workspaceId, member.userId),
    workspace_id: member.workspaceId,
    user_id: member.userId,
    role: member.role,
    created_at: member.createdAt.toISOString(),
  };
}
