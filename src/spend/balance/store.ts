/** The SQL of the account's balance. */
import type { Nano } from '../../base/money.ts';
import type { Queryable } from '../../storage/database.ts';

export interface StoredBalance {
  organizationId: string;
  /** null: without limit. */
  balanceNano: Nano | null;
  version: number;
  /** False: the configuration's balance holds. */
  isSet: boolean;
}

interface Row extends Omit<StoredBalance, 'version' | 'balanceNano'> {
  version: bigint;
  balanceNano: bigint | null;
}

/** Of the installation's account; undefined where none was ever set. */
export async function readBalance(db: Queryable): Promise<StoredBalance | undefined> {
  const [row] = await db.query<Row>(
    `select organization_id as "organizationId", balance_nano as "balanceNano", version, is_set as "isSet"
       from account_balances order by updated_at desc limit 1`,
  );
  return row && stored(row);
}

/** @param balance undefined: the configuration's holds again */
export async function writeBalance(
  tx: Queryable,
  organizationId: string,
  balance: Nano | null | undefined,
  updatedAt: Date,
): Promise<StoredBalance> {
  const [row] = await tx.query<Row>(
    `insert into account_balances as own (organization_id, balance_nano, version, is_set, updated_at)
     values ($1, $2, 1, $3, $4)
     on conflict (organization_id) do update set balance_nano = excluded.balance_nano, version = own.version + 1,
       is_set = excluded.is_set, updated_at = excluded.updated_at
     returning organization_id as "organizationId", balance_nano as "balanceNano", version, is_set as "isSet"`,
    [organizationId, balance ?? null, balance !== undefined, updatedAt],
  );
  return stored(row!);
}

function stored(row: Row): StoredBalance {
  return {
    ...row,
    version: Number(row.version),
    balanceNano: row.balanceNano === null ? null : BigInt(row.balanceNano),
  };
}
