/** Checks whether a certificate and its key can serve TLS. */
import { createSecureContext } from 'node:tls';

/** Returns OpenSSL's reason why they cannot; undefined if they can. */
export function certificateProblem(cert: string, key: string): string | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return (error as { reason?: string }).reason ?? (error as Error).message;
  }
}
