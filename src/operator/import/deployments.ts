/** One entry of LiteLLM's `model_list` as a provider and a model of the yaml, still apart. */
import { MODEL_ALIAS } from '../../base/config/provider-readers.ts';
import type { Facts, ModelFacts } from '../../catalog/index.ts';
import { KINDS } from '../../providers/index.ts';
import type { Findings, Path } from './findings.ts';
import { pricingOf } from './prices.ts';
import { SERVICES, type Service } from './service-kinds.ts';
import { upstreamOf } from './upstream.ts';
import { durationText, isMembers, type Json, type Members, type Values, variableOf } from './values.ts';

/** Members of a provider in the yaml, without `id` and `models`. */
export type ProviderDraft = { kind: string } & Members;

export interface Deployment {
  at: Path;
  /** LiteLLM's `model_name`: what clients ask for. */
  name: string;
  provider: ProviderDraft;
  /** The upstream's name; `*`: any. */
  upstream: string;
  /** The author of its id here. */
  author: string;
  facts: ModelFacts | undefined;
  /** Further members of the model in the yaml. */
  model: Members;
}

interface DeploymentParts {
  values: Values;
  findings: Findings;
  facts: Facts;
  /** `credential_list`, by name. */
  credentials: ReadonlyMap<string, Members>;
}

/** Undefined if the entry cannot be served; then it is a finding. */
export function deploymentOf(entry: Json, at: Path, parts: DeploymentParts): Deployment | undefined {
  const { findings, values } = parts;
  if (!isMembers(entry)) return lacking(findings, at, 'is not a mapping');
  const { model_name: name, litellm_params: own, model_info: info, ...others } = entry;
  if (typeof name !== 'string' || name.trim() === '') return lacking(findings, at, 'has no model_name');
  if (!MODEL_ALIAS.test(name)) {
    return lacking(
      findings,
      [...at, 'model_name'],
      'has control characters, spaces around it, or more than 200 characters',
    );
  }
  if (!isMembers(own)) return lacking(findings, at, 'has no litellm_params');
  const inside = [...at, 'litellm_params'];
  const params = withCredential(own, inside, parts);
  if (params === undefined) return undefined;
  if (typeof params['model'] !== 'string') return lacking(findings, [...inside, 'model'], 'names no model');
  const target = serviceOf(params, inside, findings);
  if (target === undefined) return undefined;
  const made = upstreamOf({ ...target, params, at: inside, values, findings });
  if (made === undefined) return undefined;
  const { upstream, author, ...provider } = made;
  if (upstream.trim() === '') return lacking(findings, [...inside, 'model'], 'names no model');
  const timeout = params['timeout'] ?? null;
  const total = timeout === null ? undefined : durationText(timeout);
  if (timeout !== null && total === undefined) findings.lacks([...inside, 'timeout'], 'is not a number of seconds');
  const facts = factsOf(upstream, provider.provider.kind, author, parts.facts);
  const informed = isMembers(info) ? info : {};
  listOthers(params, inside, findings);
  listInfo(informed, [...at, 'model_info'], findings);
  for (const member of Object.keys(others)) findings.lacks([...at, member], reasonFor(member));
  return {
    at,
    name,
    provider: { ...provider.provider, ...(total !== undefined && { timeouts: { total } }) },
    upstream,
    author,
    facts,
    model: { ...pricingOf(params, informed, at, findings), ...windowOf(informed) },
  };
}

function lacking(findings: Findings, at: Path, message: string): undefined {
  findings.lacks(at, `${message}; the entry is not imported`);
}

function withCredential(own: Members, at: Path, { credentials, findings }: DeploymentParts): Members | undefined {
  const { litellm_credential_name: name, ...params } = own;
  if (name === undefined || name === null) return params;
  const found = typeof name === 'string' ? credentials.get(name) : undefined;
  if (found !== undefined) return { ...found, ...params };
  return lacking(findings, [...at, 'litellm_credential_name'], 'names no entry of credential_list');
}

interface Target {
  service: Service;
  /** LiteLLM's name of the service. */
  prefix: string;
  /** `model` without the service. */
  model: string;
}

function serviceOf(params: Members, at: Path, findings: Findings): Target | undefined {
  const model = params['model'] as string;
  const given = params['custom_llm_provider'];
  const slash = model.indexOf('/');
  const prefix = typeof given === 'string' ? given : slash < 0 ? '' : model.slice(0, slash);
  const service = Object.hasOwn(SERVICES, prefix) ? SERVICES[prefix] : undefined;
  if (service !== undefined) {
    return { service, prefix, model: model.startsWith(`${prefix}/`) ? model.slice(prefix.length + 1) : model };
  }
  const path = [...at, 'model'];
  if (variableOf(model) !== undefined) return lacking(findings, path, 'is a reference to the environment');
  if (given === undefined && (slash < 0 || params['api_base'] !== undefined))
    return bareModel(model, params, path, findings);
  return lacking(findings, path, 'names a service for which the gateway has no kind of provider');
}

