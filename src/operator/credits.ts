/** `gatehouse credits`: the account's balance, a hard limit for all requests. */
import { organizationId } from '../access/index.ts';
import { sleep } from '../base/clock.ts';
import { type Nano, nanoFromUsd, usdFromNano } from '../base/money.ts';
import { ENTERED_WITHIN_MS, readBalance, setBalance, spentOfAccount } from '../spend/index.ts';
import type { Queryable } from '../storage/database.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { withDatabase } from './installation.ts';

export const CREDITS_HELP = `gatehouse credits show
    shows the account's balance, its source, and what was spent
gatehouse credits set USD|unlimited
    sets the balance, at once in every running process; overrides account.balance_usd of the yaml
gatehouse credits unset
    removes the override: the balance of the yaml applies again`;

export async function creditsCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [action, ...rest] = args;
  const { positionals } = parseArguments(rest, {}, true);
  if (positionals.length !== (action === 'set' ? 1 : 0)) throw new UsageError('unexpected number of arguments');
  switch (action) {
    case 'set':
      return changeAndShow(parts, amount(positionals[0]!));
    case 'unset':
      return changeAndShow(parts, undefined);
    case 'show':
      return withDatabase(parts, ({ database }) => show(parts, database));
    default:
      throw new UsageError(action === undefined ? 'credits needs an action' : `unknown: credits ${action}`);
  }
}

function amount(text: string): Nano | null {
  if (text === 'unlimited') return null;
  try {
    return nanoFromUsd(text);
  } catch {
    throw new UsageError('the balance must be USD with at most 9 decimals, or unlimited');
  }
}

function changeAndShow(parts: CommandParts, balance: Nano | null | undefined): Promise<number> {
  return withDatabase(parts, async (opened) => {
    await setBalance({ ...opened, clock: parts.clock }, await account(opened.database), balance);
    // Spend from before the balance was set is in no lease: it counts once its rows are entered.
    await sleep(parts.clock, ENTERED_WITHIN_MS);
    return show(parts, opened.database);
  });
}

async function show(parts: CommandParts, db: Queryable): Promise<number> {
  const stored = await readBalance(db);
  const spentNano = await spentOfAccount(db, await account(db));
  const configured = parts.config.account.balanceNano;
  const balance = stored?.isSet ? stored.balanceNano : configured;
  const source = stored?.isSet ? 'set by the command line' : configured === null ? 'the default' : 'from the yaml';
  parts.out.print(`balance    ${balance === null ? 'unlimited' : `${usdFromNano(balance)} USD`} (${source})`);
  parts.out.print(`spent      ${usdFromNano(spentNano)} USD`);
  if (balance !== null)
    parts.out.print(`remaining  ${usdFromNano(balance > spentNano ? balance - spentNano : 0n)} USD`);
  return 0;
}

async function account(db: Queryable): Promise<string> {
  const id = await organizationId(db);
  if (id === undefined) throw new Error('no organization exists yet; start the gateway once');
  return id;
}
