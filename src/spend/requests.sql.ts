/** The cost of requests, by the ids that their senders gave them. */
import type { Nano } from '../base/money.ts';
import type { Queryable } from '../storage/database.ts';

export interface RequestCharge {
  readonly costNano: Nano;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
}

interface Sought {
  keyId: string;
  /** When the first of them was sent. */
  since: Date;
  requestIds: readonly string[];
}

/** Rows in the database, each request with those of its server tools. A request without a row yet has no entry. */
export async function requestCharges(
  db: Queryable,
  { keyId, since, requestIds }: Sought,
): Promise<Map<string, RequestCharge>> {
  const rows = await db.query<{ id: string; cost: string; prompt: string; completion: string; cached: string }>(
    `select request_id as id, sum(cost_nano) as cost,
        coalesce(sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens), 0) as prompt,
        coalesce(sum(output_tokens), 0) as completion, coalesce(sum(cache_read_tokens), 0) as cached
      from generations where created_at >= $1 and key_id = $2 and request_id = any($3::text[]) group by request_id`,
    [since, keyId, requestIds],
  );
  return new Map(
    rows.map(({ id, cost, prompt, completion, cached }) => [
      id,
      {
        ...{ costNano: BigInt(cost), promptTokens: Number(prompt) },
        ...{ completionTokens: Number(completion), cachedTokens: Number(cached) },
      },
    ]),
  );
}
