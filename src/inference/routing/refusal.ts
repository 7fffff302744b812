/** Refusals of routing, each with `error.availability` (wire/common.md, "Model availability"). */
import { GatewayError } from '../../base/errors.ts';
import { WIRE_ALIAS, WIRE_NAME } from '../../base/namespace.ts';
import type { PreparedEndpoint } from './prepared.ts';
import { CONTEXT_RULE, type Rule } from './rules.ts';

/** Endpoints that a refusal lists, each with what excluded it. */
const MOST_LISTED = 20;

/** @param near the model that was probably meant */
export function unknownModel(name: string, requested: readonly string[], near: string | undefined): GatewayError {
  const hint = near === undefined ? '; GET /models lists them' : `; did you mean ${near}?`;
  return new GatewayError('invalid_request', `${JSON.stringify(name.slice(0, 200))} is not a known model${hint}`, {
    path: 'model',
    availability: { code: 'model_not_found', retryable: false, requested_models: requested },
  });
}

/** Models of the public service that choose another one. */
const ROUTER = new RegExp(
  `^(?:${WIRE_NAME}|${WIRE_ALIAS})/(?:auto|auto-beta|free|pareto-code|bodybuilder|fusion)(?:[:@]|$)`,
);
const ONLINE = /:online$/;

/** A name that asks for a feature and is not mistyped. @param knows whether the catalog has a model */
export function unbuiltModel(name: string, knows: (name: string) => boolean): GatewayError | undefined {
  const shown = JSON.stringify(name.slice(0, 200));
  if (ROUTER.test(name)) {
    const problem = `${shown} is a router that chooses a model, which this gateway does not have: name a model`;
    return new GatewayError('invalid_request', problem, { path: 'model' });
  }
  if (!ONLINE.test(name) || !knows(name.replace(ONLINE, ''))) return undefined;
  const problem = `${shown} asks for web search by the suffix :online, which this gateway does not have: name the model without it`;
  return new GatewayError('invalid_request', problem, { path: 'model' });
}

export function wrongOperation(requested: readonly string[]): GatewayError {
  const name = JSON.stringify(requested[0]?.slice(0, 200));
  return new GatewayError('invalid_request', `${name} has no endpoint that serves this operation`, {
    path: 'model',
    availability: { code: 'wrong_endpoint', retryable: false, requested_models: requested },
  });
}

/** The catalog knows the model, but nobody offers it (any more) in the way that was asked for. */
export function noEndpoints(requested: readonly string[]): GatewayError {
  const free = requested.every((name) => name.endsWith(':free'));
  const name = JSON.stringify(requested[0]?.slice(0, 200));
  return new GatewayError('not_found', `${name} has no endpoints${free ? ' that cost nothing' : ''}`, {
    path: 'model',
    availability: {
      code: free ? 'free_variant_ended' : 'no_endpoints',
      retryable: false,
      requested_models: requested,
    },
  });
}

/** Another machine of the installation may be able to open it, so the request may be sent again. */
export function unopenedKey(requested: readonly string[]): GatewayError {
  const name = JSON.stringify(requested[0]?.slice(0, 200));
  return new GatewayError(
    'server',
    `${name} must be requested with an own key at its provider (BYOK), which cannot be decrypted on this machine. ` +
      "The operator has to give this machine the installation's key for stored credentials (gatehouse doctor).",
    {
      status: 503,
      retryAfterSeconds: 1,
      metadata: { retryable: true },
      availability: { code: 'constraint_filtered', retryable: true, requested_models: requested },
    },
  );
}

const KINDS = ['list', 'privacy', 'constraint'] as const;
const TEXTS: Record<Rule['kind'], string> = {
  list: 'no allowed providers: the lists of models and providers leave none that serves the requested model',
  privacy: 'no endpoint of the requested model handles data as the request or the account demands',
  constraint: 'no endpoint of the requested model satisfies the request',
};

/**
 * A prompt that no endpoint has the context for, which is the request's fault and not a lack of endpoints. Agents compact
 * their history when they read so. Undefined where endpoints with the context are excluded by other rules.
 */
