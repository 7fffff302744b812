/** The operations on workspaces themselves. */
import { type Caller, WORKSPACES_TOPIC } from '../access/index.ts';
import { authorOf, type Changed, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { listReply, ok, PageQuery, pageOf } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { budgetOperations } from './budget-operations.ts';
import { existingWorkspace } from './lookup.ts';
import { memberOperations } from './member-operations.ts';
import { insertMembers, membersOfOrganization } from './members.sql.ts';
import * as schema from './schema.ts';
import * as store from './store.ts';
import { changedSettings, newSettings, workspaceReply, workspaceResource } from './workspace.ts';

export interface WorkspaceOperationParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  /** True if the catalog currently has a model of this name. */
  knowsModel(name: string): boolean;
  /** A server tool (`svc:...`) in the configured namespace's spelling. */
  toolName(name: string): string;
  /**
   * Resolves when everything that any process has settled so far is in the database, provided the database keeps up: a
   * new budget counts from there.
   */
  spendEntered(): Promise<void>;
  /** Deletes what other folders keep about a deleted workspace, in the same transaction. */
  ended: readonly ((tx: Queryable, workspaceId: string) => Promise<void>)[];
}

const MAX_WORKSPACES = 10_000;

/** Reads `parts` only while handling a request, so that the contract can be built without a database. */
export function workspaceOperations(parts: WorkspaceOperationParts): Operation<Caller>[] {
  return [
    listWorkspaces(parts),
    createWorkspace(parts),
    getWorkspace(parts),
    updateWorkspace(parts),
    deleteWorkspace(parts),
    ...memberOperations(parts),
    ...budgetOperations(parts),
  ];
}

function listWorkspaces(parts: WorkspaceOperationParts): Operation<Caller> {
  return {
    id: 'listWorkspaces',
    method: 'GET',
    path: '/workspaces',
    summary: 'List the workspaces of the organization, oldest first',
    tag: 'Workspaces',
    access: MANAGEMENT,
    query: PageQuery,
    replies: ok('One page', schema.WorkspaceListEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const workspaces = await store.listWorkspaces(parts.database, organizationId, pageOf(exchange.query));
      const data = workspaces.map((workspace) => workspaceReply(workspace, parts.toolName));
      exchange.reply(200, listReply(data, await store.countWorkspaces(parts.database, organizationId)));
    },
  };
}

function createWorkspace(parts: WorkspaceOperationParts): Operation<Caller> {
  return {
    id: 'createWorkspace',
    method: 'POST',
    path: '/workspaces',
    summary: 'Create a workspace; its creator becomes the first member',
    tag: 'Workspaces',
    access: MANAGEMENT,
    body: { schema: schema.CreateWorkspaceSchema },
    replies: { 201: { description: 'The workspace', schema: schema.WorkspaceEnvelope } },
    async handle(exchange) {
      const { organizationId, userId } = exchange.caller;
      const settings = newSettings(exchange.body as schema.CreateWorkspaceBody, parts.knowsModel);
      const creation = { organizationId, userId, settings, createdAt: new Date(parts.clock.now()) };
      const workspace = await changeAs(authorOf(exchange), parts, (tx, changed) =>
        addWorkspace(tx, changed, creation, parts.toolName),
      );
      exchange.reply(201, { data: workspaceReply(workspace, parts.toolName) });
    },
  };
}

interface Creation {
  organizationId: string;
  /** The creator, who becomes its first member; null: it begins without members. */
  userId: string | null;
  settings: store.WorkspaceSettings;
  createdAt: Date;
}

/** @throws GatewayError 400 for a slug that is taken, or too many workspaces */
export async function addWorkspace(
  tx: Queryable,
  changed: Changed,
  { organizationId, userId, settings, createdAt }: Creation,
  toolName: WorkspaceOperationParts['toolName'],
): Promise<store.StoredWorkspace> {
  await takeSlug(tx, organizationId, settings.slug);
  if ((await store.countWorkspaces(tx, organizationId)) >= MAX_WORKSPACES) {
    throw new GatewayError('invalid_request', `an organization has at most ${MAX_WORKSPACES} workspaces`);
  }
  const id = uuidv7(createdAt.getTime());
  await store.insertWorkspace(tx, { id, organizationId, settings, createdAt, createdBy: userId });
  const made = await existingWorkspace(tx, organizationId, id);
  if (userId !== null && (await membersOfOrganization(tx, organizationId, [userId])).has(userId)) {
    await insertMembers(tx, made, [{ id: uuidv7(createdAt.getTime()), userId }], createdAt);
  }
  // No announcement: no process can have cached a new workspace.
  await changed({ action: 'workspace.created', ...workspaceResource(made), after: workspaceReply(made, toolName) });
  return made;
}

