/** Opens the sessions of an intern at its agent, and keeps the data to open them again. */
import type { Clock } from '../../base/clock.ts';
import { uuidv7 } from '../../base/ids.ts';
import type { Database } from '../../storage/database.ts';
import type { AgentConnection, AgentSession, SessionEntry } from '../agents/index.ts';
import { internError } from '../errors.ts';
import * as sql from './sessions.sql.ts';

interface SessionParts {
  database: Pick<Database, 'query' | 'transaction'>;
  clock: Clock;
}

/** Of one intern. Of older ones only the agent may know something. */
const MOST_SESSIONS = 1_000;
const MOST_ENTRIES = 100;

/** Sessions that are open, by the connection to the agent that has them. */
const opened = new WeakMap<AgentConnection, Map<string, AgentSession>>();

/** @throws AgentGone, AgentRefused */
export async function openSession(
  { database, clock }: SessionParts,
  connection: AgentConnection,
  name: sql.SessionName,
  caller: string,
): Promise<AgentSession> {
  const stored = await sql.findSession(database, name);
  const sessions = opened.get(connection) ?? new Map<string, AgentSession>();
  opened.set(connection, sessions);
  const log = stored === undefined ? [] : await sql.sessionLog(database, name);
  const session = sessions.get(name.sessionId) ?? (await connection.openSession(stored?.agentSessionId ?? null, log));
  sessions.set(name.sessionId, session);
  await database.transaction(async (tx) => {
    const row = { agentSessionId: session.id, caller };
    await sql.putSession(tx, name, row, new Date(clock.now()));
    if (stored === undefined) await sql.forgetSessions(tx, name.internId, MOST_SESSIONS);
  });
  return session;
}

/**
 * @param mayBegin whether the session need not exist yet
 * @throws GatewayError 404 unless this caller began the session
 */
export async function checkOwnSession(
  { database }: SessionParts,
  name: sql.SessionName,
  caller: string,
  mayBegin = false,
): Promise<void> {
  const stored = await sql.findSession(database, name);
  if (stored === undefined ? mayBegin : stored.caller === caller) return;
  throw internError('not_found', 'The caller has no session with this id at the intern.');
}

export async function logEntry(parts: SessionParts, name: sql.SessionName, entry: SessionEntry): Promise<void> {
  if (entry.text === '') return;
  const id = uuidv7(parts.clock.now());
  const text = entry.text.replaceAll('\0', '\u{fffd}');
  await parts.database.transaction((tx) => sql.addToLog(tx, name, { ...entry, text, id }, MOST_ENTRIES));
}
