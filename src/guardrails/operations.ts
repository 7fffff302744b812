/** The operations on guardrails (wire/guardrails.md). Those that give them to keys and members: `assignments/`. */
import { type Caller, chosenWorkspace, GUARDRAILS_TOPIC, hasWorkspace, WORKSPACES_TOPIC } from '../access/index.ts';
import { authorOf, recordChange } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { isUuid, uuidv7 } from '../base/ids.ts';
import { idOf, ok, pageOf } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import { changeEverywhere } from '../storage/change-everywhere.ts';
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
  /** Resolves when what every process had settled before the call is in the database. */
  spendEntered(): Promise<void>;
}

/** Of one organization. */
const MAX_GUARDRAILS = 10_000;
const UNSET: Omit<GuardrailSettings, 'name'> = {
  description: null,
  rules: NO_RULES,
  limitNano: null,
  resetInterval: null,
  includeByok: false,
};
/** A guardrail that is read as if it were there. */
const UNWRITTEN = '00000000-0000-0000-0000-000000000000';

const TAG = 'Guardrails';

/** Looks into `parts` only when a request comes. */
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
    summary: 'Guardrails of a workspace, its default one first, then the newest',
    tag: TAG,
    access: 'management',
    query: schema.ListGuardrailsQuerySchema,
    replies: ok('One page; the default workspace unless `workspace_id` names another', schema.GuardrailListEnvelope),
    async handle(exchange) {
      const { database } = parts;
      const { organizationId } = exchange.caller;
      const query = exchange.query as schema.ListGuardrailsQuery;
      const workspaceId = await chosenWorkspace(database, organizationId, query.workspace_id?.toLowerCase());
      const page = pageOf(query);
      const { guardrails, total } = await store.listGuardrails(database, organizationId, workspaceId, page);
      exchange.reply(200, { data: guardrails.map(guardrailReply), total_count: total });
    },
  };
}

function createGuardrail(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'createGuardrail',
    method: 'POST',
    path: '/guardrails',
    summary: 'Make a guardrail; it governs what it is assigned to',
    tag: TAG,
    access: 'management',
    body: { schema: schema.CreateGuardrailSchema },
    replies: { 201: { description: 'The guardrail', schema: schema.GuardrailEnvelope } },
    async handle(exchange) {
      const { database, clock } = parts;
      const { organizationId } = exchange.caller;
      const body = exchange.body as schema.CreateGuardrailBody;
      const settings = changedSettings({ ...UNSET, name: body.name }, body);
      await checkPatterns('content_filters', settings.rules.patterns ?? []);
      const createdAt = new Date(clock.now());
      const guardrail = await database.transaction(async (tx) => {
        const workspaceId = await chosenWorkspace(tx, organizationId, body.workspace_id?.toLowerCase(), true);
        if ((await store.countGuardrails(tx, organizationId)) >= MAX_GUARDRAILS) {
          throw new GatewayError(
            'invalid_request',
            `the organization has ${MAX_GUARDRAILS} guardrails, which is the most`,
          );
        }
        const made: store.StoredGuardrail = {
          ...settings,
          id: uuidv7(createdAt.getTime()),
          workspaceId,
          isDefault: false,
          revision: uuidv7(createdAt.getTime()),
          createdAt,
          updatedAt: null,
        };
        await store.insertGuardrail(tx, organizationId, made);
        const created = {
          action: 'guardrail.created',
          ...guardrailResource(made),
          after: guardrailReply(made),
        } as const;
        await recordChange(tx, authorOf(exchange), created);
        return made;
      });
      exchange.reply(201, { data: guardrailReply(guardrail) });
    },
  };
}

