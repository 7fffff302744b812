/** `/interns`: the resource. */
import type { Caller } from '../access/index.ts';
import { authorOf } from '../audit/index.ts';
import { invalidField } from '../base/errors.ts';
import { isUuid } from '../base/ids.ts';
import { INFERENCE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { type ChangeParts, deleteIntern, provisionIntern, suspendIntern, updateIntern } from './change-intern.ts';
import { createIntern } from './create-intern.ts';
import { encodeInternError, internError } from './errors.ts';
import { type Intern, internReply } from './intern.ts';
import { STATUSES } from './lifecycle.ts';
import * as schema from './schema.ts';
import * as store from './store.ts';

export interface InternParts extends ChangeParts {
  /** Whether the caller takes part in the programme now; rejects with GatewayError 404 otherwise. */
  confirmProgramme(caller: Caller): Promise<void>;
}

/** How long a caller waits for an operation; its work continues. */
const WAIT_MS = 10_000;
const MOST_STATUSES = 8;

const common = {
  tag: 'Interns',
  errorSchema: schema.InternErrorSchema,
} as const;

const ACCESS = { ...INFERENCE, otherKinds: 'unknown', programme: 'interns', regions: ['global'] } as const;
/** The key of an intern is confined to that intern. */
export const ACCESS_TO_ONE = { ...ACCESS, scope: 'intern' } as const;
const ALL = { ...ACCESS, scope: 'interns' } as const;

/** Reads `parts` only while handling a request. */
export function internOperations(parts: InternParts): Operation<Caller>[] {
  return [
    listInterns(parts),
    create(parts),
    getIntern(parts),
    update(parts),
    provision(parts),
    suspend(parts),
    remove(parts),
  ].map((operation) => ({
    ...operation,
    encodeError: encodeInternError(operation.body ? 'invalid_body' : 'bad_request'),
    handle: (exchange) => inTime(parts, confirmed(parts, operation, exchange)),
  }));
}

async function confirmed({ confirmProgramme }: InternParts, operation: Operation<Caller>, exchange: Exchange<Caller>) {
  await confirmProgramme(exchange.caller);
  await operation.handle(exchange);
}

/** @throws GatewayError 408 */
function inTime({ clock }: InternParts, work: Promise<void>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = clock.timer(WAIT_MS, () => {
    reject(internError('timeout', `The operation takes longer than ${WAIT_MS / 1000} s; it continues. Retry.`));
  });
  return Promise.race([work, late]).finally(() => timer.cancel());
}

function listInterns(parts: InternParts): Operation<Caller> {
  return {
    ...{ ...common, access: ALL },
    id: 'listInterns',
    method: 'GET',
    path: '/interns',
    summary: 'List the interns of the workspace of the key, newest first',
    query: schema.ListInternsQuery,
    errors: [408],
    replies: ok('One page', schema.InternPage),
    async handle(exchange) {
      const {
        limit = schema.DEFAULT_PAGE,
        status,
        starting_after,
        workspace_id,
      } = exchange.query as schema.ListInterns;
      const { workspaceId } = exchange.caller;
      checkWorkspace(workspace_id, workspaceId);
      const found = await store.listInterns(parts.database, {
        ...{ workspaceId, statuses: status === undefined ? null : statusesOf(status) },
        ...{ after: starting_after === undefined ? null : cursorOf(starting_after), limit: limit + 1 },
      });
      const page = found.slice(0, limit);
      const hasMore = found.length > limit;
      exchange.reply(200, {
        data: page.map(internReply),
        has_more: hasMore,
        ...(hasMore && { next_cursor: page.at(-1)!.id }),
      });
    },
  };
}

function statusesOf(given: readonly string[]): string[] {
  const statuses = [...new Set(given.flatMap((part) => part.split(',')).map((part) => part.trim()))];
  if (statuses.length > MOST_STATUSES) throw invalidField('status', `names more than ${MOST_STATUSES} statuses`);
  for (const status of statuses) {
    if ((STATUSES as readonly string[]).includes(status)) continue;
    throw invalidField('status', `must be one of: ${STATUSES.join(', ')}`);
  }
  return statuses;
}

function cursorOf(text: string): string {
  if (isUuid(text)) return text;
  throw invalidField('starting_after', 'is not the next_cursor of a page');
}

function create(parts: InternParts): Operation<Caller> {
  return {
    ...{ ...common, access: ALL },
    id: 'createIntern',
    method: 'POST',
    path: '/interns',
    summary: 'Create an intern with its own vault and API key, and start it if asked to',
    body: { schema: schema.CreateInternBody, maxBytes: schema.BODY_BYTES },
    errors: [409, 502],
    replies: {
      201: { description: 'The intern', schema: schema.InternSchema },
      200: {
        description: 'The intern that an earlier request created with this idempotency key, or with this body',
        schema: schema.InternSchema,
      },
    },
    async handle(exchange) {
      const body = exchange.body as schema.CreateIntern;
      checkWorkspace(body.workspace_id, exchange.caller.workspaceId);
      const { intern, isNew } = await createIntern(exchange, parts, body);
      exchange.reply(isNew ? 201 : 200, internReply(intern));
    },
  };
}

function getIntern(parts: InternParts): Operation<Caller> {
  return {
    ...{ ...common, access: ACCESS_TO_ONE },
    id: 'getIntern',
    method: 'GET',
    path: '/interns/{internId}',
    summary: 'Show an intern',
    params: schema.InternParams,
    errors: [408],
    replies: ok('The intern', schema.InternSchema),
    async handle(exchange) {
      exchange.reply(200, internReply(await existingIntern(exchange, parts)));
    },
  };
}

function update(parts: InternParts): Operation<Caller> {
  return {
    ...{ ...common, access: ACCESS_TO_ONE },
    id: 'updateIntern',
    method: 'PATCH',
    path: '/interns/{internId}',
    summary: 'Change the settings of an intern; model and instructions take effect when it is next provisioned',
    params: schema.InternParams,
    body: { schema: schema.UpdateInternBody, maxBytes: schema.BODY_BYTES },
    errors: [409],
    replies: ok('The intern', schema.InternSchema),
    async handle(exchange) {
      const { id } = await existingIntern(exchange, parts);
      exchange.reply(
        200,
        internReply(await updateIntern(authorOf(exchange), parts, id, exchange.body as schema.UpdateIntern)),
      );
    },
  };
}

function provision(parts: InternParts): Operation<Caller> {
  return {
    ...{ ...common, access: ACCESS_TO_ONE },
    id: 'provisionIntern',
    method: 'POST',
    path: '/interns/{internId}/provision',
    summary: 'Start an intern, for the first time or again; its workspace stays',
    params: schema.InternParams,
    body: { schema: schema.EmptyBody, maxBytes: schema.BODY_BYTES, optional: true },
    errors: [409, 502],
    replies: { 202: { description: 'The intern is starting, or running', schema: schema.ProvisionReply } },
    async handle(exchange) {
      const { id } = await existingIntern(exchange, parts);
      await provisionIntern(authorOf(exchange), parts, id);
      exchange.reply(202, { provisioning: true });
    },
  };
}

function suspend(parts: InternParts): Operation<Caller> {
  return {
    ...{ ...common, access: ACCESS_TO_ONE },
    id: 'suspendIntern',
    method: 'POST',
    path: '/interns/{internId}/suspend',
    summary: 'Stop an intern; its workspace and settings stay',
    params: schema.InternParams,
    body: { schema: schema.EmptyBody, maxBytes: schema.BODY_BYTES, optional: true },
    errors: [409, 502],
    replies: ok('The intern is stopped', schema.SuspendReply),
    async handle(exchange) {
      const { id } = await existingIntern(exchange, parts);
      await suspendIntern(authorOf(exchange), parts, id);
      exchange.reply(200, { suspended: true });
    },
  };
}

function remove(parts: InternParts): Operation<Caller> {
  return {
    ...{ ...common, access: ACCESS_TO_ONE },
    id: 'deleteIntern',
    method: 'DELETE',
    path: '/interns/{internId}',
    summary: 'Archive the workspace of an intern, then delete the intern and its vault',
    params: schema.InternParams,
    body: { schema: schema.DeleteInternBody, maxBytes: schema.BODY_BYTES, optional: true },
    errors: [409, 502],
    replies: { 202: { description: 'The intern is being deleted', schema: schema.DeleteReply } },
    async handle(exchange) {
      const { id } = await existingIntern(exchange, parts);
      const { acknowledge_workspace_loss = false } = (exchange.body ?? {}) as schema.DeleteIntern;
      await deleteIntern(authorOf(exchange), parts, id, acknowledge_workspace_loss);
      exchange.reply(202, { deleting: true });
    },
  };
}

function checkWorkspace(named: string | undefined, workspaceId: string): void {
  if (named === undefined || named.toLowerCase() === workspaceId) return;
  throw invalidField('workspace_id', 'must be the workspace of the key');
}

/** The intern that the path names. @throws GatewayError 404 if the workspace of the key has none with this id */
export async function existingIntern(
  { caller, params }: Pick<Exchange<Caller>, 'caller' | 'params'>,
  { database }: Pick<InternParts, 'database'>,
): Promise<Intern> {
  const id = params['internId']!;
  const found = isUuid(id) ? await store.findIntern(database, caller.workspaceId, id) : undefined;
  if (found === undefined) throw internError('not_found', 'There is no intern with this id in the workspace.');
  return found;
}
