/** `router_settings`, `litellm_settings` and `general_settings` of LiteLLM as sections of the yaml. */
import { MODEL_ALIAS } from '../../base/config/provider-readers.ts';
import type { Findings, Path } from './findings.ts';
import { durationText, isMembers, type Json, literal, type Members } from './values.ts';

export interface Sections {
  routing: { fallbacks: Record<string, string[]> };
  /** For providers whose deployments set none. */
  timeout: string | undefined;
  account: Members;
  /** Further names of models, by LiteLLM's name of the model. */
  aliases: Map<string, string[]>;
}

type Handler = (value: Json, at: Path, sections: Sections, parts: SettingsParts) => void;

interface SettingsParts {
  findings: Findings;
  /** The id in the gateway for a model name. */
  idOf(name: string): string | undefined;
}

/** Settings that are not needed here, by name; they are no findings. */
const NOT_NEEDED = new Set([
  'drop_params',
  'num_retries',
  'max_retries',
  'allowed_fails',
  'retry_after',
  'redis_host',
  'redis_port',
  'redis_password',
  'redis_url',
  'redis_ssl',
  'set_verbose',
  'json_logs',
  'enable_pre_call_checks',
  'disable_prisma_schema_update',
  'database_connection_pool_limit',
  'background_health_checks',
  'health_check_interval',
  'store_model_in_db',
  'store_prompts_in_spend_logs',
]);

const LOGGING =
  'has no counterpart by this name: destinations receive a record of every generation (docs/guides/destinations.md)';
const REASONS: Readonly<Record<string, string>> = {
  callbacks: LOGGING,
  success_callback: LOGGING,
  failure_callback: LOGGING,
  service_callback: LOGGING,
  cache: 'is a choice of the request here: X-Svc-Cache (docs/guides/caching.md)',
  cache_params: 'is a choice of the request here: X-Svc-Cache (docs/guides/caching.md)',
  budget_duration: 'has no counterpart for the whole account: budgets of workspaces are by day, week or month',
  routing_strategy: 'is a choice of the request (provider.sort) or of the workspace (default_provider_sort)',
  cooldown_time: 'has no counterpart: cooldowns follow the upstream, and are 30 s otherwise',
  enable_tag_filtering: 'has no counterpart: use workspaces and guardrails',
  master_key: 'is the key that manages the gateway: set GATEHOUSE_MANAGEMENT_KEY before the first start',
  database_url: "names LiteLLM's database: the gateway needs one of its own (DATABASE_URL), or uses its embedded one",
  custom_auth: 'has no counterpart: see federation, SCIM and the console',
  pass_through_endpoints: 'has no counterpart: only known formats are served',
  default_internal_user_params: 'has no counterpart: members have budgets and guardrails',
  alerting: 'has no counterpart: alerts are rules on metrics (docs/guides/observability.md)',
  otel: 'is the variable OTEL_EXPORTER_OTLP_ENDPOINT',
};

/** Only the members with a counterpart. */
function handlerOf(name: string): Handler | undefined {
  switch (name) {
    case 'fallbacks':
    case 'context_window_fallbacks':
    case 'content_policy_fallbacks':
    case 'default_fallbacks':
      return fallbacks;
    case 'timeout':
    case 'request_timeout':
      return timeout;
    case 'model_group_alias':
      return groupAliases;
    case 'max_budget':
      return balance;
    default:
      return undefined;
  }
}

/** @param at the section's path */
export function readSettings(settings: Json, at: Path, sections: Sections, parts: SettingsParts): void {
  if (settings === null) return;
  if (!isMembers(settings)) {
    parts.findings.lacks(at, 'is not a mapping');
    return;
  }
  for (const [name, value] of Object.entries(settings)) {
    const path = [...at, name];
    if (value === null || NOT_NEEDED.has(name)) continue;
    const handler = handlerOf(name);
    if (handler !== undefined) handler(value, path, sections, parts);
    else parts.findings.lacks(path, REASONS[name] ?? 'has no counterpart');
  }
}

function groupAliases(value: Json, at: Path, { aliases }: Sections, { findings, idOf }: SettingsParts): void {
  for (const [alias, target] of Object.entries(isMembers(value) ? value : {})) {
    const named = isMembers(target) ? target['model'] : target;
    if (typeof named !== 'string' || idOf(named) === undefined) {
      findings.lacks([...at, alias], 'names no imported model');
    } else if (idOf(alias) !== undefined || !MODEL_ALIAS.test(alias)) {
      findings.lacks([...at, alias], 'is the name of a model, or cannot be one');
    } else aliases.set(named, [...(aliases.get(named) ?? []), literal(alias)]);
  }
}

function balance(value: Json, at: Path, { account }: Sections, { findings }: SettingsParts): void {
  const amount = Number(value);
  if (!(amount >= 0 && amount < 1e9)) {
    findings.lacks(at, 'is not an amount of USD');
    return;
  }
  account['balance_usd'] = amount;
  findings.differs(at, 'is account.balance_usd, which is not reset; budgets of workspaces are by day, week or month');
}

function timeout(value: Json, at: Path, sections: Sections, { findings }: SettingsParts): void {
  const text = durationText(value);
  if (text === undefined) findings.lacks(at, 'is not a number of seconds');
  else sections.timeout ??= text;
}

/** `[{model: [models]}]`, or for `default_fallbacks` `[models]`. */
function fallbacks(value: Json, at: Path, sections: Sections, parts: SettingsParts): void {
  const { findings, idOf } = parts;
  if (!Array.isArray(value)) {
    findings.lacks(at, 'is not a list');
    return;
  }
  const name = at.at(-1);
  const rules: readonly Rule[] =
    name === 'default_fallbacks'
      ? [{ id: '*', further: value, at }]
      : value.flatMap((rule, index) =>
          Object.entries(isMembers(rule) ? rule : {}).map(([model, further]) => {
            return { id: model === '*' ? '*' : idOf(model), further, at: [...at, index, model] };
          }),
        );
  for (const rule of rules) addFallbacks(rule, sections, parts);
  if (name === 'context_window_fallbacks' || name === 'content_policy_fallbacks') {
    findings.differs(at, 'is routing.fallbacks, which applies to every failure');
  }
}

interface Rule {
  /** Undefined: no imported model. */
  id: string | undefined;
  further: Json;
  at: Path;
}

function addFallbacks({ id, further, at }: Rule, { routing }: Sections, { findings, idOf }: SettingsParts): void {
  if (id === undefined || !Array.isArray(further)) {
    findings.lacks(at, id === undefined ? 'is not the name of an imported model' : 'is not a list of models');
    return;
  }
  const ids = new Set(routing.fallbacks[id]);
  for (const [index, each] of further.entries()) {
    const found = typeof each === 'string' ? idOf(each) : undefined;
    if (found === undefined) findings.lacks([...at, index], 'names no imported model');
    else ids.add(found);
  }
  if (ids.size > 0) routing.fallbacks[id] = [...ids];
}
