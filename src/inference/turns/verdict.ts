/**
 * Decides what follows a failed attempt: another endpoint, another model, or an error to the client, and how that error
 * reads. No other file decides this. Pure.
 */
import { type ErrorType, GatewayError } from '../../base/errors.ts';
import { scrub } from '../../base/log.ts';
import {
  type FailureKind,
  LONGEST_WAIT_SECONDS,
  type UpstreamFailure,
  withoutAccount,
} from '../../formats/conversation/failure.ts';
import type { Candidate } from '../routing/index.ts';

/** One failed attempt, for the response's metadata and the generation's row. */
export interface FailedAttempt {
  providerId: string;
  providerName: string;
  modelId: string;
  /** The attempt used a BYOK credential. */
  isByok: boolean;
  failure: UpstreamFailure;
}

export function failedAt({ endpoint, byok }: Candidate, failure: UpstreamFailure): FailedAttempt {
  const { provider, modelId } = endpoint;
  return { providerId: provider.id, providerName: provider.name, modelId, isByok: byok !== undefined, failure };
}

interface Verdict {
  /**
   * `endpoint`: any later candidate may succeed; `model`: only one of another model may; `answer`: none can, because
   * the request itself is at fault.
   */
  next: 'endpoint' | 'model' | 'answer';
  /** The endpoint goes into cooldown. Never for a fault of the client's. */
  cooldown: boolean;
  /** How the attempt counts in the endpoint's statistics. */
  outcome: 'failed' | 'rate_limited' | 'none';
  /** Another credential of the same provider may succeed. */
  credential: boolean;
  type: ErrorType;
  status: number;
}

/** An overloaded upstream is 529. A problem of the gateway's own account is 502: a 401 would blame the client's key. */
const VERDICTS: Record<FailureKind, Verdict> = {
  invalid_request: clients('answer', 'invalid_request', 400),
  too_large: clients('answer', 'payload_too_large', 413),
  context_length: clients('model', 'context_length_exceeded', 400),
  content_filter: clients('model', 'content_policy_violation', 400),
  not_found: clients('endpoint', 'not_found', 404),
  auth: credentials('provider_unavailable', 502),
  permission: credentials('provider_unavailable', 502),
  quota: credentials('provider_unavailable', 502),
  rate_limit: { ...credentials('rate_limit_exceeded', 429), outcome: 'rate_limited' },
  overloaded: endpoints('provider_overloaded', 529),
  server: endpoints('provider_unavailable', 502),
  timeout: endpoints('timeout', 504),
  refused: endpoints('provider_unavailable', 502),
  cut: endpoints('provider_unavailable', 502),
  malformed: endpoints('provider_unavailable', 502),
  empty: { ...endpoints('provider_unavailable', 502), cooldown: false },
};

/** The request is at fault. */
function clients(next: Verdict['next'], type: ErrorType, status: number): Verdict {
  return { next, cooldown: false, outcome: 'none', credential: false, type, status };
}

/** The endpoint or its upstream is at fault. */
function endpoints(type: ErrorType, status: number): Verdict {
  return { next: 'endpoint', cooldown: true, outcome: 'failed', credential: false, type, status };
}

/** The gateway's account with the provider is at fault. */
function credentials(type: ErrorType, status: number): Verdict {
  return { ...endpoints(type, status), credential: true };
}

export function verdictOf(failure: UpstreamFailure): Verdict {
  const verdict = VERDICTS[failure.kind];
  const isClients = failure.heldBack === true && (failure.kind === 'timeout' || failure.kind === 'cut');
  return isClients ? { ...verdict, cooldown: false, outcome: 'none' } : verdict;
}

/** Kinds whose body describes the account with the provider: nothing of it is shown. */
const PRIVATE: ReadonlySet<FailureKind> = new Set(['auth', 'permission', 'quota']);

