/** `gatehouse federation`: the key that signs access tokens of workloads, and its rotation. */
import { operatorAuthor } from '../audit/index.ts';
import { Sealing } from '../sealing/index.ts';
import { rotateSigningKey } from '../sign-in/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { withDatabase } from './installation.ts';

export const FEDERATION_HELP = `gatehouse federation rotate-key [--end-tokens]
    rotates the key that signs access tokens, also while gateways run. Tokens issued before stay valid until they expire,
    at most 15 minutes; with --end-tokens they become invalid at once`;

export async function federationCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [action, ...rest] = args;
  if (action !== 'rotate-key') {
    throw new UsageError(action === undefined ? 'federation needs an action' : `unknown: federation ${action}`);
  }
  const { values } = parseArguments(rest, { 'end-tokens': { type: 'boolean' } });
  const endsTokens = values['end-tokens'] === true;
  const { clock, config } = parts;
  const id = await withDatabase(parts, ({ database, changes }) => {
    const sealing = new Sealing({ database, clock, settings: config.sealing });
    return rotateSigningKey({ database, changes, clock, sealing }, { author: operatorAuthor, endsTokens });
  });
  parts.out.print(`access tokens are signed with the key ${id}${endsTokens ? '; older tokens are invalid now' : ''}`);
  return 0;
}
