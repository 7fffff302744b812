/**
 * The account balance: the total that may ever be spent. A balance set on the command line overrides the configuration,
 * in every process.
 */
import { changeAs, operatorAuthor } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { type Nano, usdFromNano } from '../../base/money.ts';
import type { Changes, Database } from '../../storage/database.ts';
import { Followed, type Refreshable } from '../../storage/followed.ts';
import { readBalance, type StoredBalance, writeBalance } from './store.ts';

const BALANCE_TOPIC = 'spend.balance';

/** Refresh it before calling `current`. */
interface AccountBalance extends Refreshable {
  /** null means unlimited. */
  current(): Nano | null;
}

interface BalanceParts {
  database: Database;
  changes: Pick<Changes, 'subscribe' | 'freshness'>;
  clock: Clock;
  log: Log;
  /** The current value of `account.balance_usd`. */
  configured(): Nano | null;
}

/** Reads the stored balance and follows its changes. */
export async function followBalance({ database, configured, ...parts }: BalanceParts): Promise<AccountBalance> {
  const followed = new Followed({
    ...parts,
    topic: BALANCE_TOPIC,
    name: 'The account balance',
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
 * Sets the balance in every process; `undefined` reverts to the configuration. Resolves when all processes apply it.
 */
export async function setBalance(
  parts: { database: Database; changes: Changes; clock: Clock },
  organizationId: string,
  balance: Nano | null | undefined,
): Promise<void> {
  const now = parts.clock.now();
  await changeAs(operatorAuthor(organizationId, now), parts, async (tx, changed) => {
    const before = await readBalance(tx);
    const after = await writeBalance(tx, organizationId, balance, new Date(now));
    await changed({
      action: 'credits.updated',
      resourceType: 'credits',
      resourceId: organizationId,
      workspaceId: null,
      before: auditView(before),
      after: auditView(after),
      announce: [BALANCE_TOPIC, organizationId],
    });
  });
}

function auditView(balance: StoredBalance | undefined): object {
  if (balance === undefined || !balance.isSet) return { balance_usd: 'as configured' };
  return { balance_usd: balance.balanceNano === null ? 'unlimited' : usdFromNano(balance.balanceNano) };
}