/**
 * The error for a request whose every attempt failed: the last failure, with the earlier ones in its metadata. The
 * `Retry-After` is the smallest one of all attempts.
 * @param timeoutStatus status for an upstream that timed out
 */
export function clientError(attempts: readonly FailedAttempt[], timeoutStatus = VERDICTS.timeout.status): GatewayError {
  const last = attempts.at(-1);
  if (last === undefined) return new GatewayError('provider_unavailable', 'no endpoint is available', { status: 503 });
  const { failure } = last;
  const verdict = VERDICTS[failure.kind];
  const hidden = PRIVATE.has(failure.kind);
  const waits = attempts.flatMap(({ failure: { retryAfterSeconds: wait } }) =>
    wait === undefined ? [] : [Math.min(wait, LONGEST_WAIT_SECONDS)],
  );
  const status = statusFor(failure, verdict, timeoutStatus);
  return new GatewayError(typeFor(verdict, status), describe(last), {
    status,
    ...(waits.length > 0 && verdict.status !== 400 && { retryAfterSeconds: Math.min(...waits) }),
    ...(attempts.every((attempt) => attempt.failure.kind === 'rate_limit') && {
      availability: capacityExhausted(attempts, waits),
    }),
    ...(!hidden && failure.details && { formDetails: scrubbed(failure.details) as Record<string, unknown> }),
    metadata: {
      provider_name: last.providerName,
      ...(!hidden && failure.raw !== undefined && { raw: scrubbed(failure.raw) }),
      ...(!hidden && failure.code && { provider_code: withoutAccount(scrub(failure.code)) }),
      is_byok: last.isByok,
      ...(attempts.length > 1 && {
        previous_errors: attempts.slice(0, -1).map((attempt) => ({
          provider_name: attempt.providerName,
          code: statusFor(attempt.failure, VERDICTS[attempt.failure.kind], timeoutStatus),
          message: describe(attempt),
        })),
      }),
    },
  });
}

/** The `availability` member of the error when every endpoint is rate limited. */
function capacityExhausted(attempts: readonly FailedAttempt[], waits: readonly number[]): Record<string, unknown> {
  return {
    code: 'capacity_exhausted',
    retryable: true,
    requested_models: [...new Set(attempts.map(({ modelId }) => modelId))],
    ...(waits.length > 0 && { retry_after: Math.min(...waits) }),
    affected_providers: [...new Set(attempts.map(({ providerName }) => providerName))],
  };
}

function describe({ failure, providerName, isByok }: FailedAttempt): string {
  const whose = isByok ? 'your own' : "the gateway's";
  if (failure.kind === 'auth' || failure.kind === 'permission') {
    return `${providerName} refused ${isByok ? 'your BYOK credential' : "the gateway's credential"}`;
  }
  if (failure.kind === 'quota') return `${whose} account with ${providerName} is exhausted`;
  return withoutAccount(scrub(failure.message)) || `${providerName} failed`;
}

/** A 422 for the request and a 400 for an unknown model keep the upstream's status; other failures get the table's. */
function statusFor({ kind, status, details }: UpstreamFailure, verdict: Verdict, timeoutStatus: number): number {
  if (kind === 'timeout') return timeoutStatus;
  // The format's SDKs expect 404 for a missing thread.
  if (details?.['error_code'] === 'thread_not_found') return 404;
  if (kind === 'invalid_request' && status === 422) return 422;
  return kind === 'not_found' && status === 400 ? 400 : verdict.status;
}

/** The error type of the response, which follows the upstream's status where that was kept. */
function typeFor({ type }: Verdict, status: number): ErrorType {
  if (type === 'invalid_request' && status === 422) return 'unprocessable';
  return type === 'not_found' && status === 400 ? 'invalid_request' : type;
}

function scrubbed(raw: unknown): unknown {
  if (typeof raw === 'string') return withoutAccount(scrub(raw));
  try {
    return JSON.parse(withoutAccount(scrub(JSON.stringify(raw))));
  } catch {
    return undefined;
  }
}
