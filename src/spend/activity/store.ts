/** The SQL of activity: number and cost of generations by UTC day, model and endpoint. */
import type { Queryable } from '../../storage/database.ts';

export interface ActivityQuery {
  organizationId: string;
  /** Wall times of the start of a day; `until` is exclusive. */
  from: number;
  until: number;
  /** Restricts to rows of these keys. */
  keyIds?: readonly string[];
  workspaceId?: string;
  /** Groups by workspace too. */
  byWorkspace: boolean;
}

export interface ActivitySum {
  /** As `2026-11-28`. */
  date: string;
  model: string;
  endpointId: string;
  providerName: string;
  /** Present only with `byWorkspace`. */
  workspaceId?: string;
  requests: bigint;
  promptTokens: bigint;
  completionTokens: bigint;
  reasoningTokens: bigint;
  costNano: bigint;
  byokNano: bigint;
}

/** Newest day first. */
export function sumActivity(db: Queryable, query: ActivityQuery): Promise<ActivitySum[]> {
  const workspace = query.byWorkspace ? ', workspace_id' : '';
  return db.query<ActivitySum>(
    `select day as date, model, endpoint_id as "endpointId", max(provider_name) as "providerName"
       ${workspace && `${workspace} as "workspaceId"`}, sum(requests)::bigint as requests,
       sum(prompt_tokens)::bigint as "promptTokens", sum(completion_tokens)::bigint as "completionTokens",
       sum(reasoning_tokens)::bigint as "reasoningTokens", sum(cost_nano)::bigint as "costNano",
       sum(byok_nano)::bigint as "byokNano"
     from ${query.keyIds === undefined ? 'generation_model_days' : 'generation_days'}
     where organization_id = $1 and day >= $2::timestamp::date and day < $3::timestamp::date
       and ($4::text is null or workspace_id = $4) ${query.keyIds === undefined ? '' : 'and key_id = any($5)'}
     group by day, model, endpoint_id${workspace}
     order by day desc, model, endpoint_id${workspace}`,
    [
      query.organizationId,
      new Date(query.from).toISOString(),
      new Date(query.until).toISOString(),
      query.workspaceId ?? null,
      ...(query.keyIds === undefined ? [] : [query.keyIds]),
    ],
  );
}
