/** Whether a certificate and its key can serve TLS. */
import { createSecureContext } from 'node:tls';

/** Why not, in the words of OpenSSL; undefined: they can. */
export function certificateProblem(cert: string, key: string): string | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return (error as { reason?: string }).reason ?? (error as Error).message;
  }
}
