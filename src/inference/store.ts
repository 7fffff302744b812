/** The SQL of this folder: secrets of the installation, created once and shared by every process. */
import { randomBytes } from 'node:crypto';
import type { Database } from '../storage/database.ts';

/** The key for the hashes of end users; 32 bytes, the same in every process and after every restart. */
export async function userHashSecret(database: Database): Promise<Buffer> {
  await database.query(
    `insert into installation_secrets (name, value) values ('user_hash', $1) on conflict (name) do nothing`,
    [randomBytes(32)],
  );
  const rows = await database.query<{ value: Buffer }>(
    `select value from installation_secrets where name = 'user_hash'`,
  );
  return rows[0]!.value;
}
