/** The SQL of transcripts and feedback. */
import type { Database } from '../storage/database.ts';
import type { Transcript } from './transcript.ts';

const REMOVED_AT_ONCE = 500;

interface Row {
  id: string;
  created_at: Date;
  key_id: string;
  workspace_id: string;
  organization_id: string;
  input: string;
  output: string;
  error: string | null;
}

/** Inserts rows; existing ones stay, so a write with an unknown outcome can simply be repeated. */
export async function insertTranscripts(database: Database, rows: readonly Transcript[]): Promise<void> {
  await database.query(
    `insert into transcripts (id, created_at, key_id, workspace_id, organization_id, input, output, error)
     select * from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
     on conflict (id) do nothing`,
    [
      rows.map(({ id }) => id),
      rows.map(({ createdAt }) => new Date(createdAt).toISOString()),
      rows.map(({ keyId }) => keyId),
      rows.map(({ workspaceId }) => workspaceId),
      rows.map(({ organizationId }) => organizationId),
      rows.map(({ input }) => input),
      rows.map(({ output }) => output),
      rows.map(({ error }) => error),
    ],
  );
}

export async function findTranscript(database: Database, id: string): Promise<Transcript | undefined> {
  const [row] = await database.query<Row>(
    `select id, created_at, key_id, workspace_id, organization_id, input, output, error
     from transcripts where id = $1`,
    [id],
  );
  return (
    row && {
      id: row.id,
      createdAt: row.created_at.getTime(),
      keyId: row.key_id,
      workspaceId: row.workspace_id,
      organizationId: row.organization_id,
      input: row.input,
      output: row.output,
      error: row.error,
    }
  );
}

/** Removes transcripts from before `beforeMs`, in batches. @returns the number of removed rows */
export async function removeTranscripts(database: Database, beforeMs: number): Promise<number> {
  let removed = 0;
  for (;;) {
    const rows = await database.query(
      `delete from transcripts where id in
         (select id from transcripts where created_at < $1 limit ${REMOVED_AT_ONCE}) returning 1`,
      [new Date(beforeMs)],
    );
    removed += rows.length;
    if (rows.length < REMOVED_AT_ONCE) return removed;
  }
}

interface Feedback {
  generationId: string;
  organizationId: string;
  category: string;
  comment: string | null;
  /** Wall time in ms. */
  createdAt: number;
}

/** Stores feedback; the latest for a generation and category replaces the earlier one. */
export async function keepFeedback(database: Database, feedback: Feedback): Promise<void> {
  await database.query(
    `insert into generation_feedback (generation_id, category, organization_id, comment, created_at)
     values ($1, $2, $3, $4, $5)
     on conflict (generation_id, category) do update set comment = excluded.comment, created_at = excluded.created_at`,
    [feedback.generationId, feedback.category, feedback.organizationId, feedback.comment, new Date(feedback.createdAt)],
  );
}

export async function removeFeedback(database: Database, beforeMs: number): Promise<void> {
  await database.query('delete from generation_feedback where created_at < $1', [new Date(beforeMs)]);
}
