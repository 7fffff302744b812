/** The SQL of the account balance. */
import type { Nano } from '../../base/money.ts';
import type { Queryable } from '../../storage/database.ts';

export interface StoredBalance {
  /** null means unlimited. */
  balanceNano: Nano | null;
  version: bigint;
  /** False if the configuration's balance applies. */
  isSet: boolean;
}

const COLUMNS = 'balance_nano as "balanceNano", version, is_set as "isSet"';

/** The balance of the installation's account; undefined if none was ever set. */
export async function readBalance(db: Queryable): Promise<StoredBalance | undefined> {
  const [row] = await db.query<StoredBalance>(
    `select ${COLUMNS} from account_balances order by updated_at desc limit 1`,
  );
  return row;
}

/** @param balance undefined reverts to the configuration */
export async function writeBalance(
  tx: Queryable,
  organizationId: string,
  balance: Nano | null | undefined,
  updatedAt: Date,
): Promise<StoredBalance> {
  const [row] = await tx.query<StoredBalance>(
    `insert into account_balances as own (organization_id, balance_nano, version, is_set, updated_at)
     values ($1, $2, 1, $3, $4)
     on conflict (organization_id) do update set balance_nano = excluded.balance_nano, version = own.version + 1,
       is_set = excluded.is_set, updated_at = excluded.updated_at
     returning ${COLUMNS}`,
    [organizationId, balance ?? null, balance !== undefined, updatedAt],
  );
  return row!;
}
