/** `gatehouse vault`: checks stored secrets, and rotates the keys and certificate authorities of vaults. */
import { operatorAuthor } from '../audit/index.ts';
import { isUuid } from '../base/ids.ts';
import { Sealing } from '../sealing/index.ts';
import { checkVaults, rotateAuthorities, rotateVaultKeys } from '../vault/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { withDatabase } from './installation.ts';

export const VAULT_HELP = `gatehouse vault check
    checks that every secret can be decrypted on this machine and was not altered
gatehouse vault rotate-keys [--workspace ID]
    gives every vault, or that of a workspace, a new key and re-encrypts its secrets, also while gateways run. The
    fingerprints of the secrets change
gatehouse vault rotate-ca [--workspace ID]
    gives every vault, or those of a workspace, a new certificate authority for sandboxes, also while gateways run. A
    sandbox that runs keeps the old one until it starts again`;

export async function vaultCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [action, ...rest] = args;
  if (action === 'check') return check(rest, parts);
  if (action === 'rotate-keys') return rotateKeys(rest, parts);
  if (action === 'rotate-ca') return rotateCa(rest, parts);
  throw new UsageError(action === undefined ? 'vault needs an action' : `unknown: vault ${action}`);
}

async function check(args: readonly string[], parts: CommandParts): Promise<number> {
  parseArguments(args, {});
  const { clock, config, out } = parts;
  const { checked, unreadable } = await withDatabase(parts, ({ database }) =>
    checkVaults({ database, sealing: new Sealing({ database, clock, settings: config.sealing }) }),
  );
  out.print(`${checked} secrets checked`);
  for (const { workspaceId, name, problem } of unreadable) {
    out.print(`workspace ${workspaceId}, ${name === null ? 'its whole vault' : `secret ${name}`}: ${problem}`);
  }
  return unreadable.length === 0 ? 0 : 1;
}

async function rotateKeys(args: readonly string[], parts: CommandParts): Promise<number> {
  const { vaults, secrets } = await rotating(args, parts, (rotation, workspaceId) =>
    rotateVaultKeys(rotation, workspaceId, operatorAuthor),
  );
  parts.out.print(`${vaults} vaults have a new key; ${secrets} secrets re-encrypted`);
  return 0;
}

async function rotateCa(args: readonly string[], parts: CommandParts): Promise<number> {
  const count = await rotating(args, parts, (rotation, workspaceId) =>
    rotateAuthorities(rotation, workspaceId, operatorAuthor),
  );
  parts.out.print(`${count} vaults have a new certificate authority; sandboxes that run get it when they start again`);
  return 0;
}

/** Runs a rotation for the workspace that the arguments name; null: for all. */
function rotating<T>(
  args: readonly string[],
  parts: CommandParts,
  rotate: (parts: Parameters<typeof rotateVaultKeys>[0], workspaceId: string | null) => Promise<T>,
): Promise<T> {
  const { values } = parseArguments(args, { workspace: { type: 'string' } });
  const workspaceId = (values['workspace'] as string | undefined)?.toLowerCase() ?? null;
  if (workspaceId !== null && !isUuid(workspaceId)) throw new UsageError('--workspace must be the id of a workspace');
  const { clock, config } = parts;
  return withDatabase(parts, ({ database, changes }) => {
    const sealing = new Sealing({ database, clock, settings: config.sealing });
    return rotate({ database, changes, clock, sealing }, workspaceId);
  });
}
