/** The SQL of sign-in. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import type { AuthRequest, Method } from './request.ts';

interface StoredCode {
  hash: string;
  organizationId: string;
  userId: string | null;
  keyHash: string;
  callbackUrl: string;
  challenge: string | null;
  method: Method | null;
  body: AuthRequest['key'];
  createdAt: Date;
  expiresAt: Date;
}

const COLUMNS: Columns<StoredCode> = {
  hash: 'hash',
  organizationId: 'organization_id',
  userId: 'user_id',
  keyHash: 'key_hash',
  callbackUrl: 'callback_url',
  challenge: 'challenge',
  method: 'method',
  body: { name: 'body', type: 'jsonb' },
  createdAt: 'created_at',
  expiresAt: 'expires_at',
};

export async function insertCode(tx: Queryable, code: StoredCode): Promise<void> {
  await tx.query('delete from auth_codes where expires_at <= $1', [code.createdAt]);
  await insertRow(tx, 'auth_codes', COLUMNS, code);
}

/** Locks the code until the transaction ends: a concurrent second exchange waits and then finds no code. */
export async function lockCode(tx: Queryable, hash: string, now: Date): Promise<StoredCode | undefined> {
  const [row] = await tx.query<StoredCode>(
    `select ${selectList(COLUMNS, 'auth_codes')}
       from auth_codes where hash = $1 and expires_at > $2 for update`,
    [hash, now],
  );
  return row;
}

export async function deleteCode(tx: Queryable, hash: string): Promise<void> {
  await tx.query('delete from auth_codes where hash = $1', [hash]);
}

/** Counts a wrong verifier, and deletes the code after `most` of them. */
export async function countWrongVerifier(tx: Queryable, hash: string, most: number): Promise<void> {
  await tx.query('update auth_codes set wrong_verifiers = wrong_verifiers + 1 where hash = $1', [hash]);
  await tx.query('delete from auth_codes where hash = $1 and wrong_verifiers >= $2', [hash, most]);
}

/** The secret shared by all processes; `fresh` is stored if there is none. */
export async function formSecret(db: Queryable, fresh: Buffer): Promise<Buffer> {
  await db.query('insert into sign_in_secrets (id, secret) values (1, $1) on conflict (id) do nothing', [fresh]);
  const [row] = await db.query<{ secret: Buffer }>('select secret from sign_in_secrets where id = 1');
  return row!.secret;
}
