/**
 * The account's balance: all that may ever be spent. What the command line has set goes before the configuration's, in
 * every process at once: the announcement carries the balance itself, so that nobody has to ask for it.
 */
import { operatorAuthor, recordChange } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { type Nano, usdFromNano } from '../../base/money.ts';
import { changeEverywhere } from '../../storage/change-everywhere.ts';
import type { Changes, Database } from '../../storage/database.ts';
import { readBalance, type StoredBalance, writeBalance } from './store.ts';

const BALANCE_TOPIC = 'spend.balance';

export interface AccountBalance {
  /** null is unlimited. */
  current(): Nano | null;
}

export interface BalanceParts {
  database: Database;
  changes: Changes;
  log: Log;
  /** `account.balance_usd`, as it is now. */
  configured(): Nano | null;
}

/** Reads what is set and follows every change of it. */
export async function followBalance({ database, changes, log, configured }: BalanceParts): Promise<AccountBalance> {
  let known: StoredBalance = { balanceNano: null, version: 0n, isSet: false };
  const adopt = (next: StoredBalance | undefined) => {
    if (next !== undefined && next.version > known.version) known = next;
  };
  const read = async () => adopt(await readBalance(database));
  changes.subscribe(BALANCE_TOPIC, (id) => {
    if (id !== null) adopt(decode(id));
    // Something may have been missed. Until it is read, what was known holds.
    else read().catch((error) => log.warn('the balance cannot be read', { error }));
  });
  await read();
  return { current: () => (known.isSet ? known.balanceNano : configured()) };
}

/**
 * Sets the balance in every process; `undefined` gives it back to the configuration. Resolves when all of them keep to it.
 */
export async function setBalance(
  parts: { database: Database; changes: Changes; clock: Clock },
  organizationId: string,
  balance: Nano | null | undefined,
): Promise<void> {
  await changeEverywhere(parts, async (tx, announce) => {
    const now = parts.clock.now();
    const before = await readBalance(tx);
    const after = await writeBalance(tx, organizationId, balance, new Date(now));
    const resource = { resourceType: 'credits', resourceId: organizationId, workspaceId: null };
    const states = { before: shown(before), after: shown(after) };
    await recordChange(tx, operatorAuthor(organizationId, now), {
      action: 'credits.updated',
      ...resource,
      ...states,
    });
    await announce(BALANCE_TOPIC, encode(after));
  });
}

function shown(balance: StoredBalance | undefined): object {
  if (balance === undefined || !balance.isSet) return { balance_usd: 'as configured' };
  return { balance_usd: balance.balanceNano === null ? 'unlimited' : usdFromNano(balance.balanceNano) };
}

function encode({ version, isSet, balanceNano }: StoredBalance): string {
  return `${version} ${isSet ? (balanceNano ?? 'unlimited') : 'configured'}`;
}

function decode(id: string): StoredBalance {
  const [version = '', balance = ''] = id.split(' ');
  const known = /^\d+$/.test(balance);
  return { version: BigInt(version), isSet: balance !== 'configured', balanceNano: known ? BigInt(balance) : null };
}
