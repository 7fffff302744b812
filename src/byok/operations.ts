/** The operations on BYOK credentials, `/byok`. */
import { isDeepStrictEqual } from 'node:util';
import { type Caller, chosenWorkspace, namedKeys } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import type { ProviderSettings } from '../base/config.ts';
import { GatewayError, invalidField, orNotFound } from '../base/errors.ts';
import { isUuid, uuidv7 } from '../base/ids.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { idOf, listReply, ok, pageOf } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import type { ProviderKind } from '../providers/index.ts';
import { type Sealing, SealingError } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { type Credential, readCredential } from './credential.ts';
import {
  byokCredentialReply,
  byokCredentialResource,
  byokCredentialState,
  changedSettings,
  USUAL_SETTINGS,
} from './key.ts';
import * as schema from './schema.ts';
import { PURPOSE, SEALED_COLUMN, TOPIC } from './sealed.ts';
import { kindOf, knownSlugs } from './slugs.ts';
import * as store from './store.ts';

export interface ByokParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  sealing: Sealing;
  /** The current configuration. */
  providers(): readonly ProviderSettings[];
}

/** Per organization; every process keeps all of them in memory. */
const MAX_CREDENTIALS = 1_000;
const TAG = 'BYOK credentials';

/** Reads `parts` only while handling a request. */
export function byokOperations(parts: ByokParts): Operation<Caller>[] {
  return [
    listByokCredentials(parts),
    createByokCredential(parts),
    getByokCredential(parts),
    updateByokCredential(parts),
    deleteByokCredential(parts),
  ];
}

function listByokCredentials(parts: ByokParts): Operation<Caller> {
  return {
    id: 'listBYOKKeys',
    method: 'GET',
    path: '/byok',
    summary: 'List the provider credentials (BYOK) of a workspace, by provider, in the order of use',
    tag: TAG,
    access: MANAGEMENT,
    query: schema.ListByokCredentialsQuerySchema,
    replies: ok(
      'One page of credentials, of the default workspace unless `workspace_id` is given',
      schema.ByokCredentialListEnvelope,
    ),
    async handle(exchange) {
      const { database } = parts;
      const { organizationId } = exchange.caller;
      const query = exchange.query as schema.ListByokCredentialsQuery;
      const workspaceId = await chosenWorkspace(database, organizationId, query.workspace_id?.toLowerCase());
      const listQuery = { organizationId, workspaceId, provider: query.provider, ...pageOf(query) };
      const { keys, total } = await store.listByokCredentials(database, listQuery);
      exchange.reply(200, listReply(keys.map(byokCredentialReply), total));
    },
  };
}

function createByokCredential(parts: ByokParts): Operation<Caller> {
  return {
    id: 'createBYOKKey',
    method: 'POST',
    path: '/byok',
    summary: 'Add a provider credential (BYOK); it is used after the existing ones',
    tag: TAG,
    access: MANAGEMENT,
    body: { schema: schema.CreateByokCredentialSchema },
    replies: {
      201: { description: 'The credential, masked. Its secret is never shown', schema: schema.ByokCredentialEnvelope },
    },
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const body = exchange.body as schema.CreateByokCredentialBody;
      const credential = readCredential(kindNamed(body.provider, parts), body.key);
      const createdAt = new Date(parts.clock.now());
      const id = uuidv7(createdAt.getTime());
      const sealed = await sealedValue(parts, id, credential);
      const key = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        if ((await store.countByokCredentials(tx, organizationId)) >= MAX_CREDENTIALS) {
          const message = `an organization has at most ${MAX_CREDENTIALS} provider credentials`;
          throw new GatewayError('invalid_request', message);
        }
        const given = body.workspace_id;
        const workspaceId =
          given === null ? null : await chosenWorkspace(tx, organizationId, given?.toLowerCase(), true);
        await store.insertByokCredential(tx, {
          ...changedSettings(USUAL_SETTINGS, body, await keyIdsOf(tx, organizationId, body)),
          ...{ id, organizationId, workspaceId, provider: body.provider, sealed, createdAt },
          label: credential.label,
          sealedAt: createdAt,
          sortOrder: await store.nextSortOrder(tx, organizationId, body.provider),
        });
        const key = await existing(tx, organizationId, id);
        await changed({
          action: 'byok_key.created',
          ...byokCredentialResource(key),
          after: byokCredentialState(key),
          announce: [TOPIC, id],
        });
        return key;
      });
      exchange.reply(201, { data: byokCredentialReply(key) });
    },
  };
}

