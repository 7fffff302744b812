/** Whom the server runs as. PostgreSQL refuses root, so root hands it to an account that owns nothing else. */
import { statSync } from 'node:fs';

export interface Account {
  uid: number;
  gid: number;
}

/** `nobody`, which has an entry in /etc/passwd nearly everywhere; initdb insists on one. */
const NOBODY: Account = { uid: 65534, gid: 65534 };

/** The account for a cluster: its current owner, or `nobody` for a new one. Undefined if the gateway does not run as root. */
export function serverAccount(cluster: string): Account | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const status = statSync(cluster, { throwIfNoEntry: false });
  return status && status.uid !== 0 ? { uid: status.uid, gid: status.gid } : NOBODY;
}
