/**
 * Totals for guardrail budgets. They sum the counters of their keys, so spend from before the budget existed counts
 * too, and so does spend of a key that it did not apply to yet.
 */
import type { Nano } from '../base/money.ts';
import type { Queryable } from '../storage/database.ts';
import { type SpentBy, windowTail } from './budget.ts';

interface GuardrailTotal {
  spentNano: Nano;
  byokNano: Nano;
}

interface GuardrailTotalRow extends GuardrailTotal {
  id: string;
}

/**
 * Totals by window id, for budgets that count the spend of keys. Call it in the transaction that has locked the
 * windows: an entered row and its released lease then become visible together.
 */
export async function guardrailTotals(
  db: Queryable,
  windows: readonly { windowId: string; spentBy?: SpentBy | undefined }[],
): Promise<Map<string, GuardrailTotal>> {
  const counted = new Map<string, GuardrailTotal>();
  const keys: { id: string; source: string }[] = [];
  const members: { id: string; tail: string; organization_id: string; user_id: string }[] = [];
  for (const { windowId: id, spentBy } of windows) {
    if (spentBy === undefined) continue;
    counted.set(id, { spentNano: 0n, byokNano: 0n });
    const tail = windowTail(id);
    if ('keyId' in spentBy) keys.push({ id, source: `key/${spentBy.keyId}${tail}` });
    else members.push({ id, tail, organization_id: spentBy.organizationId, user_id: spentBy.userId });
  }
  for (const row of [...(await ofKeys(db, keys)), ...(await ofMembers(db, members))]) {
    counted.set(row.id, row);
  }
  return counted;
}

async function ofKeys(db: Queryable, wanted: readonly { id: string; source: string }[]): Promise<GuardrailTotalRow[]> {
  if (wanted.length === 0) return [];
  return db.query<GuardrailTotalRow>(
    `select wanted.id, own.spent_nano as "spentNano", own.byok_nano as "byokNano"
     from jsonb_to_recordset($1::jsonb) as wanted(id text, source text)
     join spend_windows own on own.id = wanted.source collate "C"`,
    [JSON.stringify(wanted)],
  );
}

async function ofMembers(db: Queryable, wanted: readonly object[]): Promise<GuardrailTotalRow[]> {
  if (wanted.length === 0) return [];
  return db.query<GuardrailTotalRow>(
    `select wanted.id, sum(own.spent_nano)::bigint as "spentNano", sum(own.byok_nano)::bigint as "byokNano"
     from jsonb_to_recordset($1::jsonb) as wanted(id text, tail text, organization_id text, user_id text)
     join api_keys k on k.organization_id = wanted.organization_id and k.creator_user_id = wanted.user_id
     join spend_windows own on own.id = ('key/' || k.id || wanted.tail) collate "C"
     group by wanted.id`,
    [JSON.stringify(wanted)],
  );
}
