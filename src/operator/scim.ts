/** `gatehouse scim`: tokens that let an identity provider say who belongs to the organization. */
import { createOperatorKey } from '../access/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { withDatabase } from './installation.ts';
import { listKeys, revokeKey, showToken } from './keys.ts';

export const SCIM_HELP = `gatehouse scim token create [--name NAME] [--expires-at TIME] [--print]
    makes a token for /scim/v2, which it serves alone, and shows it once, as \`keys create\` does
gatehouse scim token list
    every token of this kind
gatehouse scim token revoke HASH
    ends a token, named by its hash or the first 8 characters or more of it`;

export async function scimCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [noun, action, ...rest] = args;
  if (noun !== 'token') throw new UsageError(noun === undefined ? 'say what of SCIM' : `unknown: scim ${noun}`);
  switch (action) {
    case 'create':
      return create(rest, parts);
    case 'list':
      parseArguments(rest, {});
      return listKeys(parts, ['scim']);
    case 'revoke':
      return revokeKey(rest, parts);
    default:
      throw new UsageError(action === undefined ? 'say what to do with tokens' : `unknown: scim token ${action}`);
  }
}

async function create(args: readonly string[], parts: CommandParts): Promise<number> {
  const { values } = parseArguments(args, {
    name: { type: 'string' },
    'expires-at': { type: 'string' },
    print: { type: 'boolean' },
  });
  const expiresAt = values['expires-at'] as string | undefined;
  const body = {
    name: (values['name'] as string | undefined) ?? 'SCIM token of the command line',
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
  };
  const token = await withDatabase(parts, (opened) =>
    createOperatorKey({ ...opened, clock: parts.clock }, 'scim', body),
  );
  showToken(parts, 'scim', token, values['print'] === true);
  return 0;
}
