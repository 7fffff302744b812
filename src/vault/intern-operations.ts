/** `/vault/interns/{internId}`: the secrets of an intern. Its own key reaches them, too. */
import type { Caller } from '../access/index.ts';
import { authorOf } from '../audit/index.ts';
import { invalidField } from '../base/errors.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import * as schema from './schema.ts';
import {
  BODY_BYTES,
  checkWritable,
  INTERN_ACCESS,
  replyPage,
  type Scope,
  secretOperations,
  TAG,
  type VaultParts,
} from './secret-operations.ts';
import { copySecrets, secretReply } from './secrets.ts';
import * as store from './store.ts';

const PATH = '/vault/interns/{internId}';
const common = { tag: TAG, access: INTERN_ACCESS } as const;

export function internSecretOperations(parts: VaultParts): Operation<Caller>[] {
  const scope: Scope = {
    ids: { list: 'listInternVaultSecrets', store: 'storeInternVaultSecret', remove: 'deleteInternVaultSecret' },
    path: PATH,
    of: 'of an intern',
    access: INTERN_ACCESS,
    params: schema.InternParams,
    secretParams: schema.InternSecretParams,
    ownerOf: async (exchange) => (await vaultsOf(exchange, parts)).held,
  };
  return [...secretOperations(parts, scope), listEffective(parts), copy(parts)];
}

function listEffective(parts: VaultParts): Operation<Caller> {
  return {
    ...common,
    id: 'listEffectiveVaultSecrets',
    method: 'GET',
    path: `${PATH}/effective-secrets`,
    summary:
      'List the secrets that an intern may use: its own, and those of the vault that it borrows, without their values',
    params: schema.InternParams,
    query: schema.ListSecretsQuery,
    replies: ok(
      'One page of secrets; if both vaults have a secret of the same name, its own',
      schema.SecretListEnvelope,
    ),
    async handle(exchange) {
      const { ownVaultId: ownId, borrowedVaultId: borrowedId } = await vaultsOf(exchange, parts);
      await replyPage(exchange, (page) => store.listEffectiveSecrets(parts.database, { ownId, borrowedId }, page));
    },
  };
}

function copy(parts: VaultParts): Operation<Caller> {
  return {
    ...common,
    id: 'copyVaultSecretsToIntern',
    method: 'POST',
    path: `${PATH}/secrets/copy`,
    summary: 'Copy secrets of the workspace to an intern, all or none; they replace those with the same names',
    params: schema.InternParams,
    body: { schema: schema.CopySecretsBody, maxBytes: BODY_BYTES },
    errors: [409],
    replies: ok('The copies, in the order of the names', schema.CopiedSecrets),
    async handle(exchange) {
      const { held } = await vaultsOf(exchange, parts);
      checkWritable(parts);
      const { names } = exchange.body as schema.CopySecrets;
      const repeated = names.findIndex((name, index) => names.indexOf(name) !== index);
      if (repeated !== -1) throw invalidField(`names[${repeated}]`, 'occurs twice');
      const copies = await copySecrets(parts, authorOf(exchange), held, names);
      exchange.reply(200, { data: copies.map(secretReply) });
    },
  };
}

function vaultsOf({ caller, params }: Exchange<Caller>, { database, vaultsOfIntern }: VaultParts) {
  return vaultsOfIntern(database, caller.workspaceId, params['internId']!);
}
