/** The operations on guardrails. Those on assignments to keys and members are in `assignments/`. */
import { type Caller, chosenWorkspace, GUARDRAILS_TOPIC, hasWorkspace, WORKSPACES_TOPIC } from '../access/index.ts';
import { authorOf, type Changed, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, notFound } from '../base/errors.ts';
import { isUuid, uuidv7 } from '../base/ids.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { idOf, listReply, ok, pageOf } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { defaultGuardrailId } from '../workspaces/index.ts';
import { checkPatterns } from './filters/patterns.ts';
import { changedSettings, guardrailReply, guardrailResource } from './guardrail.ts';
import * as schema from './schema.ts';
import { type GuardrailSettings, NO_RULES } from './settings.ts';
import * as store from './store.ts';

export interface GuardrailParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  /** Resolves when everything that any process settled before the call is in the database. */
  spendEntered(): Promise<void>;
}

/** Per organization. */
const MAX_GUARDRAILS = 10_000;
/** A guardrail without rules. */
export const UNSET: Omit<GuardrailSettings, 'name'> = {
  description: null,
  rules: NO_RULES,
  limitNano: null,
  resetInterval: null,
  includeByok: false,
};
/** Revision of a default guardrail without a row. */
const UNWRITTEN = '00000000-0000-0000-0000-000000000000';

const TAG = 'Guardrails';

/** Reads `parts` only while handling a request. */
export function guardrailOperations(parts: GuardrailParts): Operation<Caller>[] {
  return [
    listGuardrails(parts),
    createGuardrail(parts),
    getGuardrail(parts),
    updateGuardrail(parts),
    deleteGuardrail(parts),
  ];
}

function listGuardrails(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'listGuardrails',
    method: 'GET',
    path: '/guardrails',
    summary: 'List the guardrails of a workspace, the default one first, then newest first',
    tag: TAG,
    access: MANAGEMENT,
    query: schema.ListGuardrailsQuerySchema,
    replies: ok(
      'One page of guardrails, of the default workspace unless `workspace_id` is given',
      schema.GuardrailListEnvelope,
    ),
    async handle(exchange) {
      const { database } = parts;
      const { organizationId } = exchange.caller;
      const query = exchange.query as schema.ListGuardrailsQuery;
      const workspaceId = await chosenWorkspace(database, organizationId, query.workspace_id?.toLowerCase());
      const page = pageOf(query);
      const { guardrails, total } = await store.listGuardrails(database, organizationId, workspaceId, page);
      exchange.reply(200, listReply(guardrails.map(guardrailReply), total));
    },
  };
}

function createGuardrail(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'createGuardrail',
    method: 'POST',
    path: '/guardrails',
    summary: 'Create a guardrail; it applies to the keys and members it is assigned to',
    tag: TAG,
    access: MANAGEMENT,
    body: { schema: schema.CreateGuardrailSchema },
    replies: { 201: { description: 'The guardrail', schema: schema.GuardrailEnvelope } },
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const body = exchange.body as schema.CreateGuardrailBody;
      const settings = changedSettings({ ...UNSET, name: body.name }, body);
      await checkPatterns('content_filters', settings.rules.patterns ?? []);
      const createdAt = new Date(parts.clock.now());
      const guardrail = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const workspaceId = await chosenWorkspace(tx, organizationId, body.workspace_id?.toLowerCase(), true);
        return addGuardrail(tx, changed, { organizationId, workspaceId, createdAt }, settings);
      });
      exchange.reply(201, { data: guardrailReply(guardrail) });
    },
  };
}

interface Place {
  organizationId: string;
  workspaceId: string;
  createdAt: Date;
}

/** @throws GatewayError 400 for too many guardrails */
export async function addGuardrail(
  tx: Queryable,
  changed: Changed,
  { organizationId, workspaceId, createdAt }: Place,
  settings: GuardrailSettings,
  defaultId?: string,
): Promise<store.StoredGuardrail> {
  if ((await store.countGuardrails(tx, organizationId)) >= MAX_GUARDRAILS) {
    throw new GatewayError('invalid_request', `an organization has at most ${MAX_GUARDRAILS} guardrails`);
  }
  const made: store.StoredGuardrail = {
    ...settings,
    id: defaultId ?? uuidv7(createdAt.getTime()),
    workspaceId,
    isDefault: defaultId !== undefined,
    revision: uuidv7(createdAt.getTime()),
    createdAt,
    updatedAt: null,
  };
  await store.insertGuardrail(tx, organizationId, made);
  // No announcement: no process can have cached a new guardrail.
  await changed({ action: 'guardrail.created', ...guardrailResource(made), after: guardrailReply(made) });
  return made;
}

function getGuardrail(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'getGuardrail',
    method: 'GET',
    path: '/guardrails/{id}',
    summary: 'Get a guardrail; the default one of a workspace always exists',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.GuardrailParamsSchema,
    replies: ok('The guardrail', schema.GuardrailEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      exchange.reply(200, {
        data: guardrailReply(await existingGuardrail(parts.database, organizationId, idOf(exchange))),
      });
    },
  };
}

