/** What generations were and cost, summed by day (UTC), model and endpoint. */
import type { Queryable } from '../../storage/database.ts';

export interface ActivityQuery {
  organizationId: string;
  /** Wall times; the second is not included. */
  from: number;
  until: number;
  /** Rows of these keys only. */
  keyIds?: readonly string[];
  workspaceId?: string;
  /** One row for each workspace too. */
  byWorkspace: boolean;
}

export interface ActivitySum {
  /** As `2026-11-28`. */
  date: string;
  model: string;
  endpointId: string;
  providerName: string;
  /** Absent unless asked for. */
  workspaceId?: string;
  requests: bigint;
  promptTokens: bigint;
  completionTokens: bigint;
  reasoningTokens: bigint;
  costNano: bigint;
  byokNano: bigint;
}

/** Newest day first. Sessions are in UTC, and so is the day of a time. */
export function sumActivity(db: Queryable, query: ActivityQuery): Promise<ActivitySum[]> {
  const workspace = query.byWorkspace ? ', workspace_id' : '';
  return db.query<ActivitySum>(
    `select to_char(created_at::date, 'YYYY-MM-DD') as date, model, coalesce(endpoint_id, '') as "endpointId",
       coalesce(max(provider_name), '') as "providerName"${workspace && `${workspace} as "workspaceId"`},
       count(*) as requests,
       coalesce(sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens), 0)::bigint
         as "promptTokens",
       coalesce(sum(output_tokens), 0)::bigint as "completionTokens",
       coalesce(sum(reasoning_tokens), 0)::bigint as "reasoningTokens",
       sum(cost_nano)::bigint as "costNano", sum(byok_nano)::bigint as "byokNano"
     from generations
     where organization_id = $1 and created_at >= $2 and created_at < $3
       and ($4::text[] is null or key_id = any($4)) and ($5::text is null or workspace_id = $5)
     group by created_at::date, model, endpoint_id${workspace}
     order by created_at::date desc, model, endpoint_id${workspace}`,
    [
      query.organizationId,
      new Date(query.from),
      new Date(query.until),
      query.keyIds ?? null,
      query.workspaceId ?? null,
    ],
  );
}
