/** A certificate for 127.0.0.1 and localhost, created for each test run so that no key is in the repository. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificate {
  key: string;
  /** Signs itself, so it is its own authority. */
  cert: string;
}

/** Null where the `openssl` program is missing; a test skips then. `names` as in a subjectAltName. */
export function makeCertificate(names = 'IP:127.0.0.1,DNS:localhost'): Certificate | null {
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'));
  try {
    const keyFile = join(folder, 'key.pem');
    const certFile = join(folder, 'cert.pem');
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const subject = ['-subj', '/CN=test', '-addext', `subjectAltName=${names}`];
    execFileSync('openssl', ['req', ...kind, ...subject, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' });
    return { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
