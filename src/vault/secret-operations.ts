/** The operations on the secrets of one vault: to list, to store and to delete. */
import type { Caller } from '../access/index.ts';
import { authorOf } from '../audit/index.ts';
import type { VaultSettings } from '../base/config.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { type AccessRule, INFERENCE } from '../http/access-rule.ts';
import { ok, type Page } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import { boundHosts } from './hosts.ts';
import * as schema from './schema.ts';
import { deleteSecret, type HeldOwner, type SecretParts, secretReply, storeSecret } from './secrets.ts';
import * as store from './store.ts';

export interface VaultParts extends SecretParts {
  /** Whether the caller takes part in the programme now; rejects with GatewayError 404 otherwise. */
  confirmProgramme(caller: Caller): Promise<void>;
  /** The current configuration. */
  settings(): VaultSettings;
  /** Rejects with GatewayError 404 if the workspace has no intern with this id. */
  vaultsOfIntern(
    db: Queryable,
    workspaceId: string,
    internId: string,
  ): Promise<{ held: HeldOwner; ownVaultId: string | null; borrowedVaultId: string | null }>;
}

/** Whose secrets the operations are about. */
export interface Scope {
  ids: { list: string; store: string; remove: string };
  /** Before `/secrets`. */
  path: `/${string}`;
  /** For the descriptions. */
  of: string;
  access: AccessRule;
  /** Of `path`, absent if there are none. */
  params?: Operation['params'];
  /** Those, and the name of a secret. */
  secretParams: NonNullable<Operation['params']>;
  /** @throws GatewayError 404 */
  ownerOf(exchange: Exchange<Caller>): Promise<HeldOwner>;
}

export const BODY_BYTES = 425_000;
export const TAG = 'Vault';

/** A management key has no workspace of its own, and there is no default one here. */
const ACCESS = { ...INFERENCE, programme: 'interns', regions: ['global'] } as const;
/** The key of an intern is confined to that intern. */
export const WORKSPACE_ACCESS: AccessRule = { ...ACCESS, scope: 'interns' };
export const INTERN_ACCESS: AccessRule = { ...ACCESS, scope: 'intern' };

/** Reads `parts` only while handling a request. */
export function secretOperations(parts: VaultParts, scope: Scope): Operation<Caller>[] {
  return [list(parts, scope), put(parts, scope), remove(parts, scope)];
}

function list(parts: VaultParts, { ids, path, of, access, params, ownerOf }: Scope): Operation<Caller> {
  return {
    ...{ tag: TAG, access },
    ...(params !== undefined && { params }),
    id: ids.list,
    method: 'GET',
    path: `${path}/secrets`,
    summary: `List the secrets ${of} by name, without their values`,
    query: schema.ListSecretsQuery,
    replies: ok('One page of secrets', schema.SecretListEnvelope),
    async handle(exchange) {
      const { owner } = await ownerOf(exchange);
      await replyPage(exchange, (page) => store.listSecrets(parts.database, owner, page));
    },
  };
}

function put(parts: VaultParts, { ids, path, of, access, secretParams, ownerOf }: Scope): Operation<Caller> {
  return {
    ...{ tag: TAG, access },
    id: ids.store,
    method: 'PUT',
    path: `${path}/secrets/{name}`,
    summary: `Store a secret ${of}, or replace its value and hosts`,
    params: secretParams,
    body: { schema: schema.StoreSecretBody, maxBytes: BODY_BYTES },
    replies: ok('The secret without its value', schema.SecretEnvelope),
    async handle(exchange) {
      const held = await ownerOf(exchange);
      checkWritable(parts);
      const { value, hosts } = exchange.body as schema.StoreSecret;
      if (!value.isWellFormed()) throw invalidField('value', 'must not contain half of a surrogate pair');
      const written = { name: exchange.params['name']!, hosts: boundHosts(hosts), value };
      const secret = await storeSecret(parts, authorOf(exchange), held, written);
      exchange.reply(200, { data: secretReply(secret) });
    },
  };
}

function remove(parts: VaultParts, { ids, path, of, access, secretParams, ownerOf }: Scope): Operation<Caller> {
  return {
    ...{ tag: TAG, access },
    id: ids.remove,
    method: 'DELETE',
    path: `${path}/secrets/{name}`,
    summary: `Delete a secret ${of}`,
    params: secretParams,
    replies: { 204: { description: 'The secret is deleted' } },
    async handle(exchange) {
      const { owner } = await ownerOf(exchange);
      checkWritable(parts);
      await deleteSecret(parts, authorOf(exchange), owner, exchange.params['name']!);
      exchange.reply(204, undefined);
    },
  };
}

/** Answers with the page that the query asks for. */
export async function replyPage(
  exchange: Exchange<Caller>,
  read: (page: Page) => Promise<store.ShownSecret[]>,
): Promise<void> {
  const { limit = schema.DEFAULT_PAGE, offset = 0 } = exchange.query as schema.ListSecrets;
  const found = await read({ limit: limit + 1, offset });
  exchange.reply(200, { data: found.slice(0, limit).map(secretReply), has_more: found.length > limit });
}

/** @throws GatewayError 503 */
export function checkWritable({ settings }: Pick<VaultParts, 'settings'>): void {
  if (settings().writes) return;
  throw new GatewayError('server', 'Vault writes are not enabled on this gateway.', { status: 503 });
}
