/** `/vault`: the secrets of a workspace, and of its interns. */
import { type Caller, hasWorkspace } from '../access/index.ts';
import { GatewayError } from '../base/errors.ts';
import type { Operation } from '../http/operation.ts';
import { internSecretOperations } from './intern-operations.ts';
import * as schema from './schema.ts';
import { type Scope, secretOperations, type VaultParts, WORKSPACE_ACCESS } from './secret-operations.ts';
import type { HeldOwner } from './secrets.ts';

/** Reads `parts` only while handling a request. */
export function vaultOperations(parts: VaultParts): Operation<Caller>[] {
  return [...secretOperations(parts, WORKSPACE), ...internSecretOperations(parts)].map((operation) => ({
    ...operation,
    async handle(exchange) {
      await parts.confirmProgramme(exchange.caller);
      await operation.handle(exchange);
    },
  }));
}

const WORKSPACE: Scope = {
  ids: { list: 'listVaultSecrets', store: 'storeVaultSecret', remove: 'deleteVaultSecret' },
  path: '/vault',
  of: 'of the workspace',
  access: WORKSPACE_ACCESS,
  secretParams: schema.SecretParams,
  ownerOf: async ({ caller }) => workspaceOwner(caller),
};

function workspaceOwner({ organizationId, workspaceId }: Caller): HeldOwner {
  return {
    owner: { type: 'workspace', id: workspaceId, organizationId, workspaceId },
    async hold(tx) {
      if (await hasWorkspace(tx, organizationId, workspaceId, true)) return;
      throw new GatewayError('permission_denied', 'The workspace of this key was deleted.');
    },
  };
}