function getWorkspace(parts: WorkspaceOperationParts): Operation<Caller> {
  return {
    id: 'getWorkspace',
    method: 'GET',
    path: '/workspaces/{id}',
    summary: 'One workspace',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.WorkspaceParams,
    replies: ok('The workspace', schema.WorkspaceEnvelope),
    async handle(exchange) {
      const workspace = await existingWorkspace(parts.database, exchange.caller.organizationId, exchange.params['id']!);
      exchange.reply(200, { data: workspaceReply(workspace, parts.toolName) });
    },
  };
}

function updateWorkspace(parts: WorkspaceOperationParts): Operation<Caller> {
  return {
    id: 'updateWorkspace',
    method: 'PATCH',
    path: '/workspaces/{id}',
    summary: 'Update a workspace',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.WorkspaceParams,
    body: { schema: schema.UpdateWorkspaceSchema },
    replies: {
      200: {
        description: 'The updated workspace. The change is in effect in every process',
        schema: schema.WorkspaceEnvelope,
      },
    },
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const body = exchange.body as schema.UpdateWorkspaceBody;
      const workspace = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        // Always lock the organization before the workspace, so that concurrent changes do not deadlock.
        if (body.slug !== undefined) await store.lockOrganization(tx, organizationId);
        const before = await existingWorkspace(tx, organizationId, exchange.params['id']!, true);
        const settings = changedSettings(before.settings, body, parts.knowsModel);
        if (settings.slug !== before.settings.slug) await takeSlug(tx, organizationId, settings.slug);
        await store.updateWorkspace(tx, before.id, settings, new Date(parts.clock.now()));
        const after = await existingWorkspace(tx, organizationId, before.id);
        await changed({
          action: 'workspace.updated',
          ...workspaceResource(after),
          before: workspaceReply(before, parts.toolName),
          after: workspaceReply(after, parts.toolName),
          announce: [WORKSPACES_TOPIC, before.id],
        });
        return after;
      });
      exchange.reply(200, { data: workspaceReply(workspace, parts.toolName) });
    },
  };
}

function deleteWorkspace(parts: WorkspaceOperationParts): Operation<Caller> {
  return {
    id: 'deleteWorkspace',
    method: 'DELETE',
    path: '/workspaces/{id}',
    summary: 'Delete a workspace without active keys, with its budgets, members and guardrails',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.WorkspaceParams,
    query: schema.DeleteWorkspaceQuery,
    replies: ok('The workspace is deleted', schema.DeletedEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const confirmed = exchange.query['confirm_default_workspace_deletion'] === true;
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        await store.lockOrganization(tx, organizationId);
        const workspace = await existingWorkspace(tx, organizationId, exchange.params['id']!, true);
        const now = new Date(parts.clock.now());
        await checkMayEnd(tx, workspace, confirmed, now);
        for (const end of parts.ended) await end(tx, workspace.id);
        await store.endWorkspace(tx, workspace, now);
        await changed({
          action: 'workspace.deleted',
          ...workspaceResource(workspace),
          before: workspaceReply(workspace, parts.toolName),
          announce: [WORKSPACES_TOPIC, workspace.id],
        });
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

async function checkMayEnd(
  tx: Queryable,
  workspace: store.StoredWorkspace,
  confirmed: boolean,
  now: Date,
): Promise<void> {
  if (workspace.isDefault) {
    if (confirmed) return;
    throw invalidField(
      'confirm_default_workspace_deletion',
      'must be true to delete the default workspace, because its keys will be disabled',
    );
  }
  const keys = await store.countActiveKeys(tx, workspace.id, now);
  if (keys === 0) return;
  throw new GatewayError(
    'invalid_request',
    `the workspace has ${keys} active API key${keys === 1 ? '' : 's'}: delete or disable them first`,
  );
}

async function takeSlug(tx: Queryable, organizationId: string, slug: string): Promise<void> {
  await store.lockOrganization(tx, organizationId);
  if (await store.isSlugTaken(tx, organizationId, slug)) {
    throw invalidField('slug', `is already used by another workspace: ${slug}`);
  }
}
