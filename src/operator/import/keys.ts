/**
 * Keys and teams of LiteLLM's proxy, as `/key/list?return_full_object=true`, `/team/list` and exports of its tables have
 * them. Pure: reads no file and writes nothing. Clients keep their keys, because both gateways store the SHA-256 of a token.
 */
import { LineCounter } from 'yaml';
import { hashToken, isHash, isToken, maskToken } from '../../access/index.ts';
import { Findings, type Path } from './findings.ts';
import { ImportError, parsed } from './litellm.ts';
import { isMembers, type Json, type Members } from './values.ts';

/** A window in which a budget counts. */
type Reset = 'daily' | 'weekly' | 'monthly';

interface Terms {
  /** USD. */
  budget: number | undefined;
  /** Null: for good. */
  reset: Reset | null;
  rateLimits: { requests_per_minute?: number; tokens_per_minute?: number };
  /** Names or ids of models; undefined: every model. */
  models: readonly string[] | undefined;
}

export interface KeyDraft extends Terms {
  hash: string;
  label: string;
  name: string;
  /** LiteLLM's id. */
  teamId: string | undefined;
  expiresAt: string | undefined;
  user: string | undefined;
}

export interface TeamDraft extends Terms {
  teamId: string;
  name: string;
}

export interface Drafts {
  keys: readonly KeyDraft[];
  teams: readonly TeamDraft[];
  findings: Findings;
}

interface ReadParts {
  findings: Findings;
  now: number;
  /** The id in the gateway for LiteLLM's name of a model; undefined: the same name. */
  idOf(name: string): string | undefined;
}

/** @throws ImportError for a file that has neither */
export function readKeys(text: string, { now, idOf }: Pick<ReadParts, 'now' | 'idOf'>): Drafts {
  const lines = new LineCounter();
  const document = parsed(text, lines);
  const findings = new Findings(document, lines);
  const parts = { findings, now, idOf };
  const keys: KeyDraft[] = [];
  const teams: TeamDraft[] = [];
  for (const [list, at] of listsOf(document.toJS({ maxAliasCount: 0 }))) {
    for (const [index, record] of list.entries()) {
      const path = [...at, index];
      if (!isMembers(record)) findings.lacks(path, 'is not a record: export keys with return_full_object=true');
      else if (record['token'] !== undefined) keys.push(...keyOf(record, path, parts));
      else if (record['team_id'] !== undefined) teams.push(...teamOf(record, path, parts));
      else findings.lacks(path, 'has neither a token nor a team_id');
    }
  }
  findings.sorted();
  return { keys, teams, findings };
}

/** A list, or the lists that an object has as members. */
function listsOf(content: unknown): [list: Json[], at: Path][] {
  if (Array.isArray(content)) return [[content, []]];
  const lists = Object.entries(isMembers(content) ? content : {}).flatMap(([name, list]): [Json[], Path][] =>
    Array.isArray(list) ? [[list, [name]]] : [],
  );
  if (lists.length === 0) throw new ImportError('the file has no list of keys or teams');
  return lists;
}

/** Members of a record that are taken over, or that say nothing about what a key may do. */
const READ =
  /^(token|key_name|key_alias|team_id|team_alias|user_id|models|spend|max_budget|budget_duration|[rt]pm_limit|expires|blocked|(created|updated)_(at|by)|budget_reset_at|model_spend|last_(active|refreshed_at)|budget_id|litellm_budget_table|rotation_.*|key_rotation_at|(total_)?(members|admins|members_with_roles|members_count|keys_count|keys)|id)$/;

const REASONS: Readonly<Record<string, string>> = {
  max_parallel_requests: 'has no counterpart: providers have max_concurrency',
  model_max_budget: 'has no counterpart: a budget is for all models of a key',
  soft_budget: 'has no counterpart: alerts are rules on metrics (docs/guides/observability.md)',
  guardrails: 'is not imported: assign guardrails to the key (docs/guides/guardrails.md)',
  aliases: 'has no counterpart for one key; models have aliases in the yaml',
  model_aliases: 'has no counterpart for one team; models have aliases in the yaml',
  metadata: 'has no counterpart',
  organization_id: 'has no counterpart: an installation is one organization',
  permissions: 'has no counterpart for keys that call models',
  allowed_routes: 'has no counterpart: an inference key may use every inference operation',
};

function listOthers(record: Members, at: Path, { findings }: ReadParts): void {
  for (const [member, value] of Object.entries(record)) {
    if (!READ.test(member) && !isNothing(value))
      findings.lacks([...at, member], REASONS[member] ?? 'has no counterpart');
  }
}

