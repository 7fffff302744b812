/**
 * What an error of the network means, in the vocabulary of `UpstreamFailure`. The texts are ours throughout: errors may quote
 * an address, which holds secrets.
 */
import type { FailureKind, UpstreamFailure } from '../../formats/conversation/failure.ts';

/** How far the exchange had come. */
export type Progress = 'connecting' | 'waiting' | 'answering';

/** `error`: why the connection is gone, when it has said so, or that what came was not HTTP. `status` is the one of the head. */
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

/** OpenSSL's verification results have names of their own, such as CERT_HAS_EXPIRED or UNABLE_TO_VERIFY_LEAF_SIGNATURE. */
function isTls(code: string): boolean {
  return /^ERR_(TLS|SSL)_|^EPROTO$|CERT|SIGNATURE|ISSUER|^CRL_|^HOSTNAME_MISMATCH$/.test(code);
}

function codeOf(error: Error | undefined): string {
  return error !== undefined && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Codes are constants of the platform or of the proxy's handling, so they are safe to show. */
function tag(code: string): string {
  return /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? ` (${code})` : '';
}