/** A name without a service: LiteLLM knows the vendor's models by name, and assumes OpenAI's format at an `api_base`. */
function bareModel(model: string, params: Members, path: Path, findings: Findings): Target | undefined {
  const kind = KINDS.find(({ bareModels }) => bareModels?.test(model));
  const found = kind && Object.entries(SERVICES).find(([, service]) => service.kind === kind.id);
  if (found !== undefined) return { service: found[1], prefix: found[0], model };
  if (params['api_base'] !== undefined) return { service: SERVICES['openai']!, prefix: 'openai', model };
  return lacking(findings, path, 'does not say which service has this model');
}

/** The known model that this is; the upstream's name may be a dated one or one of a region. */
function factsOf(upstream: string, kind: string, author: string, { models }: Facts): ModelFacts | undefined {
  const names = new Set([upstream, `${author}/${upstream}`]);
  return models.find(
    ({ id, canonical_slug, aliases, dated, offers }) =>
      offers.some((offer) => offer.provider === kind && offer.upstream_id === upstream) ||
      [id, canonical_slug].some((name) => names.has(name)) ||
      (id.startsWith(`${author}/`) && [...aliases, ...dated].includes(upstream)),
  );
}

function windowOf(info: Members): Members {
  const { max_input_tokens: context, max_output_tokens: completion } = info;
  return {
    ...(isCount(context) && { context_length: context }),
    ...(isCount(completion) && { max_completion_tokens: completion }),
  };
}

function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

/** Members of `litellm_params` that are taken over, or that mean nothing here. */
const TAKEN =
  /^(model|custom_llm_provider|api_key|api_base|base_url|api_version|organization|extra_headers|default_headers|timeout|aws_(region_name|access_key_id|secret_access_key|session_token|profile_name|bedrock_runtime_endpoint|batch_role_arn)|s3_bucket_name|vertex_(project|location|credentials)|azure_ad_token|input_cost_per_.*|output_cost_per_.*|cache_(read|creation)_input_.*|litellm_provider|drop_params|use_in_pass_through|use_litellm_proxy)$/;

function listOthers(params: Members, at: Path, findings: Findings): void {
  for (const [member, value] of Object.entries(params)) {
    if (value !== null && !TAKEN.test(member)) findings.lacks([...at, member], reasonFor(member));
  }
}

const INFORMED =
  /^(id|max_input_tokens|max_output_tokens|max_tokens|base_model|mode|litellm_provider|input_cost_per_.*|output_cost_per_.*|cache_(read|creation)_input_.*|supports_.*|description|db_model|key|team_id|created_(at|by)|updated_(at|by))$/;

function listInfo(info: Members, at: Path, findings: Findings): void {
  for (const member of Object.keys(info)) {
    if (!INFORMED.test(member)) findings.lacks([...at, member], 'has no counterpart');
  }
}

const LIMITS = 'limits one deployment; here keys and workspaces have rate limits, and a provider max_concurrency';
const REASONS: Readonly<Record<string, string>> = {
  tpm: LIMITS,
  rpm: LIMITS,
  itpm: LIMITS,
  otpm: LIMITS,
  tpd: LIMITS,
  rpd: LIMITS,
  max_parallel_requests: LIMITS,
  stream_timeout: 'has no counterpart for streams only; see timeouts.first_byte and timeouts.idle of the provider',
  max_retries: 'is not needed: a failed attempt goes to the next endpoint',
  num_retries: 'is not needed: a failed attempt goes to the next endpoint',
  weight: 'has no counterpart: endpoints are chosen by price, health and the preferences of the request',
  order: 'has no counterpart: endpoints are chosen by price, health and the preferences of the request',
  tags: 'has no counterpart: use workspaces and guardrails',
  max_budget: 'limits one deployment; here keys, members and workspaces have budgets',
  budget_duration: 'limits one deployment; here keys, members and workspaces have budgets',
  cooldown_time: 'has no counterpart: cooldowns follow the upstream, and are 30 s otherwise',
};

function reasonFor(member: string): string {
  return REASONS[member] ?? 'is a parameter that the gateway adds to no request; clients send it themselves';
}