function getByokCredential(parts: ByokParts): Operation<Caller> {
  return {
    id: 'getBYOKKey',
    method: 'GET',
    path: '/byok/{id}',
    summary: 'Get a provider credential (BYOK)',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.ByokCredentialParamsSchema,
    replies: ok('The credential', schema.ByokCredentialEnvelope),
    async handle(exchange) {
      const key = await existing(parts.database, exchange.caller.organizationId, idOf(exchange));
      exchange.reply(200, { data: byokCredentialReply(key) });
    },
  };
}

function updateByokCredential(parts: ByokParts): Operation<Caller> {
  return {
    id: 'updateBYOKKey',
    method: 'PATCH',
    path: '/byok/{id}',
    summary: 'Update a provider credential (BYOK); a new `key` replaces the current one',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.ByokCredentialParamsSchema,
    body: { schema: schema.UpdateByokCredentialSchema },
    replies: ok('The updated credential. The change is in effect in every process', schema.ByokCredentialEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const id = idOf(exchange);
      const body = exchange.body as schema.UpdateByokCredentialBody;
      const replaced = await replacement(parts, await existing(parts.database, organizationId, id), body);
      const key = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const before = await existing(tx, organizationId, id, true);
        const settings = changedSettings(before, body, await keyIdsOf(tx, organizationId, body));
        const same = isDeepStrictEqual({ ...before, ...settings }, { ...before });
        if (same && replaced === undefined) return before;
        await store.updateByokCredential(tx, id, settings, new Date(parts.clock.now()));
        if (replaced !== undefined) await store.replaceCredential(tx, id, replaced);
        const key = await existing(tx, organizationId, id);
        await changed({
          action: 'byok_key.updated',
          ...byokCredentialResource(key),
          before: byokCredentialState(before),
          after: byokCredentialState(key),
          announce: [TOPIC, id],
        });
        return key;
      });
      exchange.reply(200, { data: byokCredentialReply(key) });
    },
  };
}

function deleteByokCredential(parts: ByokParts): Operation<Caller> {
  return {
    id: 'deleteBYOKKey',
    method: 'DELETE',
    path: '/byok/{id}',
    summary: 'Delete a provider credential (BYOK)',
    tag: TAG,
    access: MANAGEMENT,
    params: schema.ByokCredentialParamsSchema,
    replies: ok('The credential is deleted and used by no process', schema.DeletedEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const key = await existing(tx, organizationId, idOf(exchange), true);
        await store.deleteByokCredential(tx, key.id);
        await changed({
          action: 'byok_key.deleted',
          ...byokCredentialResource(key),
          before: byokCredentialState(key),
          announce: [TOPIC, key.id],
        });
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

async function existing(
  db: Queryable,
  organizationId: string,
  id: string,
  hold = false,
): Promise<store.ShownByokCredential> {
  const found = isUuid(id) ? await store.findByokCredential(db, organizationId, id, hold) : undefined;
  return orNotFound(found, 'provider credential with this id');
}

function kindNamed(slug: string, parts: ByokParts): ProviderKind {
  const kind = kindOf(slug, parts.providers());
  if (kind !== undefined) return kind;
  throw invalidField('provider', `must be a known provider, one of ${knownSlugs(parts.providers()).join(', ')}`);
}

/** Ids of the keys that the body's hashes name; undefined if it has no such list. */
async function keyIdsOf(
  tx: Queryable,
  organizationId: string,
  { allowed_api_key_hashes: hashes }: schema.UpdateByokCredentialBody,
): Promise<readonly string[] | null | undefined> {
  if (hashes == null) return hashes;
  const known = await namedKeys(tx, organizationId, hashes);
  return hashes.map((hash, index) => {
    const [id] = known.get(hash) ?? [];
    if (id === undefined) throw invalidField(`allowed_api_key_hashes[${index}]`, 'is not a key of the organization');
    return id;
  });
}

async function replacement(
  parts: ByokParts,
  before: store.ShownByokCredential,
  { key: text }: schema.UpdateByokCredentialBody,
) {
  if (text === undefined) return undefined;
  const credential = readCredential(kindNamed(before.provider, parts), text);
  const sealed = await sealedValue(parts, before.id, credential);
  return { label: credential.label, sealed, sealedAt: new Date(parts.clock.now()) };
}

async function sealedValue({ sealing }: ByokParts, id: string, { value }: Credential): Promise<Buffer> {
  try {
    return (await sealing.sealer(PURPOSE)).seal(id, SEALED_COLUMN, value);
  } catch (cause) {
    if (!(cause instanceof SealingError)) throw cause;
    const message = 'Credentials cannot be encrypted on this machine at the moment; see its log.';
    throw new GatewayError('server', message, { status: 503, cause });
  }
}
