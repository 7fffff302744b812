/** `/scim/sync-jobs`. */
import type { Caller } from '../../access/index.ts';
import { authorOf, changeAs } from '../../audit/index.ts';
import { GatewayError, orNotFound } from '../../base/errors.ts';
import { isUuid, uuidv7 } from '../../base/ids.ts';
import { MANAGEMENT } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import type { ProvisioningParts } from '../provisioning.ts';
import * as schema from '../schema.ts';
import { lockOrganization } from '../store.ts';
import * as store from './store.ts';

/** Maximum unfinished jobs; more would only repeat the same work. */
const MAX_UNFINISHED = 100;
const MAX_KEPT = 1_000;

const common = { tag: 'SCIM groups', access: MANAGEMENT } as const;

export function syncJobOperations(parts: ProvisioningParts): Operation<Caller>[] {
  return [createSyncJob(parts), getSyncJob(parts)];
}

function createSyncJob(parts: ProvisioningParts): Operation<Caller> {
  return {
    ...common,
    id: 'createScimSyncJob',
    method: 'POST',
    path: '/scim/sync-jobs',
    summary: 'Sync users and groups from the identity provider; without one configured, recompute memberships',
    body: { schema: schema.NothingSchema, optional: true },
    errors: [404, 429],
    replies: { 202: { description: 'The job; `Location` is the URL of its status', schema: schema.SyncJobEnvelope } },
    async handle(exchange) {
      const { clock, runSyncJobs } = parts;
      const { organizationId } = exchange.caller;
      const job = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        await lockOrganization(tx, organizationId);
        if ((await store.countUnfinished(tx, organizationId)) >= MAX_UNFINISHED) {
          throw new GatewayError('rate_limit_exceeded', `${MAX_UNFINISHED} sync jobs are already waiting`, {
            retryAfterSeconds: 60,
          });
        }
        await store.deleteOld(tx, organizationId, MAX_KEPT);
        const id = uuidv7(clock.now());
        await store.insertJob(tx, id, organizationId, new Date(clock.now()));
        await changed({
          action: 'scim_sync_job.created',
          resourceType: 'scim_sync_job',
          resourceId: id,
          workspaceId: null,
        });
        await runSyncJobs(tx);
        return (await store.findJob(tx, organizationId, id))!;
      });
      exchange.reply(202, { data: jobReply(job) }, { Location: `/api/v1/scim/sync-jobs/${job.id}` });
    },
  };
}

function getSyncJob(parts: ProvisioningParts): Operation<Caller> {
  return {
    ...common,
    id: 'getScimSyncJob',
    method: 'GET',
    path: '/scim/sync-jobs/{id}',
    summary: 'Get the status of a sync job',
    params: schema.IdParams,
    replies: ok('The job', schema.SyncJobEnvelope),
    async handle(exchange) {
      const id = exchange.params['id']!;
      const job = isUuid(id) ? await store.findJob(parts.database, exchange.caller.organizationId, id) : undefined;
      exchange.reply(200, { data: jobReply(orNotFound(job, 'sync job with this id')) });
    },
  };
}

function jobReply(job: store.StoredJob): schema.SyncJobReply {
  return {
    id: job.id,
    status: job.status,
    synced_groups: job.syncedGroups,
    deleted_groups: job.deletedGroups,
    error_message: job.errorMessage,
    created_at: job.createdAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    finished_at: job.finishedAt?.toISOString() ?? null,
  };
}
