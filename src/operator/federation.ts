/** `gatehouse federation`: the key that access tokens of workloads are signed with, and how it gives way to another. */
import { operatorAuthor } from '../audit/index.ts';
import { Sealing } from '../sealing/index.ts';
import { rotateSigningKey } from '../sign-in/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { withDatabase } from './installation.ts';

export const FEDERATION_HELP = `gatehouse federation rotate-key [--end-tokens]
    another key signs access tokens from now on, also while gateways run. Those that were issued before live on to their
    end, a quarter of an hour at most; with --end-tokens they end at once`;

export async function federationCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [action, ...rest] = args;
  if (action !== 'rotate-key') {
    throw new UsageError(action === undefined ? 'say what to do for federation' : `unknown: federation ${action}`);
  }
  const { values } = parseArguments(rest, { 'end-tokens': { type: 'boolean' } });
  const endsTokens = values['end-tokens'] === true;
  const { clock, config } = parts;
  const id = await withDatabase(parts, ({ database, changes }) => {
    const sealing = new Sealing({ database, clock, settings: config.sealing });
    return rotateSigningKey({ database, changes, clock, sealing }, { author: operatorAuthor, endsTokens });
  });
  parts.out.print(`access tokens are signed with the key ${id}${endsTokens ? '; those from before have ended' : ''}`);
  return 0;
}