function updateGuardrail(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'updateGuardrail',
    method: 'PATCH',
    path: '/guardrails/{id}',
    summary: 'Update a guardrail; lists are replaced and null clears a member',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.GuardrailParamsSchema,
    body: { schema: schema.UpdateGuardrailSchema },
    errors: [409],
    replies: ok('The updated guardrail. The change is in effect in every process', schema.GuardrailEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const body = exchange.body as schema.GuardrailBody;
      const id = idOf(exchange);
      // Before the transaction, because compiling takes time.
      const given = changedSettings(
        { ...UNSET, name: 'x' },
        { ...body, limit_usd: undefined, reset_interval: undefined },
      );
      await checkPatterns('content_filters', given.rules.patterns ?? []);
      const { guardrail, isNewLimit } = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const now = new Date(parts.clock.now());
        const before = await existingGuardrail(tx, organizationId, id, true);
        const settings = changedSettings(before, body);
        const guardrail = await rewriteGuardrail(tx, changed, { organizationId, before, settings, now });
        return { guardrail, isNewLimit: resetsUsage(before, guardrail) };
      });
      // Leases cover neither spend from before the new limit, nor earlier BYOK spend.
      if (isNewLimit) await parts.spendEntered();
      exchange.reply(200, { data: guardrailReply(guardrail) });
    },
  };
}

interface Rewrite {
  organizationId: string;
  /** As read in the transaction, with a lock. */
  before: store.StoredGuardrail;
  settings: GuardrailSettings;
  now: Date;
}

/** @throws GatewayError 409 if another request has just written this default guardrail for the first time */
export async function rewriteGuardrail(
  tx: Queryable,
  changed: Changed,
  { organizationId, before, settings, now }: Rewrite,
): Promise<store.StoredGuardrail> {
  const revision = uuidv7(now.getTime());
  const guardrail: store.StoredGuardrail = { ...before, ...settings, revision, updatedAt: now };
  if (isWritten(before)) await store.updateGuardrail(tx, before.id, settings, { revision, updatedAt: now });
  else if (!(await store.insertGuardrail(tx, organizationId, guardrail))) throw conflict();
  await changed({
    action: 'guardrail.updated',
    ...guardrailResource(guardrail),
    before: guardrailReply(before),
    after: guardrailReply(guardrail),
    announce: announced(guardrail),
  });
  return guardrail;
}

/** True if the change starts a new window, or makes other spend count. */
function resetsUsage(before: GuardrailSettings, after: GuardrailSettings): boolean {
  if (after.limitNano === null) return false;
  if (before.limitNano === null) return true;
  return before.resetInterval !== after.resetInterval || before.includeByok !== after.includeByok;
}

function deleteGuardrail(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'deleteGuardrail',
    method: 'DELETE',
    path: '/guardrails/{id}',
    summary: 'Delete a guardrail and its assignments; deleting a workspace default resets it',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.GuardrailParamsSchema,
    replies: ok('The guardrail is deleted and applies in no process', schema.DeletedEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const id = idOf(exchange);
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const guardrail = await existingGuardrail(tx, organizationId, id, true);
        if (!isWritten(guardrail)) return;
        await store.deleteGuardrail(tx, organizationId, id);
        await changed({
          action: 'guardrail.deleted',
          ...guardrailResource(guardrail),
          before: guardrailReply(guardrail),
          announce: announced(guardrail),
        });
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

/** The topic to announce. A key cached before its default guardrail was written does not know the guardrail's id. */
function announced({ id, isDefault, workspaceId }: store.StoredGuardrail): [topic: string, id: string] {
  return isDefault ? [WORKSPACES_TOPIC, workspaceId] : [GUARDRAILS_TOPIC, id];
}

function conflict(): GatewayError {
  return new GatewayError('invalid_request', 'Another request created this guardrail at the same time. Retry.', {
    status: 409,
  });
}

/** False for a default guardrail without a row. */
function isWritten({ revision }: store.StoredGuardrail): boolean {
  return revision !== UNWRITTEN;
}

/**
 * @param hold locks the guardrail until the transaction ends; for an unwritten default one, locks its workspace
 * @throws GatewayError 404
 */
export async function existingGuardrail(
  db: Queryable,
  organizationId: string,
  id: string,
  hold = false,
): Promise<store.StoredGuardrail> {
  const found = isUuid(id) ? await store.findGuardrail(db, organizationId, id, hold) : undefined;
  if (found !== undefined) return found;
  const workspaces = await store.workspacesOf(db, organizationId);
  const workspace = workspaces.find((one) => defaultGuardrailId(one.id) === id);
  const exists = workspace !== undefined && (!hold || (await hasWorkspace(db, organizationId, workspace.id, true)));
  if (!exists) throw notFound('guardrail with this id');
  return {
    ...UNSET,
    id,
    workspaceId: workspace.id,
    isDefault: true,
    name: `Workspace ${workspace.id} Default`,
    revision: UNWRITTEN,
    createdAt: workspace.createdAt,
    updatedAt: null,
  };
}
