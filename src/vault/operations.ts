/** `/vault`: the secrets of a workspace. */
import { type Caller, hasWorkspace } from '../access/index.ts';
import { type AnnouncedChange, authorOf, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import type { VaultSettings } from '../base/config.ts';
import { GatewayError, invalidField, orNotFound } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { INFERENCE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { boundHosts } from './hosts.ts';
import * as schema from './schema.ts';
import * as store from './store.ts';
import { newDataKey, openVaultKey, presented } from './vault-key.ts';

export interface VaultParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  sealing: Sealing;
  /** Whether the caller takes part in the programme now; rejects with GatewayError 404 otherwise. */
  confirmProgramme(caller: Caller): Promise<void>;
  /** The current configuration. */
  settings(): VaultSettings;
}

/** Of one vault. A sandbox gets all of them. */
const MOST_SECRETS = 1_000;
const BODY_BYTES = 425_000;
const SECRET = 'secret with this name in the workspace';

/** A management key has no workspace of its own, and there is no default one here. */
const common = {
  tag: 'Vault',
  access: { ...INFERENCE, programme: 'interns', regions: ['global'] },
} as const;

/** Reads `parts` only while handling a request. */
export function vaultOperations(parts: VaultParts): Operation<Caller>[] {
  return [listSecrets(parts), storeSecret(parts), deleteSecret(parts)].map((operation) => ({
    ...operation,
    async handle(exchange) {
      await parts.confirmProgramme(exchange.caller);
      await operation.handle(exchange);
    },
  }));
}

function listSecrets(parts: VaultParts): Operation<Caller> {
  return {
    ...common,
    id: 'listVaultSecrets',
    method: 'GET',
    path: '/vault/secrets',
    summary: 'List the secrets of the workspace by name, without their values',
    query: schema.ListSecretsQuery,
    replies: ok('One page of secrets', schema.SecretListEnvelope),
    async handle(exchange) {
      const { limit = schema.DEFAULT_PAGE, offset = 0 } = exchange.query as schema.ListSecrets;
      const found = await store.listSecrets(parts.database, ownerOf(exchange.caller), { limit: limit + 1, offset });
      exchange.reply(200, { data: found.slice(0, limit).map(secretReply), has_more: found.length > limit });
    },
  };
}

function storeSecret(parts: VaultParts): Operation<Caller> {
  return {
    ...common,
    id: 'storeVaultSecret',
    method: 'PUT',
    path: '/vault/secrets/{name}',
    summary: 'Store a secret of the workspace, or replace its value and hosts',
    params: schema.SecretParams,
    body: { schema: schema.StoreSecretBody, maxBytes: BODY_BYTES },
    replies: ok('The secret without its value', schema.SecretEnvelope),
    async handle(exchange) {
      checkWritable(parts);
      const { value, hosts: entries } = exchange.body as schema.StoreSecret;
      if (!value.isWellFormed()) throw invalidField('value', 'must not contain half of a surrogate pair');
      const written = { name: nameOf(exchange), hosts: boundHosts(entries), value };
      const secret = await presented(() => stored(exchange, parts, written));
      exchange.reply(200, { data: secretReply(secret) });
    },
  };
}

function deleteSecret(parts: VaultParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteVaultSecret',
    method: 'DELETE',
    path: '/vault/secrets/{name}',
    summary: 'Delete a secret of the workspace',
    params: schema.SecretParams,
    replies: { 204: { description: 'The secret is deleted' } },
    async handle(exchange) {
      checkWritable(parts);
      const owner = ownerOf(exchange.caller);
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const vault = orNotFound(await store.lockVault(tx, owner), SECRET);
        const secret = orNotFound(await store.findSecret(tx, vault.id, nameOf(exchange)), SECRET);
        await store.deleteSecret(tx, vault.id, secret.name);
        await changed(changeOf('deleted', owner, secret, undefined));
      });
      exchange.reply(204, undefined);
    },
  };
}

interface WrittenSecret {
  name: string;
  hosts: readonly string[];
  value: string;
}

/** @throws SealingError */
async function stored(
  exchange: Exchange<Caller>,
  parts: VaultParts,
  { name, hosts, value }: WrittenSecret,
): Promise<store.ShownSecret> {
  const { database, clock, sealing } = parts;
  const owner = ownerOf(exchange.caller);
  const now = new Date(clock.now());
  const vault = (await store.hasVault(database, owner)) ? undefined : await newVault(sealing, owner, now);
  return changeAs(authorOf(exchange), parts, async (tx, changed) => {
    const locked = await lockedVault(tx, owner, vault);
    const before = await store.findSecret(tx, locked.id, name);
    if (before === undefined && (await store.countSecrets(tx, locked.id)) >= MOST_SECRETS) {
      throw new GatewayError('invalid_request', `a vault has at most ${MOST_SECRETS} secrets`);
    }
    const key = await openVaultKey(sealing, tx, locked);
    const secret = {
      ...{ vaultId: locked.id, name, hosts, createdAt: before?.createdAt ?? now, updatedAt: now },
      fingerprint: key.fingerprint(value),
      sealed: key.seal({ name, hosts }, value),
    };
    await store.putSecret(tx, secret);
    await changed(changeOf(before ? 'updated' : 'created', owner, before, secret));
    return secret;
  });
}

async function newVault(sealing: Sealing, owner: store.VaultOwner, createdAt: Date): Promise<store.Vault> {
  const { type: ownerType, id: ownerId, organizationId, workspaceId } = owner;
  const id = uuidv7(createdAt.getTime());
  const dataKey = await newDataKey(sealing, id);
  return { id, organizationId, workspaceId, ownerType, ownerId, dataKey, keyVersion: 1, createdAt };
}

/** @param made a vault for an owner without one; another request may have been faster */
async function lockedVault(
  tx: Queryable,
  owner: store.VaultOwner,
  made: store.Vault | undefined,
): Promise<store.Vault> {
  const exists = await hasWorkspace(tx, owner.organizationId, owner.workspaceId, true);
  if (exists && made !== undefined) await store.insertVault(tx, made);
  const vault = exists ? await store.lockVault(tx, owner) : undefined;
  if (vault === undefined) throw new GatewayError('permission_denied', 'The workspace of this key was deleted.');
  return vault;
}

function ownerOf({ organizationId, workspaceId }: Caller): store.VaultOwner {
  return { type: 'workspace', id: workspaceId, organizationId, workspaceId };
}

function checkWritable({ settings }: VaultParts): void {
  if (settings().writes) return;
  throw new GatewayError('server', 'Vault writes are not enabled on this gateway.', { status: 503 });
}

function nameOf({ params }: Pick<Exchange, 'params'>): string {
  return params['name']!;
}

/** `VaultSecret` in `openapi.json`. */
function secretReply({ name, hosts, fingerprint, createdAt }: store.ShownSecret): schema.SecretReply {
  return { name, hosts: [...hosts], fingerprint, created_at: createdAt.toISOString() };
}

function changeOf(
  verb: 'created' | 'updated' | 'deleted',
  { workspaceId }: store.VaultOwner,
  before: store.ShownSecret | undefined,
  after: store.ShownSecret | undefined,
): AnnouncedChange {
  return {
    action: `vault_secret.${verb}`,
    resourceType: 'vault_secret',
    resourceId: (after ?? before)!.name,
    workspaceId,
    before: before && secretReply(before),
    after: after && secretReply(after),
  };
}
