/** Subject tokens: JWTs of an identity provider, checked against a policy. */
import type { errors, JWTPayload } from 'jose';
import { type FederationPolicy, SIGNATURE_ALGORITHMS } from '../../base/config.ts';
import { unmetRule } from './claims.ts';
import type { Issuers } from './issuers.ts';
import { refusal } from './oauth-error.ts';

interface Subject {
  /** The claim `sub`, which the policy may restrict. */
  name: string;
  /** Wall time in ms; latest end of the access token. */
  expiresAt: number;
}

/** Longer than what identity providers issue, including groups. */
const MAX_SUBJECT_TOKEN_LENGTH = 16 * 1024;
/** Tolerated clock difference. It does not extend `exp`: an expired token is expired. */
const LEEWAY_SECONDS = 30;
/** Bytes in JSON. The name goes into the access token, which must stay short enough to be accepted. */
const MAX_NAME_BYTES = 1_024;
/** Three parts in base64url: header, payload, and a non-empty signature. */
const JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/**
 * Checks format, algorithm, signature, issuer, audience, times and claims.
 *
 * @throws GatewayError 400 `invalid_grant` that names the problem, 503 if the issuer's keys are unavailable
 */
export async function verifySubject(
  token: string,
  policy: FederationPolicy,
  issuers: Issuers,
  nowMs: number,
): Promise<Subject> {
  if (token.length > MAX_SUBJECT_TOKEN_LENGTH) throw wrong(`is longer than ${MAX_SUBJECT_TOKEN_LENGTH} characters`);
  if (!JWT.test(token)) throw wrong('is not a signed JWT');
  const { iat, exp, sub, ...others } = await verified(token, policy, issuers, nowMs);
  if (iat !== undefined && !(iat <= nowMs / 1000 + LEEWAY_SECONDS)) throw wrong('was issued in the future (iat)');
  // Larger values exceed the range of a date.
  if (exp === undefined || !(exp * 1000 > nowMs)) throw wrong('has expired (exp)');
  if (typeof sub !== 'string' || sub === '' || bytesOf(sub) > MAX_NAME_BYTES) throw wrong('has no valid claim sub');
  const unmet = unmetRule({ ...others, sub }, policy.claims);
  if (unmet !== undefined) throw wrong(`does not have the claim ${unmet.name} that the policy requires`);
  return { name: sub, expiresAt: exp * 1000 };
}

async function verified(token: string, policy: FederationPolicy, issuers: Issuers, nowMs: number): Promise<JWTPayload> {
  const { errors, jwtVerify } = await import('jose');
  try {
    const { payload } = await jwtVerify(token, (header) => issuers.keyFor(policy, header), {
      algorithms: [...SIGNATURE_ALGORITHMS],
      issuer: policy.issuer,
      audience: [...policy.audience],
      requiredClaims: ['exp'],
      clockTolerance: LEEWAY_SECONDS,
      currentDate: new Date(nowMs),
    });
    return payload;
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
    throw wrong(await problemOf(error), error);
  }
}

function bytesOf(name: string): number {
  return Buffer.byteLength(JSON.stringify(name));
}

async function problemOf(error: errors.JOSEError): Promise<string> {
  const { errors } = await import('jose');
  if (error instanceof errors.JWTExpired) return 'has expired (exp)';
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === 'missing') return `lacks the claim ${error.claim}`;
    if (error.claim === 'nbf') return 'is not valid yet (nbf)';
    return `has a claim ${error.claim} that the policy does not accept`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return 'is signed with an algorithm that is not accepted';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'has a signature that the issuer did not make';
  return 'is not a well-formed JWT';
}

function wrong(problem: string, cause?: unknown) {
  return refusal('invalid_grant', `subject_token ${problem}`, cause);
}
