/** The SQL of console sessions. */

import type { MemberMatch } from '../base/config.ts';
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

export interface StoredSession {
  /** Of the cookie. */
  hash: string;
  keyHash: string;
  inferenceKeyHash: string | null;
  origin: string;
  createdAt: Date;
  usedAt: Date;
  expiresAt: Date;
  /** The member who signed in at the identity provider; null: with a key or a link. */
  userId: string | null;
}

/** The keys that a one-time link signs in with. */
export interface LinkedKeys {
  keyHash: string;
  inferenceKeyHash: string | null;
}

const SESSION: Columns<StoredSession> = {
  hash: 'hash',
  keyHash: 'key_hash',
  inferenceKeyHash: 'inference_key_hash',
  origin: 'origin',
  createdAt: 'created_at',
  usedAt: 'used_at',
  expiresAt: 'expires_at',
  userId: 'user_id',
};

const LINK: Columns<LinkedKeys & { hash: string; expiresAt: Date }> = {
  hash: 'hash',
  keyHash: 'key_hash',
  inferenceKeyHash: 'inference_key_hash',
  expiresAt: 'expires_at',
};

/** Also deletes sessions that have ended, and the oldest ones of the key beyond `most`. */
export async function insertSession(tx: Queryable, session: StoredSession, most: number): Promise<void> {
  await tx.query('delete from console_sessions where expires_at <= $1', [session.createdAt]);
  await insertRow(tx, 'console_sessions', SESSION, session);
  await tx.query(
    `delete from console_sessions where hash in (
       select hash from console_sessions where key_hash = $1 order by created_at desc, hash offset $2)`,
    [session.keyHash, most],
  );
}

/** The sessions among `hashes` that have neither ended nor been idle since `idleSince`. */
export function liveSessions(
  db: Queryable,
  hashes: readonly string[],
  now: Date,
  idleSince: Date,
): Promise<StoredSession[]> {
  return db.query<StoredSession>(
    `select ${selectList(SESSION, 'console_sessions')} from console_sessions
      where hash = any($1) and expires_at > $2 and used_at > $3 order by created_at desc`,
    [hashes, now, idleSince],
  );
}

export async function markUsed(db: Queryable, hash: string, now: Date): Promise<void> {
  await db.query('update console_sessions set used_at = $2 where hash = $1', [hash, now]);
}

export async function setInferenceKey(db: Queryable, hash: string, inferenceKeyHash: string | null): Promise<void> {
  await db.query('update console_sessions set inference_key_hash = $2 where hash = $1', [hash, inferenceKeyHash]);
}

export async function deleteSession(db: Queryable, hash: string): Promise<void> {
  await db.query('delete from console_sessions where hash = $1', [hash]);
}

export async function insertLink(
  db: Queryable,
  link: LinkedKeys & { hash: string; expiresAt: Date },
  now: Date,
): Promise<void> {
  await db.query('delete from console_links where expires_at <= $1', [now]);
  await insertRow(db, 'console_links', LINK, link);
}

/** Deletes the link and returns its keys; of several concurrent uses only one gets them. */
export async function takeLink(tx: Queryable, hash: string, now: Date): Promise<LinkedKeys | undefined> {
  const [link] = await tx.query<LinkedKeys>(
    `delete from console_links where hash = $1 and expires_at > $2
     returning key_hash as "keyHash", inference_key_hash as "inferenceKeyHash"`,
    [hash, now],
  );
  return link;
}

export interface FoundMember {
  userId: string;
  /** For people: the e-mail address, or the name. */
  label: string;
  role: 'admin' | 'member';
}

const MATCHES: Readonly<Record<MemberMatch, string>> = {
  email: 'lower(u.email) = lower($2)',
  user_name: 'lower(s.user_name) = lower($2)',
  external_id: 's.external_id = $2',
};

/** Members with this name, at most two. Locks them until the transaction ends. */
export function findMembers(
  tx: Queryable,
  organizationId: string,
  match: MemberMatch,
  name: string,
): Promise<FoundMember[]> {
  return tx.query<FoundMember>(
    `select m.user_id as "userId", coalesce(u.email, u.name) as label, m.role
       from members m join users u on u.id = m.user_id left join scim_users s on s.user_id = m.user_id
      where m.organization_id = $1 and ${MATCHES[match]} limit 2 for no key update of m`,
    [organizationId, name],
  );
}

/** The hash of the management key that sessions of the member act for. */
export async function personKey(tx: Queryable, userId: string): Promise<string | undefined> {
  const sql = 'select key_hash as hash from console_people where user_id = $1';
  return (await tx.query<{ hash: string }>(sql, [userId]))[0]?.hash;
}

export async function setPersonKey(tx: Queryable, userId: string, keyHash: string): Promise<void> {
  await tx.query(
    `insert into console_people (user_id, key_hash) values ($1, $2)
     on conflict (user_id) do update set key_hash = excluded.key_hash`,
    [userId, keyHash],
  );
}
