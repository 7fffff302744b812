/** The SQL of the sessions of interns and of their logs. */
import type { Queryable } from '../../storage/database.ts';
import type { SessionEntry } from '../agents/index.ts';

export interface SessionName {
  internId: string;
  sessionId: string;
}

interface StoredSession {
  readonly agentSessionId: string;
  readonly caller: string;
}

export async function findSession(db: Queryable, name: SessionName): Promise<StoredSession | undefined> {
  const sql = `select agent_session_id as "agentSessionId", caller from intern_sessions
    where intern_id = $1 and session_id = $2`;
  const [session] = await db.query<StoredSession>(sql, [name.internId, name.sessionId]);
  return session;
}

/** Keeps the first caller. */
export async function putSession(
  tx: Queryable,
  { internId, sessionId }: SessionName,
  { agentSessionId, caller }: StoredSession,
  usedAt: Date,
): Promise<void> {
  await tx.query(
    `insert into intern_sessions (intern_id, session_id, agent_session_id, caller, used_at) values ($1, $2, $3, $4, $5)
      on conflict (intern_id, session_id) do update
        set agent_session_id = excluded.agent_session_id, used_at = excluded.used_at`,
    [internId, sessionId, agentSessionId, caller, usedAt],
  );
}

/** Deletes the sessions of an intern that were not used for longest, all but `most`. */
export async function forgetSessions(tx: Queryable, internId: string, most: number): Promise<void> {
  await tx.query(
    `delete from intern_sessions s using (select session_id from intern_sessions where intern_id = $1
      order by used_at desc, session_id offset $2) as old where s.intern_id = $1 and s.session_id = old.session_id`,
    [internId, most],
  );
}

/** Oldest first. */
export function sessionLog(db: Queryable, { internId, sessionId }: SessionName): Promise<SessionEntry[]> {
  const sql = `select role, content as text from intern_session_entries where intern_id = $1 and session_id = $2
    order by id`;
  return db.query<SessionEntry>(sql, [internId, sessionId]);
}

/**
 * Adds to the log of a session, of which the newest entries are kept. Does nothing if the session does not exist any more.
 * @param id sorts after those of earlier entries
 */
export async function addToLog(
  tx: Queryable,
  { internId, sessionId }: SessionName,
  { id, role, text }: SessionEntry & { id: string },
  most: number,
): Promise<void> {
  await tx.query(
    `insert into intern_session_entries (intern_id, session_id, id, role, content)
      select $1, $2, $3, $4, $5 from intern_sessions where intern_id = $1 and session_id = $2`,
    [internId, sessionId, id, role, text],
  );
  await tx.query(
    `delete from intern_session_entries where intern_id = $1 and session_id = $2 and id in (
      select id from intern_session_entries where intern_id = $1 and session_id = $2 order by id desc offset $3)`,
    [internId, sessionId, most],
  );
}
