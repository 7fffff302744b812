/**
 * Maps network errors to `UpstreamFailure`. All texts are our own, because errors may quote a URL that contains
 * secrets.
 */
import type { FailureKind, UpstreamFailure } from '../../formats/conversation/failure.ts';

/** How far the exchange had come. */
type Progress = 'connecting' | 'waiting' | 'answering';

/**
 * @param error the connection's error, if any, or `malformed` if the bytes were not HTTP @param status status of the
 * response head
 */
export function networkFailure(
  error: Error | 'malformed' | undefined,
  progress: Progress,
  status: number | null,
): UpstreamFailure {
  if (error === 'malformed') return failure('malformed', "the upstream's answer is not valid HTTP", status);
  const code = codeOf(error);
  if (progress === 'connecting') return connectFailure(code, status);
  if (progress === 'waiting')
    return failure('cut', `the upstream closed the connection before it answered${tag(code)}`, status);
  return failure('cut', `the upstream's answer ended before it was complete${tag(code)}`, status);
}

export function failure(kind: FailureKind, message: string, status: number | null): UpstreamFailure {
  return { kind, status, message };
}

function connectFailure(code: string, status: number | null): UpstreamFailure {
  if (code === 'ETIMEDOUT') return failure('timeout', 'no connection to the upstream could be made in time', status);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EAI_FAIL' || code === 'EAI_NODATA') {
    return failure('refused', `the upstream's host name could not be resolved${tag(code)}`, status);
  }
  if (isTls(code)) return failure('refused', `no secure connection to the upstream could be made${tag(code)}`, status);
  return failure('refused', `no connection to the upstream could be made${tag(code)}`, status);
}

/**
 * OpenSSL verification results have names of their own, such as CERT_HAS_EXPIRED or UNABLE_TO_VERIFY_LEAF_SIGNATURE.
 */
function isTls(code: string): boolean {
  return /^ERR_(TLS|SSL)_|^EPROTO$|CERT|SIGNATURE|ISSUER|^CRL_|^HOSTNAME_MISMATCH$/.test(code);
}

function codeOf(error: Error | undefined): string {
  return error !== undefined && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Codes are constants of the platform or of the proxy code, so they are safe to show. */
function tag(code: string): string {
  return /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? ` (${code})` : '';
}