function isNothing(value: Json): boolean {
  if (value === null || value === false || value === '' || value === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isMembers(value) && Object.keys(value).length === 0;
}

function keyOf(record: Members, at: Path, parts: ReadParts): KeyDraft[] {
  const { findings, now } = parts;
  const { token, key_name: masked, key_alias: alias, team_id: teamId, user_id: user, expires, blocked } = record;
  const skip = (member: string, problem: string): [] => {
    findings.lacks([...at, member], `${problem}; the key is not imported`);
    return [];
  };
  const hash = hashOf(token);
  if (hash === undefined) return skip('token', 'is neither a token nor its hash');
  if (!isNothing(blocked ?? null)) return skip('blocked', 'is set');
  const ends = (expires ?? null) === null ? undefined : Date.parse(withZone(String(expires)));
  if (ends !== undefined && Number.isNaN(ends)) return skip('expires', 'is not a time');
  if (ends !== undefined && ends <= now) return skip('expires', 'is in the past');
  const terms = termsOf(record, at, parts);
  if (terms === undefined) return [];
  listOthers(record, at, parts);
  const label = labelOf(token, masked);
  return [
    {
      ...terms,
      ...{ hash, label },
      name: textOf(alias)?.slice(0, 200) ?? `imported key ${label}`,
      teamId: textOf(teamId),
      expiresAt: ends === undefined ? undefined : new Date(ends).toISOString(),
      user: textOf(user)?.slice(0, 200),
    },
  ];
}

function teamOf(record: Members, at: Path, parts: ReadParts): TeamDraft[] {
  const teamId = textOf(record['team_id']);
  if (teamId === undefined) {
    parts.findings.lacks([...at, 'team_id'], 'is not a text; the team is not imported');
    return [];
  }
  const terms = termsOf(record, at, parts);
  if (terms === undefined) return [];
  if (!isNothing(record['blocked'] ?? null))
    parts.findings.lacks([...at, 'blocked'], 'has no counterpart: disable its keys');
  listOthers(record, at, parts);
  return [{ ...terms, teamId, name: textOf(record['team_alias'])?.slice(0, 100) ?? teamId.slice(0, 100) }];
}

/** Undefined: it allows nothing, or has a limit that cannot be read; then it is a finding. */
function termsOf(record: Members, at: Path, parts: ReadParts): Terms | undefined {
  const { findings, idOf } = parts;
  const table = record['litellm_budget_table'];
  const shared = isMembers(table) ? table : {};
  const given = (name: string) => record[name] ?? shared[name] ?? null;
  const path = [...at, 'models'];
  const names = record['models'] ?? [];
  // Anything that is not understood would lift the restriction.
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string')) {
    findings.lacks(path, 'is not a list of names; not imported');
    return undefined;
  }
  const wrong = LIMITS.find(([name, read]) => given(name) !== null && read(given(name)) === undefined);
  if (wrong !== undefined) {
    findings.lacks([...at, wrong[0]], 'is not a limit that the gateway has; not imported');
    return undefined;
  }
  if (names.includes('no-default-models')) {
    findings.lacks(path, 'allows no model; not imported');
    return undefined;
  }
  // A key without models of its own has those of its team, which its workspace's guardrail lists.
  const everything =
    names.length === 0 || names.some((name) => ['all-proxy-models', 'all-team-models', '*'].includes(name));
  for (const [index, name] of names.entries()) {
    if (!everything && name.includes('*'))
      findings.lacks([...path, index], 'is a pattern; guardrails list whole names');
  }
  const budget = amountOf(given('max_budget'));
  const { reset, remains } = windowOf(given('budget_duration'), [...at, 'budget_duration'], findings);
  const spent = remains ? (amountOf(record['spend'] ?? null) ?? 0) : 0;
  const [requests, tokens] = [countOf(given('rpm_limit')), countOf(given('tpm_limit'))];
  return {
    budget: budget === undefined ? undefined : Math.max(Math.round((budget - spent) * 1e9) / 1e9, 0),
    reset,
    rateLimits: {
      ...(requests !== undefined && { requests_per_minute: requests }),
      ...(tokens !== undefined && { tokens_per_minute: tokens }),
    },
    models: everything ? undefined : names.map((name) => idOf(name) ?? name),
  };
}

const LIMITS: readonly (readonly [name: string, read: (value: Json) => number | undefined])[] = [
  ['max_budget', amountOf],
  ['rpm_limit', countOf],
  ['tpm_limit', countOf],
];
const DAYS: Readonly<Record<string, number>> = { d: 1, w: 7, mo: 30, h: 1 / 24, m: 1 / 1440, s: 1 / 86_400 };

/** @returns `remains`: the budget is for good, so what was spent counts */
function windowOf(duration: Json, at: Path, findings: Findings): { reset: Reset | null; remains: boolean } {
  if (duration === null) return { reset: null, remains: true };
  const [, number, unit] = (typeof duration === 'string' && /^(\d+)(mo|[dwhms])$/.exec(duration)) || [];
  const days = unit === undefined ? undefined : Number(number) * DAYS[unit]!;
  const reset =
    days === 1 ? 'daily' : days === 7 ? 'weekly' : days !== undefined && days >= 28 && days <= 31 ? 'monthly' : null;
  if (reset === null) {
    findings.differs(at, 'is no day, week or month: the budget is imported without a reset');
    return { reset, remains: true };
  }
  findings.differs(at, `is ${reset}, from midnight UTC on, and begins with nothing spent`);
  return { reset, remains: false };
}

function hashOf(token: Json | undefined): string | undefined {
  if (typeof token !== 'string') return undefined;
  if (isHash(token)) return token;
  return token.startsWith('sk-') && isToken(token) ? hashToken(token) : undefined;
}

/** @param masked LiteLLM's own: `sk-...abcd` */
function labelOf(token: Json | undefined, masked: Json | undefined): string {
  if (typeof masked === 'string' && /^sk-\.{3}[\w-]{1,8}$/.test(masked)) return masked;
  return typeof token === 'string' && !isHash(token) ? maskToken(token) : 'sk-...';
}

/** LiteLLM's database has times without a zone, which are UTC. */
function withZone(time: string): string {
  return /(?:Z|[+-]\d\d:?\d\d)$/.test(time) ? time : `${time.replace(' ', 'T')}Z`;
}

function textOf(value: Json | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  // A name is shown in a terminal.
  const text = value.replace(/\p{Cc}/gu, ' ').trim();
  return text === '' ? undefined : text;
}

function amountOf(value: Json): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && number >= 0 && number < 1e9 ? number : undefined;
}

function countOf(value: Json): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : undefined;
}
