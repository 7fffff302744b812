/**
 * The account's balance: all that may ever be spent. What the command line has set goes before the configuration's, in
 * every process at once.
 */
import { operatorAuthor, recordChange } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { type Nano, usdFromNano } from '../../base/money.ts';
import { changeEverywhere } from '../../storage/change-everywhere.ts';
import type { Changes, Database } from '../../storage/database.ts';
import { Followed, type Refreshable } from '../../storage/followed.ts';
import { readBalance, type StoredBalance, writeBalance } from './store.ts';

const BALANCE_TOPIC = 'spend.balance';

/** To be refreshed before `current` is called. */
export interface AccountBalance extends Refreshable {
  /** null is unlimited. */
  current(): Nano | null;
}

export interface BalanceParts {
  database: Database;
  changes: Pick<Changes, 'subscribe' | 'freshness'>;
  clock: Clock;
  log: Log;
  /** `account.balance_usd`, as it is now. */
  configured(): Nano | null;
}

/** Reads what is set and follows every change of it. */
export async function followBalance({ database, configured, ...parts }: BalanceParts): Promise<AccountBalance> {
  const followed = new Followed({
    ...parts,
    topic: BALANCE_TOPIC,
    name: 'The balance of the account',
    read: async () => (await readBalance(database)) ?? null,
  });
  await followed.readNow();
  return {
    current: () => (followed.value?.isSet ? followed.value.balanceNano : configured()),
    refresh: () => followed.refresh(),
    get upToDate() {
      return followed.upToDate;
    },
  };
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
    await announce(BALANCE_TOPIC, organizationId);
  });
}

function shown(balance: StoredBalance | undefined): object {
  if (balance === undefined || !balance.isSet) return { balance_usd: 'as configured' };
  return { balance_usd: balance.balanceNano === null ? 'unlimited' : usdFromNano(balance.balanceNano) };
}
