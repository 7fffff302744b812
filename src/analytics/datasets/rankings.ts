/** Rankings from totals: by day and model, and by app. Pure. */
import { createHash } from 'node:crypto';

interface ModelDay {
  date: string;
  model: string;
  tokens: bigint;
}

const MOST_MODELS = 50;

/** The models of each day with the most tokens, then the sum of all others. @param days by date */
export function rankedByDay(days: readonly ModelDay[]) {
  return [...Map.groupBy(days, ({ date }) => date)].flatMap(([date, rows]) => {
    const sorted = rows.toSorted(moreTokensFirst);
    const rest = sorted.slice(MOST_MODELS).reduce((sum, { tokens }) => sum + tokens, 0n);
    const shown = sorted.slice(0, MOST_MODELS).map(({ model, tokens }) => row(date, model, tokens));
    return rest > 0n ? [...shown, row(date, 'other', rest)] : shown;
  });
}

function row(date: string, model: string, tokens: bigint) {
  return { date, model_permaslug: model, total_tokens: String(tokens) };
}

function moreTokensFirst(one: ModelDay, other: ModelDay): number {
  if (one.tokens !== other.tokens) return one.tokens > other.tokens ? -1 : 1;
  return one.model < other.model ? -1 : 1;
}

export interface AppTotal {
  name: string;
  requests: number;
  tokens: bigint;
}

/** What the tokens exceed those of an average earlier period by; apps that do not grow are left out. */
export function growing(apps: readonly AppTotal[], earlier: readonly AppTotal[], periods: number): AppTotal[] {
  const before = new Map(earlier.map(({ name, tokens }) => [name, tokens / BigInt(periods)]));
  const growth = ({ name, tokens }: AppTotal) => tokens - (before.get(name) ?? 0n);
  return apps.filter((app) => growth(app) > 0n).toSorted((one, other) => (growth(one) > growth(other) ? -1 : 1));
}

export function appRow({ name, requests, tokens }: AppTotal, rank: number) {
  return { app_id: idOf(name), app_name: name, rank, total_requests: requests, total_tokens: String(tokens) };
}

/** Apps have no ids here; the same name always gives the same one. */
function idOf(name: string): number {
  return createHash('sha256').update(name).digest().readUIntBE(0, 6);
}

interface Session {
  app: string;
  model: string;
  turns: number;
  nano: bigint;
}

const TURN_RANGES = [
  ['1-turn', 1],
  ['2-9-turns', 9],
  ['10-49-turns', 49],
  ['50-plus-turns', Number.POSITIVE_INFINITY],
] as const;

/** The median cost of sessions by app, model and number of turns, in nano-dollars. */
export function medianCosts(sessions: readonly Session[]) {
  const cells = Map.groupBy(sessions, ({ app, model, turns }) => JSON.stringify([app, model, rangeOf(turns)]));
  return [...cells].map(([key, all]) => {
    const [app, model, turnRange] = JSON.parse(key) as [string, string, string];
    const costs = all.map(({ nano }) => Number(nano)).toSorted((one, other) => one - other);
    const half = costs.length / 2;
    const median = (costs[Math.ceil(half) - 1]! + costs[Math.floor(half)]!) / 2;
    return { app, model, turnRange, nano: median };
  });
}

function rangeOf(turns: number): string {
  return TURN_RANGES.find(([, most]) => turns <= most)![0];
}

export function slugOf(app: string): string {
  return app
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
}
