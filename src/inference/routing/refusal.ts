/** Errors of routing, each with `error.availability`. */
import { GatewayError } from '../../base/errors.ts';
import { WIRE_ALIAS, WIRE_NAME } from '../../base/namespace.ts';
import type { PreparedEndpoint } from './prepared.ts';
import { CONTEXT_RULE, type Rule } from './rules.ts';

/** The most endpoints that an error lists. */
const MAX_LISTED = 20;

/** The default of `POST /moderations`, which clients do not name themselves, and names like it. */
const MODERATION = /moderation/i;

/** @param nearest the model that the client probably meant */
export function unknownModel(name: string, requested: readonly string[], nearest: string | undefined): GatewayError {
  const hint = MODERATION.test(name)
    ? '; configure a provider with a model whose output modality is moderation (docs/guides/guardrails.md)'
    : nearest === undefined
      ? '; GET /models lists them'
      : `; did you mean ${nearest}?`;
  return new GatewayError('invalid_request', `${JSON.stringify(name.slice(0, 200))} is not a known model${hint}`, {
    path: 'model',
    availability: { code: 'model_not_found', retryable: false, requested_models: requested },
  });
}

/** Router models of the public service that are not built, and built ones with a suffix. */
const ROUTER = new RegExp(
  `^(?:${WIRE_NAME}|${WIRE_ALIAS})/(?:(?:auto|auto-beta|free|fusion|jev|pareto-code|switchyard)[:@]|bodybuilder(?:[:@]|$))`,
);
const ONLINE = /:online$/;

/** The error for a model name that asks for an unsupported feature. @param knows whether the catalog has a model */
export function unsupportedModel(name: string, knows: (name: string) => boolean): GatewayError | undefined {
  const quoted = JSON.stringify(name.slice(0, 200));
  if (ROUTER.test(name)) {
    const problem = `${quoted} is a router model, which this gateway does not support: name a model`;
    return new GatewayError('invalid_request', problem, { path: 'model' });
  }
  if (!ONLINE.test(name) || !knows(name.replace(ONLINE, ''))) return undefined;
  const problem = `${quoted} asks for web search by the suffix :online, which only the model of a conversation can have`;
  return new GatewayError('invalid_request', problem, { path: 'model' });
}

/** A router model that chooses nothing needs other models in the request. */
export function passesToNothing(requested: readonly string[]): GatewayError {
  const name = JSON.stringify(requested[0]?.slice(0, 200));
  return new GatewayError('invalid_request', `models is required: ${name} passes the request on to the models there`, {
    path: 'models',
  });
}

export function wrongOperation(requested: readonly string[]): GatewayError {
  const name = JSON.stringify(requested[0]?.slice(0, 200));
  return new GatewayError('invalid_request', `${name} has no endpoint that serves this operation`, {
    path: 'model',
    availability: { code: 'wrong_endpoint', retryable: false, requested_models: requested },
  });
}

/** The catalog knows the model but has no endpoint for it, or none of the requested variant. */
export function noEndpoints(requested: readonly string[]): GatewayError {
  const free = requested.every((name) => name.endsWith(':free'));
  const name = JSON.stringify(requested[0]?.slice(0, 200));
  return new GatewayError('not_found', `${name} has no ${free ? 'free ' : ''}endpoints`, {
    path: 'model',
    availability: {
      code: free ? 'free_variant_ended' : 'no_endpoints',
      retryable: false,
      requested_models: requested,
    },
  });
}

/** Another machine of the installation may be able to decrypt the credential, so a retry can succeed. */
export function undecryptedKey(requested: readonly string[]): GatewayError {
  const name = JSON.stringify(requested[0]?.slice(0, 200));
  return new GatewayError(
    'server',
    `${name} must be requested with a BYOK credential, which cannot be decrypted on this machine. ` +
      "The operator has to give this machine the installation's encryption key (see gatehouse doctor).",
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
  list: 'no allowed providers: the allow and deny lists exclude every provider of the requested model',
  privacy: 'no endpoint of the requested model meets the data policy of the request or the account',
  constraint: 'no endpoint of the requested model satisfies the request',
};

/**
 * The error for a prompt that exceeds every endpoint's context. It is the request's fault, and coding agents compact
 * their history when they get it. Undefined if other rules exclude endpoints that have the context.
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
        affected_providers: unique(allowed.map(({ endpoint }) => endpoint.provider.name)).slice(0, MAX_LISTED),
        excluded_by: [CONTEXT_RULE],
        constraint: { field: 'messages', detail: `${CONTEXT_RULE} leaves no endpoint` },
      },
      metadata: { excluded_endpoints: excludedBy(endpoints, rules) },
    },
  );
}

/** The endpoints, each with the names of the rules that exclude it. */
function excludedBy(endpoints: readonly PreparedEndpoint[], rules: readonly Rule[]): Record<string, unknown>[] {
  return endpoints.slice(0, MAX_LISTED).map((prepared) => ({
    provider: prepared.endpoint.provider.id,
    model: prepared.endpoint.modelId,
    ...(prepared.endpoint.tier && { service_tier: prepared.endpoint.tier.name }),
    excluded_by: namesOf(rules, prepared),
  }));
}

/** The names of the rules that exclude an endpoint. */
export function namesOf(rules: readonly Rule[], prepared: PreparedEndpoint): string[] {
  return unique(rules.filter((rule) => !rule.keeps(prepared)).map(({ name }) => name));
}

/**
 * Reports the first kind of rules that leaves no endpoint: lists, then privacy, then other constraints. `metadata` has
 * every rule that excluded each endpoint. What a guardrail forbids is 403, everything else 404.
 * @param endpoints those that have the operation, each excluded by some rule
 */
export function allExcluded(
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
  const decisive = excluding.filter((rule) => rule.kind === kind);
  const { path } = decisive.find((rule) => rule.path !== undefined) ?? {};
  const names = unique(decisive.map(({ name }) => name));
  const reason = kind === 'list' ? byLists(decisive) : `: ${names.join(', ')}`;
  return new GatewayError(
    kind === 'list' && !excludesAll(endpoints, decisive) ? 'permission_denied' : 'not_found',
    `${TEXTS[kind ?? 'constraint']}${reason}`,
    {
      ...(path !== undefined && { path }),
      availability: {
        code: kind === 'privacy' ? 'privacy_restricted' : 'constraint_filtered',
        retryable: false,
        requested_models: requested,
        affected_providers: unique(endpoints.map(({ endpoint }) => endpoint.provider.name)).slice(0, MAX_LISTED),
        excluded_by: unique(excluding.map(({ name }) => name)),
        ...(path !== undefined && { constraint: { field: path, detail: `${names.join(', ')} leaves no endpoint` } }),
      },
      metadata: { excluded_endpoints: excludedBy(endpoints, excluding) },
    },
  );
}

/** Whether the lists of the request alone leave no endpoint. Otherwise a guardrail forbids the ones that they leave. */
function excludesAll(endpoints: readonly PreparedEndpoint[], lists: readonly Rule[]): boolean {
  const own = lists.filter(({ path }) => path !== undefined);
  return !endpoints.some((endpoint) => own.every((rule) => rule.keeps(endpoint)));
}

/** Names the lists without a path, which come from guardrails. */
function byLists(decisive: readonly Rule[]): string {
  const names = unique(decisive.filter(({ path }) => path === undefined).map(({ name }) => name));
  return names.length === 0 ? '' : ` (${names.join(', ')} of the guardrails of this key)`;
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)];
}
