/** Token exchange (RFC 8693): a subject token that a policy accepts, for an access token of the policy's key. */
import type { Caller } from '../../access/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { FederationPolicy } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { type IssuedToken, type OwnAccessTokens, SCOPE } from './access-tokens.ts';
import { BurstLimit, clientOf } from './burst-limit.ts';
import type { Issuers } from './issuers.ts';
import { refusal, tooMany } from './oauth-error.ts';
import { ACCESS_TOKEN_TYPE, GRANT_TYPE, JWT_TYPE } from './schema.ts';
import { verifySubject } from './subject.ts';

interface ExchangeParts {
  clock: Clock;
  log: Log;
  issuers: Issuers;
  tokens: OwnAccessTokens;
  /** The current configuration. */
  policies(): readonly FederationPolicy[];
  /** `Access.callerOfKey` */
  callerOfKey(hash: string): Caller | Promise<Caller>;
}

/** Per process. Checking a signature is cheap; a client above this rate is not a build that is starting. */
export const PER_CLIENT = { perSecond: 5, atOnce: 300 };
export const PER_POLICY = { perSecond: 25, atOnce: 1_500 };
const SHOWN_HASH = 12;

export class Exchanges {
  readonly #parts: ExchangeParts;
  readonly #clients = new BurstLimit(PER_CLIENT);
  readonly #policies = new BurstLimit(PER_POLICY);

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /**
   * @param from the client's address
   * @throws GatewayError of `oauth-error.ts`
   */
  async exchange(form: URLSearchParams, from: string | undefined, requestId: string): Promise<IssuedToken> {
    const { clock, log, policies } = this.#parts;
    admit(this.#clients.take(clientOf(from), clock.monotonic()));
    const { policyId, subjectToken } = readForm(form);
    const policy = policies().find(({ id }) => id === policyId);
    if (policy === undefined) throw refusal('invalid_grant', 'federation_policy_id is not known');
    const logFields = { policy: policy.id, request_id: requestId, client: from };
    try {
      return await this.#issue(policy, subjectToken, logFields);
    } catch (error) {
      if (error instanceof GatewayError) log.info('token exchange refused', { ...logFields, reason: error.message });
      throw error;
    }
  }

  async #issue(policy: FederationPolicy, subjectToken: string, logFields: object): Promise<IssuedToken> {
    const { clock, log, issuers, tokens } = this.#parts;
    const subject = await verifySubject(subjectToken, policy, issuers, clock.now());
    // Only now, or strangers without a valid token could use up the rate limit of the policy's workloads.
    admit(this.#policies.take(policy.id, clock.monotonic()));
    const caller = await this.#callerOf(policy);
    const { keyHash, expiresAt } = caller;
    const issued = await tokens.issue({
      ...{ subject: subject.name, policyId: policy.id, keyHash, lifetimeMs: policy.lifetimeMs },
      endsBy: Math.min(subject.expiresAt, expiresAt ?? Number.POSITIVE_INFINITY),
    });
    if (issued === undefined) throw refusal('invalid_grant', 'subject_token has expired (exp)');
    const token = { subject: subject.name, token_id: issued.id, expires_in: issued.expiresIn };
    log.info('token exchanged', { ...logFields, ...token, key_hash: keyHash.slice(0, SHOWN_HASH) });
    return issued;
  }

  /** Checks the key at once: an unusable key makes its tokens useless. */
  async #callerOf({ id, keyHash }: FederationPolicy): Promise<Caller> {
    const { log, callerOfKey } = this.#parts;
    let problem: string;
    try {
      const caller = await callerOfKey(keyHash);
      if (caller.kind === 'inference') return caller;
      problem = 'It is not an inference key.';
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status >= 500) throw error;
      problem = error.message;
    }
    log.warn('the key of a federation policy is not usable', { policy: id, reason: problem });
    throw refusal('invalid_grant', `the key of the policy is not usable: ${problem}`);
  }
}

function admit(waitMs: number): void {
  if (waitMs > 0) throw tooMany(waitMs);
}

/** Parameters without a value count as absent, unknown ones are ignored, and duplicates are refused (RFC 6749, 3.2). */
function readForm(form: URLSearchParams): { policyId: string; subjectToken: string } {
  const given = new Map([...form].filter(([, value]) => value !== ''));
  for (const name of ['audience', 'resource']) {
    if (given.has(name))
      throw refusal('invalid_target', `${name} is not supported: tokens are only valid for this gateway`);
  }
  const names = [...form.keys()];
  const twice = names.find((name, at) => names.indexOf(name) < at);
  if (twice !== undefined) throw refusal('invalid_request', `${twice.slice(0, 100)} is given more than once`);
  const needed = (name: string) => {
    const value = given.get(name);
    if (value === undefined) throw refusal('invalid_request', `${name} is missing`);
    return value;
  };
  if (needed('grant_type') !== GRANT_TYPE) throw refusal('unsupported_grant_type', `grant_type must be ${GRANT_TYPE}`);
  if (needed('subject_token_type') !== JWT_TYPE) {
    throw refusal('invalid_request', `subject_token_type must be ${JWT_TYPE}`);
  }
  if ((given.get('requested_token_type') ?? ACCESS_TOKEN_TYPE) !== ACCESS_TOKEN_TYPE) {
    throw refusal('invalid_request', `requested_token_type must be ${ACCESS_TOKEN_TYPE}`);
  }
  if ((given.get('scope') ?? SCOPE) !== SCOPE) throw refusal('invalid_scope', `scope must be ${SCOPE}`);
  if (given.has('actor_token')) throw refusal('invalid_request', 'actor_token is not supported');
  return { policyId: needed('federation_policy_id'), subjectToken: needed('subject_token') };
}