function tooLong(
  requested: readonly string[],
  endpoints: readonly PreparedEndpoint[],
  rules: readonly Rule[],
): GatewayError | undefined {
  const others = rules.filter(({ name }) => name !== CONTEXT_RULE);
  const allowed =
    others.length === rules.length ? [] : endpoints.filter((one) => others.every((rule) => rule.keeps(one)));
  if (allowed.length === 0) return undefined;
  const limit = Math.max(...allowed.map(({ endpoint }) => endpoint.contextLength ?? 0));
  const { path, promptTokens = 0 } = rules.find(({ name }) => name === CONTEXT_RULE)!;
  return new GatewayError(
    'context_length_exceeded',
    `the prompt has about ${promptTokens} tokens > ${limit}, the largest context of the endpoints that may serve it`,
    {
      ...(path !== undefined && { path }),
      availability: {
        code: 'constraint_filtered',
        retryable: false,
        requested_models: requested,
        affected_providers: unique(allowed.map(({ endpoint }) => endpoint.provider.name)).slice(0, MOST_LISTED),
        excluded_by: [CONTEXT_RULE],
        constraint: { field: 'messages', detail: `${CONTEXT_RULE} leaves no endpoint` },
      },
      metadata: { excluded_endpoints: excludedBy(endpoints, rules) },
    },
  );
}

/** Endpoints, each with the names of the rules that exclude it. */
function excludedBy(endpoints: readonly PreparedEndpoint[], rules: readonly Rule[]): Record<string, unknown>[] {
  return endpoints.slice(0, MOST_LISTED).map((prepared) => ({
    provider: prepared.endpoint.provider.id,
    model: prepared.endpoint.modelId,
    ...(prepared.endpoint.tier && { service_tier: prepared.endpoint.tier.name }),
    excluded_by: unique(rules.filter((rule) => !rule.keeps(prepared)).map(({ name }) => name)),
  }));
}

/**
 * What is told is the first kind of rules that leaves nobody: lists before privacy before the others. `metadata` names
 * for each endpoint every rule that excluded it.
 * @param endpoints those that have the operation, all excluded by some rule
 */
export function nothingLeft(
  requested: readonly string[],
  endpoints: readonly PreparedEndpoint[],
  rules: readonly Rule[],
): GatewayError {
  const overflow = tooLong(requested, endpoints, rules);
  if (overflow !== undefined) return overflow;
  const kind = KINDS.find((_, at) => {
    const applied = rules.filter((rule) => KINDS.indexOf(rule.kind) <= at);
    return !endpoints.some((endpoint) => applied.every((rule) => rule.keeps(endpoint)));
  });
  const excluding = rules.filter((rule) => endpoints.some((endpoint) => !rule.keeps(endpoint)));
  const told = excluding.filter((rule) => rule.kind === kind);
  const { path } = told.find((rule) => rule.path !== undefined) ?? {};
  const names = unique(told.map(({ name }) => name));
  const reason = kind === 'list' ? byLists(told) : `: ${names.join(', ')}`;
  return new GatewayError(
    kind === 'list' ? 'permission_denied' : 'not_found',
    `${TEXTS[kind ?? 'constraint']}${reason}`,
    {
      ...(path !== undefined && { path }),
      availability: {
        code: kind === 'privacy' ? 'privacy_restricted' : 'constraint_filtered',
        retryable: false,
        requested_models: requested,
        affected_providers: unique(endpoints.map(({ endpoint }) => endpoint.provider.name)).slice(0, MOST_LISTED),
        excluded_by: unique(excluding.map(({ name }) => name)),
        ...(path !== undefined && { constraint: { field: path, detail: `${names.join(', ')} leaves no endpoint` } }),
      },
      metadata: { excluded_endpoints: excludedBy(endpoints, excluding) },
    },
  );
}

/** Lists of the request have a path; those without one stand in guardrails. */
function byLists(told: readonly Rule[]): string {
  const names = unique(told.filter(({ path }) => path === undefined).map(({ name }) => name));
  return names.length === 0 ? '' : ` (${names.join(', ')} of the guardrails of this key)`;
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)];
}
