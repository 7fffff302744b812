/** A Google service account that there is not, with a key that can sign. */
import { generateKeyPairSync } from 'node:crypto';

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

export const SERVICE_ACCOUNT = {
  type: 'service_account',
  client_email: 'svc@project.example',
  private_key: privateKey,
};

/** Its key file. @param more further members of the file */
export function serviceAccount(more: Record<string, unknown> = {}): string {
  return JSON.stringify({ ...SERVICE_ACCOUNT, ...more });
}
