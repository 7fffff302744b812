/** The SQL of sign-in. */
import type { Queryable } from '../storage/database.ts';
import type { AuthRequest, Method } from './request.ts';

export interface StoredCode {
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

export async function insertCode(tx: Queryable, code: StoredCode): Promise<void> {
  await tx.query('delete from auth_codes where expires_at <= $1', [code.createdAt]);
  await tx.query(
    `insert into auth_codes (hash, organization_id, user_id, key_hash, callback_url, challenge, method, body, created_at,
       expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      code.hash,
      code.organizationId,
      code.userId,
      code.keyHash,
      code.callbackUrl,
      code.challenge,
      code.method,
      code.body,
      code.createdAt,
      code.expiresAt,
    ],
  );
}

/** Locks the code until the transaction ends: a concurrent second exchange waits and then finds no code. */
export async function lockCode(tx: Queryable, hash: string, now: Date): Promise<StoredCode | undefined> {
  const [row] = await tx.query<StoredCode>(
    `select hash, organization_id as "organizationId", user_id as "userId", key_hash as "keyHash",
            callback_url as "callbackUrl", challenge, method, body, created_at as "createdAt", expires_at as "expiresAt"
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
