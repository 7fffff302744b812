/** `gatehouse scim`: tokens for identity providers that manage the members. */
import { createOperatorKey } from '../access/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { withDatabase } from './installation.ts';
import { listKeys, revokeKey, showToken } from './keys.ts';

export const SCIM_HELP = `gatehouse scim token create [--name NAME] [--expires-at TIME] [--print]
    creates a token that is valid for /scim/v2 only, and shows it once, like keys create
gatehouse scim token list
    lists the tokens
gatehouse scim token revoke HASH
    revokes the token with this hash, or with a hash that starts with these 8 or more characters`;

export async function scimCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [noun, action, ...rest] = args;
  if (noun !== 'token')
    throw new UsageError(noun === undefined ? 'scim needs the noun token' : `unknown: scim ${noun}`);
  switch (action) {
    case 'create':
      return create(rest, parts);
    case 'list':
      parseArguments(rest, {});
      return listKeys(parts, ['scim']);
    case 'revoke':
      return revokeKey(rest, parts);
    default:
      throw new UsageError(action === undefined ? 'scim token needs an action' : `unknown: scim token ${action}`);
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