function getGuardrail(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'getGuardrail',
    method: 'GET',
    path: '/guardrails/{id}',
    summary: 'One guardrail; the default one of a workspace is there before anybody set it',
    tag: TAG,
    access: 'management',
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
    summary: 'Change a guardrail; lists are replaced, null clears, and setting a default one makes it',
    tag: TAG,
    access: 'management',
    params: schema.GuardrailParamsSchema,
    body: { schema: schema.UpdateGuardrailSchema },
    errors: [409],
    replies: ok('The guardrail as it is now, in every process', schema.GuardrailEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const body = exchange.body as schema.GuardrailBody;
      const id = idOf(exchange);
      // Before the transaction: compiling takes its time.
      const given = changedSettings(
        { ...UNSET, name: 'x' },
        { ...body, limit_usd: undefined, reset_interval: undefined },
      );
      await checkPatterns('content_filters', given.rules.patterns ?? []);
      const { guardrail, isNewLimit } = await changeEverywhere(parts, async (tx, announce) => {
        const now = new Date(parts.clock.now());
        const before = await existingGuardrail(tx, organizationId, id, true);
        const settings = changedSettings(before, body);
        const revision = uuidv7(now.getTime());
        const guardrail: store.StoredGuardrail = { ...before, ...settings, revision, updatedAt: now };
        if (isWritten(before)) await store.updateGuardrail(tx, id, settings, { revision, updatedAt: now });
        else if (!(await store.insertGuardrail(tx, organizationId, guardrail))) throw conflict();
        await recordChange(tx, authorOf(exchange), {
          action: 'guardrail.updated',
          ...guardrailResource(guardrail),
          before: guardrailReply(before),
          after: guardrailReply(guardrail),
        });
        await announce(...announced(guardrail));
        return { guardrail, isNewLimit: countsAnew(before, guardrail) };
      });
      // What was spent while nobody watched this window, or by own keys, is in no lease.
      if (isNewLimit) await parts.spendEntered();
      exchange.reply(200, { data: guardrailReply(guardrail) });
    },
  };
}

/** Whether another window, or other spend, is limited than before. */
function countsAnew(before: GuardrailSettings, after: GuardrailSettings): boolean {
  if (after.limitNano === null) return false;
  if (before.limitNano === null) return true;
  return before.resetInterval !== after.resetInterval || before.includeByok !== after.includeByok;
}

function deleteGuardrail(parts: GuardrailParts): Operation<Caller> {
  return {
    id: 'deleteGuardrail',
    method: 'DELETE',
    path: '/guardrails/{id}',
    summary: 'Delete a guardrail with its assignments; a default one is as if it had never been set',
    tag: TAG,
    access: 'management',
    params: schema.GuardrailParamsSchema,
    replies: ok('It governs nothing any more, in any process', schema.DeletedEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const id = idOf(exchange);
      await changeEverywhere(parts, async (tx, announce) => {
        const guardrail = await existingGuardrail(tx, organizationId, id, true);
        if (!isWritten(guardrail)) return;
        await store.deleteGuardrail(tx, organizationId, id);
        await recordChange(tx, authorOf(exchange), {
          action: 'guardrail.deleted',
          ...guardrailResource(guardrail),
          before: guardrailReply(guardrail),
        });
        await announce(...announced(guardrail));
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

/** Who hears of a change: a key that no default guardrail applied to does not know its id. */
function announced({ id, isDefault, workspaceId }: store.StoredGuardrail): [topic: string, id: string] {
  return isDefault ? [WORKSPACES_TOPIC, workspaceId] : [GUARDRAILS_TOPIC, id];
}

function conflict(): GatewayError {
  return new GatewayError('invalid_request', 'The guardrail was made by somebody else at this moment. Try again.', {
    status: 409,
  });
}

/** False for a default one that nobody has set. */
function isWritten({ revision }: store.StoredGuardrail): boolean {
  return revision !== UNWRITTEN;
}

/**
 * @param hold keeps it as it is until the transaction ends: a default one that nobody has set with its workspace
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
  const isThere = workspace !== undefined && (!hold || (await hasWorkspace(db, organizationId, workspace.id, true)));
  if (!isThere) throw new GatewayError('not_found', 'There is no guardrail with this id.');
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
