/** `GET /audit`: reads the log. No operation changes it. */
import { invalidField } from '../base/errors.ts';
import { readTimestamp } from '../base/timestamp.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import type { Database } from '../storage/database.ts';
import { type AuditEntry, type AuditQuery, AuditQuerySchema, AuditReplySchema } from './schema.ts';
import { type EntryFilter, listEntries, type StoredEntry } from './store.ts';

export interface AuditParts {
  database: Database;
}

const DEFAULT_PAGE = 50;

/** Reads `parts` only while handling a request. */
export function auditOperations<C extends { organizationId: string }>(parts: AuditParts): Operation<C>[] {
  return [
    {
      id: 'listAuditEntries',
      method: 'GET',
      path: '/audit',
      summary: 'List changes of the control plane, newest first',
      tag: 'Audit',
      access: MANAGEMENT,
      query: AuditQuerySchema,
      replies: ok('One page', AuditReplySchema),
      async handle(exchange) {
        const query = exchange.query as AuditQuery;
        const limit = query.limit ?? DEFAULT_PAGE;
        const filter = filterOf(exchange.caller.organizationId, query);
        const entries = await listEntries(parts.database, { ...filter, limit: limit + 1 });
        const page = entries.slice(0, limit);
        const hasMore = entries.length > limit;
        exchange.reply(200, {
          data: page.map(entryReply),
          has_more: hasMore,
          next_cursor: hasMore ? String(page.at(-1)!.place) : null,
        });
      },
    },
  ];
}

function filterOf(organizationId: string, query: AuditQuery): Omit<EntryFilter, 'limit'> {
  const from = query.start === undefined ? undefined : readTimestamp('start', query.start);
  const until = query.end === undefined ? undefined : readTimestamp('end', query.end);
  if (from !== undefined && until !== undefined && from >= until) throw invalidField('end', 'must be later than start');
  return {
    organizationId,
    action: query.action,
    resourceType: query.resource_type,
    resourceId: query.resource_id,
    actor: query.actor,
    actorType: query.actor_type,
    workspaceId: query.workspace_id?.toLowerCase(),
    from,
    until,
    before: query.cursor,
  };
}

function entryReply(entry: StoredEntry): AuditEntry {
  return {
    id: entry.id,
    created_at: entry.createdAt.toISOString(),
    action: entry.action,
    resource_type: entry.resourceType,
    resource_id: entry.resourceId,
    workspace_id: entry.workspaceId,
    actor: {
      type: entry.actorType,
      key_hash: entry.actorKeyHash,
      key_label: entry.actorKeyLabel,
      user_id: entry.actorUserId,
    },
    request_id: entry.requestId,
    source_address: entry.sourceAddress,
    before: entry.before,
    after: entry.after,
  };
}
