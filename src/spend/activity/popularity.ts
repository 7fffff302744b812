/** Token usage per model, for ordering models by popularity. */
import type { ActivityQuery, ActivitySum } from './store.ts';

const DAY_MS = 86_400_000;

/** Tokens read and written by model, over the last `days` UTC days including today. */
export async function sumTokens(
  activity: (query: ActivityQuery) => Promise<ActivitySum[]>,
  organizationId: string,
  days: number,
  now: number,
): Promise<Map<string, number>> {
  const until = (Math.floor(now / DAY_MS) + 1) * DAY_MS;
  const tokens = new Map<string, number>();
  for (const sum of await activity({ organizationId, from: until - days * DAY_MS, until, byWorkspace: false })) {
    tokens.set(sum.model, (tokens.get(sum.model) ?? 0) + Number(sum.promptTokens + sum.completionTokens));
  }
  return tokens;
}
