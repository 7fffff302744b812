/**
 * What an error of the network means, in the vocabulary of `UpstreamFailure`. The texts are ours throughout: errors of
 * the library may quote the URL or a header, which hold secrets.
 */
import type { FailureKind, UpstreamFailure } from '../formats/conversation/failure.ts';

/** How far the exchange had come. */
export type Progress = 'connecting' | 'waiting' | 'answering';

/** `status` is the one of the head when it had arrived. */
export function networkFailure(error: unknown, progress: Progress, status: number | null): UpstreamFailure {
  const code = codeOf(error);
  if (progress === 'connecting') return connectFailure(code, status);
  if (isMalformed(error, code)) return failure('malformed', "the upstream's answer is not valid HTTP", status);
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
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') {
    return failure('refused', 'the request cannot be sent: its address or a header is not valid HTTP', status);
  }
  return failure('refused', `no connection to the upstream could be made${tag(code)}`, status);
}

function isMalformed(error: unknown, code: string): boolean {
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return true;
  if (!(error instanceof Error)) return false;
  // An answer without its end is well-formed as far as it goes.
  if (error.name === 'HTTPParserError') return !error.message.includes('EOF');
  // An unasked-for `100 Continue` or upgrade has no code of its own.
  return code === 'UND_ERR_SOCKET' && error.message.startsWith('bad ');
}

/** OpenSSL's verification results have names of their own, such as CERT_HAS_EXPIRED or UNABLE_TO_VERIFY_LEAF_SIGNATURE. */
function isTls(code: string): boolean {
  return /^ERR_(TLS|SSL)_|^EPROTO$|CERT|SIGNATURE|ISSUER|^CRL_|^HOSTNAME_MISMATCH$/.test(code);
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}

/** Codes are constants of the platform, so they are safe to show; the library's own mean nothing to a reader. */
function tag(code: string): string {
  return /^[A-Z][A-Z0-9_]{2,60}$/.test(code) && !code.startsWith('UND_') ? ` (${code})` : '';
}
